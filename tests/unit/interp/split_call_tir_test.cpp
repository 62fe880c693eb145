// SPDX-License-Identifier: Apache-2.0
// SplitCallTIRByPattern does not change what a program computes. TENON_PATTERN_CASES: how many.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../tir/planted.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"
#include "tenon/graph/verifier.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/verifier.h"

namespace tenon {
namespace {

namespace planted = tir::testing;

/// A graph that calls `function` once; its inputs are what it does not store to.
IRModule module_of(const Ref<tir::PrimFunc>& function) {
  std::set<const Node*> written;
  walk<tir::BufferStore>(
      function->body, [&](const tir::BufferStore& store) { written.insert(store.buffer.get()); });
  std::vector<Ref<tir::Buffer>> inputs, outputs;
  for (const Ref<tir::Buffer>& buffer : function->buffers)
    (written.count(buffer.get()) ? outputs : inputs).push_back(buffer);
  std::vector<Ref<tir::Buffer>> params = inputs;
  params.insert(params.end(), outputs.begin(), outputs.end());
  IRModule module;
  graph::BlockBuilder builder(module);
  std::vector<Ref<graph::Var>> vars;
  std::vector<graph::Value> args;
  for (const Ref<tir::Buffer>& buffer : inputs) {
    vars.push_back(
        make<graph::Var>(buffer->name, make<graph::TensorType>(buffer->shape, buffer->dtype)));
    args.push_back(vars.back());
  }
  std::vector<graph::Type> types;
  for (const Ref<tir::Buffer>& buffer : outputs)
    types.push_back(make<graph::TensorType>(buffer->shape, buffer->dtype));
  const Ref<tir::PrimFunc> kernel = with(*tir::PrimFunc::of_buffers(params, function->body),
                                         [&](tir::PrimFunc& copy) { copy.is_private = true; });
  builder.begin_function(vars);
  const graph::Value result = builder.call_tir("kernel", kernel, args, types);
  module.set("main", builder.end_function(result));
  return module;
}

std::vector<Ref<TensorData>> inputs_of(const IRModule& module) {
  std::vector<Ref<TensorData>> out;
  int value = 0;
  for (const auto& param : module.find<graph::Function>("main")->params) {
    const auto* type = param->type.as<graph::TensorType>();
    const std::vector<int64_t> shape = *type->static_shape();
    std::vector<float> data;
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    for (int64_t i = 0; i < count; ++i)
      data.push_back(static_cast<float>((value++ * 37 + 11) % 64 - 32) / 16.0F);
    out.push_back(TensorData::of(kFloat32, shape, data));
  }
  return out;
}

TEST(SplitCallTIRByPattern, KeepsResults) {
  const char* given = std::getenv("TENON_PATTERN_CASES");
  const int cases = given ? std::atoi(given) : 60;
  int divided = 0;
  for (int n = 0; n < cases; ++n) {
    const int kind = n % planted::kKinds;
    planted::Random random(static_cast<uint32_t>(n) + 7000);
    const auto p = planted::plant(kind, planted::sizes(kind, random), planted::Change::kNone);
    auto target = planted::with_neighbours(p, random);
    target = planted::swapped(planted::scheduled(target, random), random);
    if (random.coin()) target = planted::permuted(target, random);
    const IRModule before = module_of(target);
    graph::SplitOptions options;
    graph::FusionPattern pattern;
    pattern.name = "toy.planted";
    pattern.tir = planted::pattern_of(kind);
    options.patterns.push_back(pattern);
    const RemarkScope remarks;
    const IRModule after = graph::split_call_tir_by_pattern(before, options);
    Diagnostics diagnostics;
    graph::verify(after, diagnostics);
    tir::verify(after, diagnostics);
    diagnostics.throw_if_any();
    bool is_divided = false;
    for (const auto& [name, function] : after.functions())
      is_divided |= function->attrs.contains("Composite");
    EXPECT_TRUE(is_divided) << "case " << n << ": " << remarks.remarks().back().detail;
    divided += is_divided;
    const auto inputs = inputs_of(before);
    const auto a = interp::Interpreter(before).run_main(inputs);
    const auto b = interp::Interpreter(after).run_main(inputs);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i]->shape, b[i]->shape);
      for (int64_t k = 0; k < a[i]->elements(); ++k)
        ASSERT_NEAR(a[i]->at_float(k), b[i]->at_float(k), 1e-4 * (1 + std::abs(a[i]->at_float(k))))
            << "case " << n << ", output " << i << ", element " << k;
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(divided, cases);
}

TEST(SplitCallTIRByPattern, AsksTheBackEnd) {
  planted::Random random(3);
  const auto p = planted::plant(0, planted::sizes(0, random), planted::Change::kNone);
  const IRModule before = module_of(planted::with_neighbours(p, random));
  const auto composites = [&](const graph::FusionPattern& pattern) {
    graph::SplitOptions options;
    options.patterns.push_back(pattern);
    std::vector<BaseFunc> out;
    const IRModule after = graph::split_call_tir_by_pattern(before, options);
    for (const auto& [name, function] : after.functions())
      if (function->attrs.contains("Composite")) out.push_back(function);
    return out;
  };
  graph::FusionPattern pattern;
  pattern.name = "toy.product";
  pattern.tir = planted::pattern_of(0);
  pattern.check = [](const graph::PatternCheck& check) {
    EXPECT_EQ(check.composite->params.size(), 2U);
    return graph::Verdict::refuse("size", "too small");
  };
  const RemarkScope remarks;
  EXPECT_TRUE(composites(pattern).empty());
  EXPECT_EQ(remarks.remarks().front().verdict, "refused");
  EXPECT_EQ(remarks.remarks().front().reason, "size");
  pattern.check = {};
  pattern.attrs = [](const graph::PatternCheck&) { return Attrs{{"kernel", "small"}}; };
  const auto taken = composites(pattern);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0]->attrs.get<std::string>("kernel"), "small");
  EXPECT_TRUE(taken[0]->is_private);
}

}  // namespace
}  // namespace tenon
