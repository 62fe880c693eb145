// SPDX-License-Identifier: Apache-2.0
// Memory planning of whole programs.
#include "tenon/memory/plan_module.h"

#include <gtest/gtest.h>

namespace tenon::memory {
namespace {

using namespace tir;

Ref<Buffer> floats(const std::string& name, int64_t count) {
  return make<Buffer>(name, kFloat32, std::vector<Expr>{int64(count)});
}
Stmt call(const Ref<Buffer>& from, const Ref<Buffer>& to) {
  return make<CallTir>(make<GlobalVar>("f"),
                       std::vector<NodePtr>{BufferRegion::whole(from), BufferRegion::whole(to)});
}
/// x -> a -> b -> c -> y, each intermediate allocated just before its call.
Ref<PrimFunc> chain(int64_t count) {
  const auto x = floats("x", count), a = floats("a", count), b = floats("b", count),
             c = floats("c", count), y = floats("y", count);
  return PrimFunc::of_buffers(
      {x, y},
      make<Seq>(std::vector<Stmt>{make<AllocBuffer>(a), call(x, a), make<AllocBuffer>(b),
                                  call(a, b), make<AllocBuffer>(c), call(b, c), call(c, y)}),
      {{"tenon.entry", true}, {"tenon.num_inputs", int64_t{1}}});
}

TEST(PlanModule, AChainNeedsTwoBuffers) {
  IRModule module;
  module.set("main", chain(16));
  module = plan_memory(module);
  const auto main = module.find<PrimFunc>("main");
  EXPECT_EQ(main->attrs.get<int64_t>("tenon.workspace_bytes"), 128);
  EXPECT_EQ(main->attrs.get<int64_t>("tenon.bound_bytes"), 128);
  EXPECT_EQ(main->buffers.back()->name, "workspace");
  int left = 0, views = 0;
  walk<AllocBuffer>(main, [&](const AllocBuffer&) { ++left; });
  walk<DeclBuffer>(main, [&](const DeclBuffer&) { ++views; });
  EXPECT_EQ(left, 0);
  EXPECT_EQ(views, 3);
}

TEST(PlanModule, PlanningTwiceChangesNothing) {
  IRModule module;
  module.set("main", chain(16));
  module = plan_memory(module);
  EXPECT_TRUE(structural_equal(module, plan_memory(module)));
}

TEST(PlanModule, AViewKeepsItsBufferAlive) {
  const auto x = floats("x", 16), a = floats("a", 16), b = floats("b", 16), y = floats("y", 16);
  const auto view = floats("view", 16);
  const auto main = PrimFunc::of_buffers(
      {x, y},
      make<Seq>(std::vector<Stmt>{make<AllocBuffer>(a), call(x, a), make<DeclBuffer>(view, a->data),
                                  make<AllocBuffer>(b), call(x, b), call(b, y), call(view, y)}));
  const ModuleProblem problem = extract_problem(*main);
  ASSERT_EQ(problem.allocations.size(), 2U);
  EXPECT_GT(problem.allocations[0].upper, problem.allocations[1].upper);
}

TEST(PlanModule, WhatALoopUsesLivesForAllOfIt) {
  const auto x = floats("x", 16), a = floats("a", 16), b = floats("b", 16), y = floats("y", 16);
  const Ref<Var> i = var("i");
  const Stmt body =
      make<Seq>(std::vector<Stmt>{call(a, y), make<AllocBuffer>(b), call(x, b), call(b, y)});
  const auto main = PrimFunc::of_buffers(
      {x, y},
      make<Seq>(std::vector<Stmt>{make<AllocBuffer>(a), call(x, a), nest({i}, {int64(4)}, body)}));
  const ModuleProblem problem = extract_problem(*main);
  ASSERT_EQ(problem.allocations.size(), 2U);
  // `a` is read in the first statement of the body, again in the next iteration: `b` must not take
  // its place.
  EXPECT_GE(problem.allocations[0].upper, problem.allocations[1].upper);
}

TEST(PlanModule, SymbolicSizesGiveAnExpression) {
  const Ref<Var> n = Var::size("n");
  const auto sized = [&](const std::string& name) {
    return make<Buffer>(name, kFloat32, std::vector<Expr>{n, int64(4)});
  };
  const auto x = sized("x"), a = sized("a"), b = sized("b"), y = sized("y");
  IRModule module;
  module.set("main", PrimFunc::of_buffers(
                         {x, y},
                         make<Seq>(std::vector<Stmt>{make<AllocBuffer>(a), call(x, a),
                                                     make<AllocBuffer>(b), call(a, b), call(b, y)}),
                         {{"tenon.entry", true}}));
  module = plan_memory(module);
  const auto main = module.find<PrimFunc>("main");
  const auto bytes = main->attrs.get<NodePtr>("tenon.workspace_bytes");
  ASSERT_TRUE(bytes);
  const NodePtr at_8 = rewrite(
      substitute(*bytes, {{n.get(), int64(8)}}), [](const NodePtr& node) -> std::optional<NodePtr> {
        const auto* op = node.as<Binary>();
        return op ? std::optional<NodePtr>(binary(op->op, op->lhs, op->rhs)) : std::nullopt;
      });
  EXPECT_EQ(as_int(downcast<ExprNode>(at_8)), 256);
}

}  // namespace
}  // namespace tenon::memory
