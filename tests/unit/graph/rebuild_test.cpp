// SPDX-License-Identifier: Apache-2.0
// Passes that have nothing to do leave what they were given, at a cost that does not depend on
// what others made of it: what keeps long networks cheap.
#include "tenon/graph/transforms/rebuild.h"

#include <gtest/gtest.h>

#include "tenon/graph/transforms.h"

namespace tenon::graph {
namespace {

// A chain of `n` operators in one dataflow block.
IRModule chain(int n, const std::string& op) {
  IRModule module;
  BlockBuilder builder(module);
  const auto x = make<Var>("x", make<TensorType>(std::vector<Expr>{int64(4), int64(8)}, kFloat32));
  builder.begin_function({x});
  builder.begin_dataflow();
  Value at = x;
  for (int i = 0; i < n; ++i) at = builder.op(op, {at});
  builder.end_dataflow();
  module.set("main", builder.end_function(at));
  return module;
}

std::vector<Ref<Binding>> bindings_of(const IRModule& module) {
  std::vector<Ref<Binding>> out;
  for (const Ref<BindingBlock>& block : module.find<Function>("main")->body->blocks)
    out.insert(out.end(), block->bindings.begin(), block->bindings.end());
  return out;
}

TEST(Rebuild, IdlePassesLeaveTheVeryFunction) {
  const IRModule given = chain(500, "nn.softmax");
  const auto none = [](const IRModule&, const Ref<Call>&) -> std::optional<Value> {
    return std::nullopt;
  };
  const std::pair<const char*, std::function<IRModule(IRModule)>> passes[] = {
      {"InlineFunctions", inline_functions},
      {"DecomposeOpsForInference", decompose_ops},
      {"SimplifyGraph", simplify_graph},
      {"FoldBatchnormToConv2D", fold_batchnorm},
      {"FoldConstant", [&](IRModule m) { return fold_constants(std::move(m), none); }},
      {"EliminateCommonSubexpr", eliminate_common_subexpr},
      {"DeadCodeElimination", eliminate_dead_code},
  };
  for (const auto& [name, pass] : passes) {
    const IRModule after = pass(given);
    EXPECT_TRUE(after.find("main").same_as(given.find("main"))) << name;
  }
}

TEST(Rebuild, KeepsTheBindingsInFrontOfAChange) {
  IRModule module = chain(100, "exp");
  const std::vector<Ref<Binding>> before = bindings_of(module);
  int at = 0;
  module.set("main", rebuild(module, module.find<Function>("main"),
                             [&](BlockBuilder&, const Binding&,
                                 const Value& value) -> std::optional<Value> {
                               if (at++ != 60) return std::nullopt;
                               return call_op("negative", {value.as<Call>()->args[0]});
                             }));
  const std::vector<Ref<Binding>> after = bindings_of(module);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < 60; ++i) EXPECT_TRUE(after[i].same_as(before[i])) << i;
  for (size_t i = 60; i < 100; ++i) EXPECT_FALSE(after[i].same_as(before[i])) << i;
}

TEST(Rebuild, InferredTypesAreNew) {
  IRModule module = chain(3, "exp");
  const auto main = module.find<Function>("main");
  EXPECT_TRUE(rebuild(module, main, [](BlockBuilder&, const Binding&, const Value&) {
                return std::nullopt;
              }).same_as(main));
  EXPECT_FALSE(with_inferred_types(module, main).same_as(main));
}

TEST(Rebuild, OneKernelForAChain) {
  const IRModule module = legalize_ops(chain(1000, "nn.softmax"));
  EXPECT_EQ(module.functions().size(), 2u);
  EXPECT_EQ(bindings_of(module).size(), 1000u);
}

}  // namespace
}  // namespace tenon::graph
