// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's forms: what the primitive makes is the convolution (evaluated in double
// precision), for all that pictures, layouts and targets may be; what it and `merge` refuse.
#include <gtest/gtest.h>

#include "schedule_evaluate.h"
#include "schedule_kernels.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/default_winograd.h"

namespace tenon::tir {
namespace {

using testing::compute;
using testing::dump;
using testing::function;
using testing::results;
using testing::tensor;

void expect_same(const PrimFunc& before, const PrimFunc& after) {
  const auto a = results(before);
  std::vector<std::vector<double>> b;
  try {
    b = results(after);
  } catch (const std::exception& error) {
    FAIL() << error.what() << "\n" << dump(after);
  }
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k)
      ASSERT_NEAR(a[i][k], b[i][k], 1e-9) << "buffer " << i << ", element " << k;
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kScheduleIllegal.id);
    return error.first().message;
  }
  return "accepted";
}

/// out[n, o, y, x] = sum over c, i, j of x[n, c, y + i, x + j] * w[o, c, i, j], nothing padded.
Ref<PrimFunc> planar(int64_t n, int64_t c, int64_t o, int64_t h, int64_t w, bool swapped = false) {
  const auto x = tensor("x", {n, c, h + 2, w + 2}), f = tensor("w", {o, c, 3, 3}),
             out = tensor("out", {n, o, h, w});
  return function({x, f, out}, {},
                  {compute(
                      "conv", out, to_exprs({n, o, h, w, c, 3, 3}),
                      [&](const std::vector<Expr>& v) {
                        const Expr a = load(x, {v[0], v[4], v[2] + v[5], v[3] + v[6]});
                        const Expr b = load(f, {v[1], v[4], v[5], v[6]});
                        return swapped ? b * a : a * b;
                      },
                      3)});
}

TEST(Winograd, IsTheConvolutionInAnyLayout) {
  for (const int64_t tile : {2, 4, 6})
    for (const int64_t block_tiles : {1, 3, 100}) {
      for (const bool swapped : {false, true}) {
        const auto f = planar(2, 3, 2, 6, 7, swapped);
        Schedule sch(f);
        const auto made = sch.winograd(sch.get_block("conv"), tile, block_tiles);
        ASSERT_EQ(made.size(), 7u);
        EXPECT_EQ(made[4].name, "conv_input");
        expect_same(*f, *sch.func());
      }
      testing::Conv c{8, 8, 5, 9, 3, 1, 1, 4, 2, true};
      const auto f = testing::conv(c);
      Schedule sch(f);
      sch.winograd(sch.get_block("conv"), tile, block_tiles);
      expect_same(*f, *sch.func());
    }
}

TEST(Winograd, IsReplayed) {
  const auto f = planar(1, 3, 2, 6, 7);
  Schedule sch(f);
  const auto made = sch.winograd(sch.get_block("conv"), 4, 2);
  sch.get_loops(made[4]);
  EXPECT_EQ(sch.trace().str(),
            "b0 = sch.get_block(name=\"conv\")\n"
            "b1, b2, b3, b4, b5, b6, b7 = sch.winograd(b0, tile=4, block_tiles=2)\n"
            "l0, l1, l2, l3, l4 = sch.get_loops(b5)\n");
  EXPECT_TRUE(structural_equal(replay(sch.trace(), f).func(), sch.func()));
}

TEST(Winograd, SaysWhatItDoesNotTake) {
  const auto of = [](const Ref<PrimFunc>& f, int64_t tile = 4, int64_t tiles = 8) {
    Schedule sch(f);
    return refusal([&] { sch.winograd(sch.get_block("conv"), tile, tiles); });
  };
  EXPECT_EQ(of(planar(1, 2, 2, 4, 4)), "accepted");
  EXPECT_EQ(of(planar(1, 2, 2, 4, 4), 3), "tiles of 3 x 3 outputs; expected 2, 4 or 6");
  EXPECT_EQ(of(planar(1, 2, 2, 4, 4), 4, 0), "blocks of 0 tiles; expected at least 1");
  const std::string taps =
      "block `conv` is no convolution of 3 x 3 taps of stride 1: its taps do not move with two "
      "axes "
      "of outputs";
  EXPECT_EQ(of(testing::conv({8, 8, 9, 9, 3, 2, 0, 4})), taps);
  EXPECT_EQ(of(testing::conv({8, 8, 9, 9, 5, 1, 0, 4})), taps);
  EXPECT_EQ(of(testing::conv({8, 8, 9, 9, 1, 1, 0, 4})), taps);
  // A dilated one, one whose filters move with the outputs, and one without channels.
  const auto x = tensor("x", {2, 8, 8}), w = tensor("w", {2, 3, 3, 4}), out = tensor("out", {4, 4});
  const auto windows = [&](int64_t dilation, bool moves, size_t reduce = 3) {
    return function(
        {x, w, out}, {},
        {compute(
            "conv", out, reduce == 3 ? to_exprs({4, 4, 3, 3, 2}) : to_exprs({4, 4, 3, 3}),
            [&](const std::vector<Expr>& v) {
              const Expr channel = reduce == 3 ? v[4] : int64(0);
              return load(x, {channel, v[0] + v[2] * dilation, v[1] + v[3]}) *
                     load(w, {channel, v[2], v[3], moves ? v[0] : int64(0)});
            },
            reduce)});
  };
  EXPECT_EQ(of(windows(1, false)), "accepted");
  EXPECT_EQ(of(windows(2, false)), taps);
  EXPECT_EQ(of(windows(1, true)), taps);
  EXPECT_EQ(of(windows(1, false, 2)),
            "block `conv` is no convolution of 3 x 3 taps of stride 1: it sums over taps alone");
  const auto largest = function(
      {x, out}, {},
      {compute(
          "conv", out, to_exprs({4, 4, 3, 3, 2}),
          [&](const std::vector<Expr>& v) { return load(x, {v[4], v[0] + v[2], v[1] + v[3]}); }, 3,
          BinaryOp::kMax, -1e30)});
  EXPECT_EQ(of(largest),
            "block `conv` is no convolution of 3 x 3 taps of stride 1: it is no sum of products");
}

TEST(Merge, JoinsWhatMeetsInEachIteration) {
  const auto x = tensor("x", {4, 5}), t = tensor("t", {4, 5}), y = tensor("y", {4, 5});
  const auto chain = [&](int64_t shift) {
    const auto first = compute("first", t, to_exprs({4, 5}), [&](const std::vector<Expr>& v) {
      return load(x, v) + imm(kFloat32, 1.0);
    });
    const auto second = compute("second", y, to_exprs({4, 5}), [&](const std::vector<Expr>& v) {
      return load(t, {shift ? int64(3) - v[0] : v[0], v[1]}) * load(x, v);
    });
    return function({x, y}, {t}, {first, second});
  };
  const auto merged = [&](Schedule& sch) {
    const LoopRV a = sch.get_loops(sch.get_block("first"))[0],
                 b = sch.get_loops(sch.get_block("second"))[0];
    return refusal([&] { sch.merge({a, b}); });
  };
  const auto f = chain(0);
  Schedule sch(f);
  EXPECT_EQ(merged(sch), "accepted");
  EXPECT_TRUE(sch.get_loops({"first"})[0] == sch.get_loops({"second"})[0]);
  expect_same(*f, *sch.func());
  EXPECT_TRUE(structural_equal(replay(sch.trace(), f).func(), sch.func()));
  Schedule backwards(chain(1));
  EXPECT_EQ(merged(backwards),
            "loops `i0` and `i0` both use `t`, and not in each iteration elements of its own");
  Schedule other(f);
  const auto inner = other.get_loops(other.get_block("first"))[1];
  const auto outer = other.get_loops(other.get_block("second"))[0];
  EXPECT_EQ(refusal([&] { other.merge({outer}); }), "1 loops to merge; expected two");
  EXPECT_EQ(refusal([&] { other.merge({inner, outer}); }),
            "loop `i1` stands alone; expected loops one right after the other");
}

// The whole schedule: every width of vectors, rests of tiles, blocks of tiles, residuals.
TEST(Winograd, DefaultSchedule) {
  for (const char* text :
       {"llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512",
        "llvm -mcpu=skylake-avx512 -vector-bits=256", "c"})
    for (const int64_t width : {4, 6})
      for (const bool padded : {false, true}) {
        const Target target = parse_target(text);
        const int64_t lanes = target.vector_lanes(32), edge = padded ? 0 : 2;
        for (const int64_t tile : {2, 4, 6}) {
          if (tile == 6 && width != 6) continue;  // as it is there, and slow to evaluate
          const int64_t height = tile == 6 ? 13 : 9;
          const auto f = testing::conv({lanes, 2 * lanes, height + edge, width + edge, 3, 1,
                                        padded ? 1 : 0, lanes, 2, padded});
          const int64_t tiles = (height + tile - 1) / tile * ((width + tile - 1) / tile);
          for (const auto& [block_tiles, tasks] :
               {std::pair<int64_t, int64_t>{5, 1}, {(tiles + 1) / 2, 2}}) {
            SCOPED_TRACE(fmt::format("{} width {} padded {} tile {} in {} tasks", text, width,
                                     padded, tile, tasks));
            Schedule sch(f);
            for (const char* name : {"add", "residual"})
              if (sch.has_block(name)) sch.compute_inline(sch.get_block(name));
            schedule_winograd(sch, sch.get_block("conv"), target, {tile, block_tiles, tasks});
            expect_same(*f, *sch.func());
            EXPECT_TRUE(structural_equal(replay(sch.trace(), f).func(), sch.func()));
            if (tasks == 1) continue;
            int64_t loops = 0;
            walk<For>(sch.func()->body,
                      [&](const For& loop) { loops += loop.kind == ForKind::kParallel; });
            EXPECT_EQ(loops, 1);
          }
        }
      }
}

// Filters become constants: those that do not stay in cache are asked for ahead, as other weights are.
TEST(Winograd, FiltersArePrefetched) {
  const auto hints = [](int64_t channels, const char* text) {
    const Target target = parse_target(text);
    Schedule sch(testing::conv({channels, channels, 14, 14, 3, 1, 1, target.vector_lanes(32), 2}));
    schedule_winograd(sch, sch.get_block("conv"), target, {2, 49, 1});
    const auto& steps = sch.trace().instructions();
    return std::count_if(steps.begin(), steps.end(),
                         [](const Instruction& i) { return i.name == "prefetch_spread"; });
  };
  for (const char* text :
       {"llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512",
        "llvm -mcpu=skylake-avx512 -vector-registers=16"}) {
    EXPECT_GT(hints(256, text), 0) << text;
    EXPECT_EQ(hints(32, text), 0) << text;
  }
}

// Tasks take as many blocks each.
TEST(Winograd, BlocksThatTasksCannotShare) {
  const Target target = parse_target("llvm -mcpu=haswell");
  const auto refused = [&](int64_t block_tiles, int64_t tasks) {
    Schedule sch(testing::conv({8, 16, 12, 12, 3, 1, 1, 8, 2}));
    return refusal(
        [&] { schedule_winograd(sch, sch.get_block("conv"), target, {4, block_tiles, tasks}); });
  };
  EXPECT_EQ(refused(3, 3), "accepted");
  EXPECT_EQ(refused(3, 2), "3 blocks of tiles in 2 tasks; expected a divisor");
  EXPECT_EQ(refused(9, 2), "1 blocks of tiles in 2 tasks; expected a divisor");
}

TEST(Winograd, IsChosenBySizes) {
  const auto choice = [](int64_t channels, int64_t size, const char* text,
                         int64_t room = int64_t{1} << 40) -> std::string {
    const Target target = parse_target(text);
    const auto f =
        testing::conv({channels, channels, size, size, 3, 1, 1, target.vector_lanes(32), 2});
    Schedule sch(f);
    const auto found = choose_winograd(*sch.get(sch.get_block("conv")), target, room);
    if (!found) return "direct";
    return fmt::format("F({}) by {}{}", found->tile, found->block_tiles,
                       found->tasks > 1 ? fmt::format(" in {}", found->tasks) : "");
  };
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=skylake-avx512"), "F(4) by 25 in 2");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=skylake-avx512", 50 * 18432), "F(4) by 25 in 2");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=skylake-avx512", 50 * 18432 - 1), "F(4) by 25");
  EXPECT_EQ(choice(32, 52, "llvm -mcpu=skylake-avx512"), "F(4) by 22 in 2");
  EXPECT_EQ(choice(128, 28, "llvm -mcpu=skylake-avx512"), "F(4) by 25");
  EXPECT_EQ(choice(256, 14, "llvm -mcpu=skylake-avx512"), "F(2) by 25");
  EXPECT_EQ(choice(512, 7, "llvm -mcpu=skylake-avx512"), "direct");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell"), "F(4) by 25");
  EXPECT_EQ(choice(512, 7, "llvm -mcpu=haswell"), "F(2) by 16");
  // 36 positions of 128 channels are 18 KiB a tile.
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 25 * 18432), "F(4) by 25");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 25 * 18432 - 1), "F(4) by 22");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 12 * 18432), "F(4) by 12");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 12 * 18432 - 1), "F(2) by 24");
  // Filters of F(2) stay in its cache, those of F(4) do not.
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 12 * 8192 - 1), "F(2) by 11");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 3 * 8192), "F(2) by 3");
  EXPECT_EQ(choice(64, 56, "llvm -mcpu=haswell", 3 * 8192 - 1), "direct");
  // Small kernels rather have smaller blocks than many short loops.
  EXPECT_EQ(choice(16, 32, "llvm -mcpu=skylake-avx512", 22 * 4608), "F(4) by 11 in 2");
  EXPECT_EQ(choice(16, 32, "llvm -mcpu=skylake-avx512", 65536), "F(4) by 7 in 2");
  EXPECT_EQ(choice(16, 32, "llvm -mcpu=skylake-avx512", 5 * 4608), "F(4) by 5");
  EXPECT_EQ(choice(16, 32, "llvm -mcpu=skylake-avx512", 3 * 4608 - 1), "F(2) by 3 in 2");
}

/// The form of a layer of square pictures where `grown` bytes are left below the peak.
static std::string choice_with(int64_t channels, int64_t size, const char* text,
                               int64_t grown = int64_t{1} << 40) {
  const Target target = parse_target(text);
  Schedule sch(
      testing::conv({channels, channels, size, size, 3, 1, 1, target.vector_lanes(32), 2}));
  const auto found =
      choose_winograd(*sch.get(sch.get_block("conv")), target, int64_t{1} << 40, grown);
  return found ? fmt::format("F({}) by {}", found->tile, found->block_tiles) : "direct";
}

// Filters from beyond the second cache are read for as few blocks as what their tiles take allows.
TEST(Winograd, BlocksGrowWhereTheProgramHasTheMemory) {
  const char* const k2M = "llvm -mcpu=skylake-avx512 -l2=2097152";
  EXPECT_EQ(choice_with(256, 14, k2M, 49 * 32768), "F(2) by 49");
  EXPECT_EQ(choice_with(256, 14, k2M, 49 * 32768 - 1), "F(2) by 25");
  // Blocks may leave the second cache by its own size.
  EXPECT_EQ(choice_with(256, 14, "llvm -mcpu=skylake-avx512 -l2=1048576", 49 * 32768),
            "F(2) by 49");
  EXPECT_EQ(choice_with(256, 14, "llvm -mcpu=skylake-avx512 -l2=524288", 49 * 32768), "F(2) by 25");
  EXPECT_EQ(choice_with(128, 28, k2M), "F(4) by 49");
  EXPECT_EQ(choice_with(128, 28, k2M, 49 * 36864 - 1), "F(4) by 25");
  EXPECT_EQ(choice_with(128, 32, k2M, int64_t{1} << 40), "F(4) by 32");
  EXPECT_EQ(choice_with(128, 32, k2M, 32 * 36864 - 1), "F(4) by 22");
  EXPECT_EQ(choice_with(128, 28, "llvm -mcpu=haswell"), "F(4) by 25");
}

// It takes more memory than the other forms, which the program must have anyway, and more filters.
TEST(Winograd, SixRowsAreChosenWhereTheyPay) {
  const char* const haswell = "llvm -mcpu=haswell";
  for (const char* text : {haswell, "llvm -mcpu=skylake-avx512", "llvm -mcpu=x86-64-v2"})
    EXPECT_EQ(choice_with(128, 30, text), "F(6) by 25") << text;
  EXPECT_EQ(choice_with(64, 112, haswell), "F(6) by 25");
  // It would gain less than it costs in filters, code and errors.
  EXPECT_EQ(choice_with(128, 28, haswell), "F(4) by 25");
  // 64 positions of 256 channels are 64 KiB a tile.
  EXPECT_EQ(choice_with(128, 30, haswell, 25 * 65536), "F(6) by 25");
  EXPECT_EQ(choice_with(128, 30, haswell, 25 * 65536 - 1), "F(6) by 13");
  EXPECT_EQ(choice_with(128, 30, haswell, 24 * 65536 - 1), "F(4) by 22");
  EXPECT_EQ(choice_with(128, 36, haswell), "F(6) by 18");
  // 36 tiles of 64 products are as many products as F(4x4) has.
  EXPECT_EQ(choice_with(128, 32, haswell), "F(4) by 22");
  // 9 tiles are enough where the second cache holds the filters, and too few where it does not.
  EXPECT_EQ(choice_with(64, 17, "llvm -mcpu=haswell -l2=2097152"), "F(6) by 9");
  EXPECT_EQ(choice_with(64, 17, haswell), "F(4) by 25");
  // Fewer than 64 channels are summed.
  EXPECT_EQ(choice_with(56, 112, haswell), "F(4) by 32");
}

// Nothing changes where sums are to be computed term by term, or filters are not constant.
TEST(Winograd, IsNotChosenUnasked) {
  const Target target = parse_target("llvm -mcpu=haswell");
  const auto f = testing::conv({64, 64, 28, 28, 3, 1, 1, 8, 2});
  const auto algorithm = [&](const Ref<PrimFunc>& kernel, bool is_fast) {
    std::vector<BlockPlan> plans;
    schedule_by_default(kernel, target, &plans, {}, is_fast);
    for (const BlockPlan& plan : plans)
      if (plan.block == "conv") return plan.algorithm;
    return BlockPlan::Algorithm::kLoops;
  };
  using Algorithm = BlockPlan::Algorithm;
  EXPECT_EQ(algorithm(f, true), Algorithm::kTiles);
  const auto constant = f->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
  EXPECT_EQ(algorithm(constant, false), Algorithm::kTiles);
  EXPECT_EQ(algorithm(constant, true), Algorithm::kWinograd);
}

}  // namespace
}  // namespace tenon::tir
