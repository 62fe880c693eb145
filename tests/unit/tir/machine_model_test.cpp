// SPDX-License-Identifier: Apache-2.0
// What follows from the model of a machine, and what becomes of a change that is refused.
#include "tenon/tir/schedule/machine_model.h"

#include <gtest/gtest.h>

#include "schedule_kernels.h"
#include "tenon/support/check.h"
#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/tile_rules.h"

namespace tenon::tir {
namespace {

TEST(MachineModel, FollowsTheVectorRegisters) {
  EXPECT_EQ(machine_model(parse_target("llvm -mcpu=skylake-avx512")).registers, 32);
  EXPECT_EQ(machine_model(parse_target("llvm -mcpu=haswell")).registers, 16);
  EXPECT_EQ(machine_model(parse_target("c")).registers, 16);
}

TEST(MachineModel, TilesLeaveItsSpareRegistersFree) {
  for (const char* text : {"llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell", "c",
                           "llvm -mcpu=haswell -vector-registers=8"}) {
    const Target target = parse_target(text);
    const MachineModel& model = machine_model(target);
    const int64_t room =
        std::min<int64_t>(target.vector_registers, model.registers) - model.spare_registers;
    for (const int64_t width : {0, 1, 3, 49, 197, 3136})
      for (const int64_t vectors : {1, 2, 5, 16}) {
        TileProblem problem;
        problem.width = width;
        problem.vectors = vectors;
        problem.steps = 64;
        const Tile tile = choose_tile(problem, target).tile;
        EXPECT_LE(tile.rows * tile.cols * tile.vectors + tile.vectors, room)
            << text << ": " << width << " by " << vectors;
        EXPECT_LE(tile.vectors, vectors);
      }
  }
}

// The tiles that hand-written kernels found best, or within 5 % of it.
TEST(MachineModel, ChoosesTheTilesOfTheMeasurements) {
  const Target wide = parse_target("llvm -mcpu=skylake-avx512"),
               narrow = parse_target("llvm -mcpu=haswell");
  TileProblem pointwise;  // 64 -> 256 channels, 56 x 56 pixels
  pointwise.width = 56 * 56;
  pointwise.steps = 64;
  pointwise.vectors = 16;
  EXPECT_EQ(choose_tile(pointwise, wide).tile, (Tile{1, 6, 4}));
  pointwise.vectors = 32;
  EXPECT_EQ(choose_tile(pointwise, narrow).tile, (Tile{1, 6, 2}));
}

TEST(Attempt, ReturnsARefusalAndUndoesTheChange) {
  Schedule schedule(testing::dense(int64(8), 32, 16, 16));
  const std::string before = schedule.trace().str();
  const auto refusal = refusal_of(schedule, [&] {
    schedule.vectorize(schedule.get_loops(schedule.blocks()[0])[0]);
    illegal({}, "block `{}` has short rows", "dense");
  });
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->message, "block `dense` has short rows");
  EXPECT_EQ(schedule.trace().str(), before);
  EXPECT_TRUE(attempt(schedule, [&] { schedule.get_loops(schedule.blocks()[0]); }));
}

TEST(Attempt, LetsOtherErrorsOut) {
  Schedule schedule(testing::dense(int64(8), 32, 16, 16));
  EXPECT_THROW(attempt(schedule, [] { throw CompileError(kTypeMismatch, {}, "of another kind"); }),
               CompileError);
  EXPECT_THROW(attempt(schedule, [] { check(false, "not to be seen"); }), InternalError);
}

}  // namespace
}  // namespace tenon::tir
