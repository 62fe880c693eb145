// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/program_plan.h"

#include <gtest/gtest.h>

#include "tenon/driver/compiler.h"
#include "tenon/memory/plan_module.h"
#include "tenon/tir/stmt.h"

namespace tenon {
namespace {

using namespace tir;

Ref<Buffer> bytes(const char* name, const Expr& count) {
  return make<Buffer>(name, kUInt8, std::vector<Expr>{count});
}

// `x` -> a -> b -> y by calls of a copy; `a` has `n` bytes, `b` 100.
ProgramPlan plan_of_chain(const Expr& n) {
  const auto x = bytes("x", n), y = bytes("y", n), a = bytes("a", n), b = bytes("b", int64(100));
  const auto from = bytes("from", int64(1)), to = bytes("to", int64(1));
  IRModule module;
  module.set("copy",
             PrimFunc::of_buffers({from, to}, make<BufferStore>(to, load(from, {int64(0)}),
                                                                std::vector<Expr>{int64(0)})));
  const auto call = [](const Ref<Buffer>& in, const Ref<Buffer>& out) {
    return make<CallTir>(make<GlobalVar>("copy"),
                         std::vector<NodePtr>{BufferRegion::whole(in), BufferRegion::whole(out)});
  };
  module.set("main", PrimFunc::of_buffers(
                         {x, y},
                         make<Seq>(std::vector<Stmt>{make<AllocBuffer>(a), call(x, a),
                                                     make<AllocBuffer>(b), call(a, b), call(b, y)}),
                         {{"tenon.entry", true}, {"tenon.num_inputs", int64_t{1}}}));
  PlanWatch watch;
  Pass pass;
  pass.name = "PlanMemory";
  watch.before(pass, module);
  watch.after(pass, memory::plan_memory(module));
  return watch.take();
}

TEST(ProgramPlan, HasCallsWithWhatTheyReadAndWrite) {
  const ProgramPlan plan = plan_of_chain(int64(128));
  ASSERT_EQ(plan.calls.size(), 3U);
  const auto name = [&](size_t call, size_t arg) {
    return plan.memories[plan.calls[call].args[arg].memory].name;
  };
  EXPECT_EQ(name(0, 0), "x");
  EXPECT_EQ(name(0, 1), "a");
  EXPECT_EQ(name(2, 1), "y");
  EXPECT_TRUE(plan.calls[1].args[0].reads && !plan.calls[1].args[0].writes);
  EXPECT_TRUE(plan.calls[1].args[1].writes && !plan.calls[1].args[1].reads);
  using Kind = ProgramPlan::Memory::Kind;
  EXPECT_EQ(plan.memories[plan.calls[0].args[0].memory].kind, Kind::kInput);
  EXPECT_EQ(plan.memories[plan.calls[2].args[1].memory].kind, Kind::kOutput);
  EXPECT_EQ(plan.memories[plan.calls[1].args[0].memory].kind, Kind::kTemporary);
  EXPECT_LT(plan.calls[0].step, plan.calls[1].step);
}

TEST(ProgramPlan, HasThePlacesThatPlanMemoryGave) {
  const ProgramPlan plan = plan_of_chain(int64(128));
  ASSERT_EQ(plan.allocations.size(), 2U);
  for (const ProgramPlan::Allocation& each : plan.allocations) {
    EXPECT_EQ(each.memory, "workspace");
    ASSERT_TRUE(as_int(each.offset));
  }
  const memory::Picture picture = picture_of(plan, {});
  EXPECT_EQ(picture.blocks.size(), 2U);
  EXPECT_EQ(picture.peak, *as_int(plan.bytes));
  EXPECT_GE(picture.peak, 228);
  EXPECT_LE(picture.bound, picture.peak);
  const std::vector<int64_t> live = live_bytes(plan, {});
  EXPECT_EQ(live, (std::vector<int64_t>{128, 228, 100}));
}

TEST(ProgramPlan, SymbolicSizesAreDrawnForAnExample) {
  const ProgramPlan plan = plan_of_chain(Var::size("n"));
  ASSERT_EQ(plan.symbols.size(), 1U);
  EXPECT_FALSE(as_int(plan.bytes));
  EXPECT_EQ(dims_for(plan, {}), (std::map<std::string, int64_t>{{"n", 4}}));
  EXPECT_EQ(dims_for(plan, {{"n", 7}, {"m", 1}}), (std::map<std::string, int64_t>{{"n", 7}}));
  const memory::Picture small = picture_of(plan, {{"n", 64}}),
                        large = picture_of(plan, {{"n", 6400}});
  EXPECT_EQ(small.blocks[0].bytes, 64);
  EXPECT_EQ(large.blocks[0].bytes, 6400);
  EXPECT_GT(large.peak, small.peak);
  EXPECT_NE(large.blocks[0].words.find("n = 6400 bytes at "), std::string::npos)
      << large.blocks[0].words;
  EXPECT_EQ(live_bytes(plan, {{"n", 6400}})[0], 6400);
}

TEST(ProgramPlan, WithoutThePassThereIsNone) {
  const ProgramPlan plan;
  EXPECT_TRUE(picture_of(plan, {}).blocks.empty());
  EXPECT_TRUE(live_bytes(plan, {}).empty());
}

}  // namespace
}  // namespace tenon
