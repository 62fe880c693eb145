// SPDX-License-Identifier: Apache-2.0
// What definitions of operators state beside their lowerings is true of these.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tenon/graph/op.h"
#include "tenon/interp/interpreter.h"

namespace tenon::graph {
namespace {

Value numbers(DType dtype, const std::vector<double>& values) {
  const std::vector<int64_t> shape = {2, static_cast<int64_t>(values.size()) / 2};
  const auto of = [&](auto zero) {
    std::vector<decltype(zero)> out;
    for (const double value : values) out.push_back(static_cast<decltype(zero)>(value));
    return make<Constant>(TensorData::of(dtype, shape, out));
  };
  if (dtype == kFloat32) return of(float{});
  return dtype == kInt32 ? of(int32_t{}) : of(uint8_t{});
}

// The value of a call on tensors of the first element type that the operator takes.
Ref<TensorData> value_of(const OpDef& op, const std::vector<std::vector<double>>& tensors) {
  for (const DType dtype : {DType(kFloat32), DType(kInt32), DType(kBool)}) {
    std::vector<Value> args;
    for (const std::vector<double>& values : tensors) args.push_back(numbers(dtype, values));
    // Further inputs of these operators are scalars.
    while (args.size() < op.inputs.size()) args.push_back(make<PrimValue>(imm(kFloat32, 0.25)));
    try {
      const Ref<Call> call = call_op(op.name, args);
      (void)type_of(call);
      IRModule module;
      const auto result = interp::Interpreter(module).evaluate_call(call);
      if (result) return result->as<Constant>()->data;
    } catch (const CompileError& error) {
      EXPECT_EQ(error.first().code.id, kDTypeMismatch.id) << op.name << ": " << error.what();
    }
  }
  return nullptr;
}

// Blocks of channels have pad lanes of 0, which such operators read.
TEST(OperatorTraits, ElementwiseInBlocksIsFiniteAtZero) {
  int seen = 0;
  for (const OpDef* op : all_ops()) {
    if (op->layout != LayoutRule::kElementwise) continue;
    // Of casts and of scaled integers what 0 becomes is a number by definition.
    if (op->name == "astype" || op->name == "quantize" || op->name == "dequantize") continue;
    EXPECT_LE(op->fusion, FusionKind::kBroadcast) << op->name;
    const size_t tensors = op->fusion == FusionKind::kElementwise ? 1 : op->inputs.size();
    const auto data = value_of(*op, std::vector(tensors, std::vector<double>(4, 0)));
    ASSERT_TRUE(data) << op->name;
    for (int64_t i = 0; i < data->elements(); ++i)
      EXPECT_TRUE(std::isfinite(data->at_float(i))) << op->name;
    ++seen;
  }
  EXPECT_GT(seen, 40);
}

TEST(OperatorTraits, CommutativeOperatorsCommute) {
  const std::vector<double> a = {0, 1, 3, 1}, b = {1, 0, 2, 1};
  int seen = 0;
  for (const OpDef* op : all_ops()) {
    if (op->inputs.size() != 2 || op->fusion != FusionKind::kBroadcast) {
      EXPECT_FALSE(op->traits.commutative) << op->name;
      continue;
    }
    if (!op->traits.commutative) continue;
    const auto there = value_of(*op, {a, b}), back = value_of(*op, {b, a});
    ASSERT_TRUE(there && back) << op->name;
    EXPECT_TRUE(std::ranges::equal(there->data(), back->data())) << op->name;
    ++seen;
  }
  EXPECT_GT(seen, 10);
}

// An operator that LegalizeOps takes for a reshape gives its argument's elements in order.
TEST(OperatorTraits, ViewsKeepTheOrderOfElements) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  int seen = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->traits.view) continue;
    std::vector<Value> args = {numbers(kFloat32, values)};
    if (op->inputs.size() > 1) args.push_back(make<ShapeExpr>(to_exprs({3, 2})));
    Attrs attrs;
    for (const OpAttr& attr : op->attrs)
      if (!attr.default_value) attrs.set(attr.name, std::vector<int64_t>{1});
    IRModule module;
    const auto result = interp::Interpreter(module).evaluate_call(call_op(op->name, args, attrs));
    ASSERT_TRUE(result) << op->name;
    const TensorData& data = *result->as<Constant>()->data;
    ASSERT_EQ(data.elements(), 6) << op->name;
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(data.at_float(i), values[static_cast<size_t>(i)]) << op->name;
    ++seen;
  }
  EXPECT_GE(seen, 4);
}

}  // namespace
}  // namespace tenon::graph
