// SPDX-License-Identifier: Apache-2.0
// Direct references equal the lowered meaning, bit for bit, on random constants.
#include "tenon/interp/reference/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tenon/graph/op.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/deferred_work.h"

namespace tenon::interp {

namespace {

using graph::Value;

Value random_constant(DType dtype, std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  const auto count = static_cast<size_t>(checked_elements(shape));
  const auto fill = [&](auto zero) {
    std::vector<decltype(zero)> values(count);
    for (auto& value : values)
      value = static_cast<decltype(zero)>(static_cast<double>(random() % 20001) / 100.0 - 100.0);
    return TensorData::of(dtype, shape, values);
  };
  Ref<TensorData> data = dtype == kFloat32   ? fill(float{})
                         : dtype == kFloat64 ? fill(double{})
                         : dtype == kInt64   ? fill(int64_t{})
                         : dtype == kInt32   ? fill(int32_t{})
                                             : fill(int8_t{});
  return make<graph::Constant>(data);
}

Value shape_value(const std::vector<int64_t>& dims) {
  return make<graph::ShapeExpr>(to_exprs(dims));
}

void expect_same(std::string_view op, std::vector<Value> args, Attrs attrs = {}) {
  SCOPED_TRACE(std::string(op) + " " + attrs.str());
  const Ref<graph::Call> call = graph::call_op(op, std::move(args), std::move(attrs));
  const Ref<TensorData> direct = reference_value(*call);
  ASSERT_TRUE(direct) << "no direct reference";
  IRModule module;
  const auto lowered = Interpreter(module).evaluate_call(call);
  ASSERT_TRUE(lowered);
  const TensorData& expected = *lowered->as<graph::Constant>()->data;
  ASSERT_EQ(direct->dtype, expected.dtype);
  ASSERT_EQ(direct->shape, expected.shape);
  EXPECT_TRUE(std::ranges::equal(direct->data(), expected.data()));
  // Later: by another thread, or when it is wanted.
  for (const bool waits : {true, false}) {
    DeferredWorkScope scope;
    const Ref<TensorData> late = reference_value(*call);
    if (waits) scope.finish();
    EXPECT_TRUE(std::ranges::equal(late->data(), expected.data()));
  }
}

// Large enough to be moved by several threads.
TEST(ReferenceTest, MovesManyElements) {
  const Value x = random_constant(kFloat32, {67, 129, 130}, 1);
  expect_same("permute_dims", {x}, Attrs{{"axes", std::vector<int64_t>{2, 0, 1}}});
  expect_same("permute_dims", {x}, Attrs{{"axes", std::vector<int64_t>{0, 2, 1}}});
  expect_same("permute_dims", {random_constant(kFloat32, {2, 600000}, 2)});
}

TEST(ReferenceTest, MovesElements) {
  const Value x = random_constant(kFloat32, {3, 4, 5, 2}, 1);
  expect_same("permute_dims", {x});
  expect_same("permute_dims", {x}, Attrs{{"axes", std::vector<int64_t>{0, 2, 3, 1}}});
  expect_same("permute_dims", {random_constant(kInt8, {130, 70}, 2)});
  expect_same("permute_dims", {random_constant(kFloat64, {65, 3, 129}, 3)},
              Attrs{{"axes", std::vector<int64_t>{2, 1, 0}}});
  expect_same("reshape", {x, shape_value({6, 20})});
  expect_same("expand_dims", {x}, Attrs{{"axis", std::vector<int64_t>{0, 5}}});
  expect_same("words", {random_constant(kInt8, {3, 5, 8}, 18)});
  expect_same("broadcast_to", {random_constant(kInt32, {4, 1}, 4), shape_value({2, 4, 3})});
  expect_same("broadcast_to", {random_constant(kFloat32, {}, 5), shape_value({2, 2})});
  expect_same("concat",
              {make<graph::Tuple>(std::vector<Value>{x, random_constant(kFloat32, {3, 1, 5, 2}, 6),
                                                     random_constant(kFloat32, {3, 0, 5, 2}, 7)})},
              Attrs{{"axis", 1}});
}

TEST(ReferenceTest, Slices) {
  const Value x = random_constant(kFloat32, {7, 9}, 8);
  const auto slice = [&](std::vector<int64_t> axes, std::vector<int64_t> begin,
                         std::vector<int64_t> end, std::vector<int64_t> strides) {
    expect_same("strided_slice",
                {x, shape_value(axes), shape_value(begin), shape_value(end), shape_value(strides)});
  };
  slice({0, 1}, {1, 2}, {6, 9}, {2, 3});
  slice({1}, {-4}, {-1}, {1});
  slice({1}, {-1}, {-100}, {-2});  // backwards to the beginning
  slice({0}, {5}, {2}, {1});       // nothing
  slice({0}, {-100}, {100}, {1});  // held in the axis
}

TEST(ReferenceTest, TransformsLayouts) {
  const auto transform = [](std::vector<int64_t> shape, const char* from, const char* to) {
    expect_same("layout_transform", {random_constant(kFloat32, std::move(shape), 9)},
                Attrs{{"src_layout", from}, {"dst_layout", to}});
  };
  transform({8, 12, 3, 3}, "OIHW", "OIHW4i4o");
  transform({7, 5, 3, 2}, "OIHW", "OIHW4i4o");  // both blocks filled up
  transform({1, 6, 2, 2}, "NCHW", "NCHW4c");
  transform({1, 2, 2, 2, 4}, "NCHW4c", "NCHW");
  transform({2, 3, 4, 5}, "NCHW", "NHWC");
}

TEST(ReferenceTest, Computes) {
  for (const DType dtype : {kFloat32, kFloat64, kInt64, kInt32}) {
    const Value a = random_constant(dtype, {3, 1, 5}, 10), b = random_constant(dtype, {4, 1}, 11);
    for (const char* op : {"add", "subtract", "multiply"}) {
      expect_same(op, {a, b});
      expect_same(op, {b, a});
    }
  }
  const Value positive = make<graph::Constant>(
      TensorData::of(kFloat32, {4}, std::vector<float>{1e-30F, 0.1F, 2.0F, 3e30F}));
  expect_same("divide", {random_constant(kFloat32, {3, 4}, 12), positive});
  expect_same("sqrt", {positive});
  expect_same("astype", {random_constant(kFloat32, {50}, 13)}, Attrs{{"dtype", kInt32}});
  expect_same("astype", {random_constant(kInt64, {50}, 14)}, Attrs{{"dtype", kFloat32}});
  expect_same("astype", {random_constant(kFloat64, {50}, 15)}, Attrs{{"dtype", kFloat16}});
}

TEST(ReferenceTest, KeepsSplats) {
  const std::vector<std::byte> one = {std::byte{0}, std::byte{0}, std::byte{128}, std::byte{63}};
  const Value splat = make<graph::Constant>(TensorData::splat(kFloat32, {8, 4}, one));
  for (const auto& call :
       {graph::call_op("permute_dims", {splat}), graph::call_op("add", {splat, splat}),
        graph::call_op("reshape", {splat, shape_value({32})}),
        graph::call_op("words", {make<graph::Constant>(TensorData::splat(
                                    kUInt8, {2, 8}, std::vector<std::byte>{std::byte{7}}))}),
        graph::call_op(
            "full", {shape_value({1 << 20, 1 << 20}), make<graph::PrimValue>(imm(kFloat32, 0.5))})})
    EXPECT_TRUE(reference_value(*call)->is_splat());
}

// Each waits for what it reads, and nothing is read before somebody asks.
TEST(ReferenceTest, MakesLargeOnesLater) {
  const Value x = random_constant(kFloat32, {300, 400}, 18);
  const auto chain = [&] {
    const auto value = [](std::string_view op, std::vector<Value> args, Attrs attrs = {}) {
      const auto call = graph::call_op(op, std::move(args), std::move(attrs));
      return Value(make<graph::Constant>(reference_value(*call)));
    };
    const Value turned = value("permute_dims", {x});
    const Value doubled = value("add", {turned, turned});
    const Value flat = value("reshape", {doubled, shape_value({120000})});
    const Value both = value("concat", {make<graph::Tuple>(std::vector{flat, flat})});
    return value("astype", {both}, Attrs{{"dtype", kFloat64}}).as<graph::Constant>()->data;
  };
  const Ref<TensorData> now = chain();
  EXPECT_FALSE(now->is_late());
  for (const bool waits : {true, false}) {
    DeferredWorkScope scope;
    const Ref<TensorData> late = chain();
    EXPECT_TRUE(late->is_late());
    if (waits) scope.finish();
    EXPECT_TRUE(std::ranges::equal(late->data(), now->data()));
  }
  const DeferredWorkScope scope;
  EXPECT_FALSE(
      reference_value(*graph::call_op("permute_dims", {random_constant(kFloat32, {9, 9}, 19)}))
          ->is_late());
}

// What it cannot do is left to others, not guessed.
TEST(ReferenceTest, LeavesTheRest) {
  const Value x = random_constant(kInt64, {4}, 16);
  EXPECT_FALSE(reference_value(*graph::call_op("divide", {x, x})));  // may divide by zero
  EXPECT_FALSE(reference_value(*graph::call_op("exp", {random_constant(kFloat32, {4}, 17)})));
  const Value var = make<graph::Var>("x", graph::TensorType::of({4}, kInt64));
  EXPECT_FALSE(reference_value(*graph::call_op("add", {x, var})));
}

}  // namespace

}  // namespace tenon::interp
