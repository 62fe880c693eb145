// SPDX-License-Identifier: Apache-2.0
// Values of kernels on constants are the interpreter's, bit for bit, or are left to it.
#include "tenon/interp/reference/kernel_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tenon/graph/op.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/visit.h"
#include "tenon/script/parser.h"
#include "tenon/support/deferred_work.h"

namespace tenon::interp {

namespace {

/// Elements, a few of them special: zeros of both signs, infinities, NaN.
Ref<TensorData> random_tensor(DType dtype, std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  const auto count = static_cast<size_t>(checked_elements(shape));
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values(count);
    for (T& value : values)
      value = static_cast<T>(static_cast<double>(random() % 20001) / 100.0 - 100.0);
    if constexpr (std::is_floating_point_v<T>) {
      const T special[] = {0,
                           -T{0},
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::min() / 8};
      for (size_t i = 0; i < count; i += 11) values[i] = special[i / 11 % std::size(special)];
    }
    return TensorData::of(dtype, shape, values);
  };
  if (dtype == kFloat32) return fill(float{});
  if (dtype == kFloat64) return fill(double{});
  if (dtype == kInt64) return fill(int64_t{});
  if (dtype == kBool) {
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = random() % 2;
    return TensorData::of(dtype, shape, values);
  }
  return fill(int8_t{});
}

struct Given {
  IRModule module;
  Ref<graph::Call> call;
};

/// A call of the one kernel of `text` on constants; the last parameter is its result.
Given given(const std::string& text) {
  Given out{script::parse_module("@I.ir_module\nclass Module:\n" + text), {}};
  const auto kernel = out.module.find<tir::PrimFunc>("k");
  std::vector<graph::Value> inputs;
  for (size_t i = 0; i + 1 < kernel->buffers.size(); ++i) {
    const tir::Buffer& buffer = *kernel->buffers[i];
    inputs.push_back(make<graph::Constant>(
        random_tensor(buffer.dtype, *as_ints(buffer.shape), static_cast<unsigned>(1000 + i))));
  }
  const tir::Buffer& result = *kernel->buffers.back();
  out.call = make<graph::Call>(
      graph::find_op("call_tir"),
      std::vector<graph::Value>{make<graph::FuncRef>("k"), make<graph::Tuple>(std::move(inputs))},
      Attrs{}, std::vector<graph::Type>{make<graph::TensorType>(result.shape, result.dtype)});
  return out;
}

void expect_same(const std::string& text) {
  SCOPED_TRACE(text);
  const Given one = given(text);
  const Ref<TensorData> made = kernel_value(one.module, *one.call);
  ASSERT_TRUE(made) << "left to the interpreter";
  const auto value = Interpreter(one.module).evaluate_call(one.call);
  ASSERT_TRUE(value);
  const TensorData& expected = *value->as<graph::Constant>()->data;
  ASSERT_EQ(made->dtype, expected.dtype);
  ASSERT_EQ(made->shape, expected.shape);
  if (made->dtype != kFloat32) {
    EXPECT_TRUE(std::ranges::equal(made->data(), expected.data()));
    return;
  }
  // Of a NaN neither sign nor payload is defined.
  const auto a = made->as_span<float>(), b = expected.as_span<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << "element " << i;
  }
}

/// `rows` times 8 times 40 elements of `value`, of w in other places.
std::string elementwise(const std::string& value, const std::string& dtype = "float32") {
  return "    @T.prim_func\n    def k(w: T.Buffer((5, 8, 40), \"" + dtype +
         "\"), v: T.Buffer((40,), \"" + dtype +
         "\"), m: T.Buffer((5, 8, 40), \"bool\"), f: T.Buffer((5, 8, 40), \"" + dtype +
         "\")):\n"
         "        for o, i, c in T.grid(5, 8, 40):\n"
         "            with T.block(\"f\"):\n"
         "                o_1, i_1, c_1 = T.axis.remap(\"SSS\", [o, i, c])\n"
         "                f[o_1, i_1, c_1] = " +
         value + "\n";
}

TEST(KernelValue, OfArithmetic) {
  for (const char* dtype : {"float32", "float64"})
    for (const std::string& value : {
             std::string("w[o_1, i_1, c_1] + v[c_1]"),
             std::string("w[o_1, 7 - i_1, c_1] - v[39 - c_1]"),
             std::string("w[o_1, i_1, c_1] * v[i_1 * 5]"),
             std::string("w[o_1, i_1, c_1] / w[4 - o_1, i_1, c_1]"),
             std::string("T.min(w[o_1, i_1, c_1], v[c_1])"),
             std::string("T.max(v[c_1], w[o_1, i_1, c_1])"),
             // A multiply-add, a reciprocal or another order would round otherwise.
             "(w[o_1, 1, c_1] * T." + std::string(dtype) + "(0.3) + w[o_1, 2, c_1] * T." + dtype +
                 "(0.7)) / T." + dtype + "(2.9)",
             "w[o_1, i_1, c_1 // 8 * 8 + 7 - c_1 % 8] + T." + std::string(dtype) + "(1)",
         })
      expect_same(elementwise(value, dtype));
}

TEST(KernelValue, OfConditionsOnLoops) {
  for (const char* value : {
           "T.Select(i_1 == 0, T.float32(6) * w[o_1, 0, c_1], v[c_1])",
           "T.Select(i_1 + o_1 * 2 < 7, w[o_1, i_1, c_1], T.float32(0))",
           "T.Select(i_1 >= 3 and not (o_1 != 2), w[o_1, i_1, c_1], v[c_1] + v[c_1])",
           "T.Select(i_1 <= o_1 or i_1 > 5, T.Select(o_1 == 1, v[c_1], v[0]), w[o_1, i_1, c_1])",
           // Every loop is in the condition: one element at a time.
           "T.Select(c_1 < i_1 + o_1, w[o_1, i_1, c_1], v[c_1])",
           "T.Select(c_1 % 4 == 1, w[o_1, i_1, c_1], v[c_1])",
       })
    expect_same(elementwise(value));
}

TEST(KernelValue, OfConditionsOnElements) {
  for (const char* value : {
           "T.Select(w[o_1, i_1, c_1] < v[c_1], w[o_1, i_1, c_1], v[c_1] * v[c_1])",
           "T.Select(w[o_1, i_1, c_1] <= T.float32(0) or v[c_1] > v[0], v[c_1], v[1])",
           "T.Select(m[o_1, i_1, c_1] and w[o_1, i_1, c_1] != v[c_1], v[c_1], v[1])",
           "T.Select(not m[o_1, i_1, c_1], w[o_1, i_1, c_1], T.float32(-0.0))",
           "T.Select(w[o_1, i_1, c_1] == v[c_1], v[c_1], T.Select(v[c_1] >= v[3], v[2], v[3]))",
       })
    expect_same(elementwise(value));
}

TEST(KernelValue, OfMovedElements) {
  for (const char* dtype : {"float32", "int8", "int64", "bool"}) {
    expect_same(elementwise("w[4 - o_1, i_1, c_1]", dtype));
    expect_same(elementwise("w[o_1, i_1 // 2 + 4 * (i_1 % 2), c_1]", dtype));
    expect_same(elementwise("T.Select(m[o_1, i_1, c_1], w[o_1, i_1, c_1], v[c_1])", dtype));
  }
  // Into blocks, as weights are packed.
  expect_same(R"(
    @T.prim_func
    def k(w: T.Buffer((6, 32, 48), "float32"), p: T.Buffer((6, 3, 32, 2, 8), "float32")):
        for a, b, c in T.grid(6, 32, 48):
            with T.block("p"):
                a_1, b_1, c_1 = T.axis.remap("SSS", [a, b, c])
                p[a_1, c_1 // 16, b_1, c_1 % 16 // 8, c_1 % 8] = w[a_1, b_1, c_1]
)");
  // And back, with arithmetic on the way.
  expect_same(R"(
    @T.prim_func
    def k(p: T.Buffer((3, 32, 2, 8), "float32"), w: T.Buffer((32, 48), "float32")):
        for b, c in T.grid(32, 48):
            with T.block("w"):
                b_1, c_1 = T.axis.remap("SS", [b, c])
                w[b_1, c_1] = p[c_1 // 16, b_1, c_1 % 16 // 8, c_1 % 8] * T.float32(3)
)");
}

// As the filters of Winograd's forms are made: rows first, then columns of what they gave.
TEST(KernelValue, OfSeveralSteps) {
  expect_same(R"(
    @T.prim_func
    def k(w: T.Buffer((3, 2, 3, 3, 8, 16), "float32"), f: T.Buffer((48, 2, 8, 16), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((4, 3, 3, 2, 8, 16), "float32")
            for a, b, x, i, tap, c in T.grid(3, 2, 8, 4, 3, 16):
                with T.block("rows"):
                    a_1, b_1, x_1, i_1, tap_1, c_1 = T.axis.remap("SSSSSS", [a, b, x, i, tap, c])
                    t[i_1, tap_1, a_1, b_1, x_1, c_1] = T.Select(i_1 == 0, w[a_1, b_1, 0, tap_1, x_1, c_1], T.Select(i_1 < 3, (w[a_1, b_1, 0, tap_1, x_1, c_1] + w[a_1, b_1, 1, tap_1, x_1, c_1]) / T.float32(2), w[a_1, b_1, 2, tap_1, x_1, c_1]))
            for a, b, x, i, j, c in T.grid(3, 2, 8, 4, 4, 16):
                with T.block("columns"):
                    a_1, b_1, x_1, i_1, j_1, c_1 = T.axis.remap("SSSSSS", [a, b, x, i, j, c])
                    f[(i_1 * 4 + j_1) * 3 + a_1, b_1, x_1, c_1] = T.Select(j_1 == 0, t[i_1, 0, a_1, b_1, x_1, c_1], T.Select(j_1 < 3, (t[i_1, 0, a_1, b_1, x_1, c_1] - t[i_1, 1, a_1, b_1, x_1, c_1]) / T.float32(2), t[i_1, 2, a_1, b_1, x_1, c_1]))
)");
}

TEST(KernelValue, OfOtherLoops) {
  // Longer than a batch; a loop from another number than 0; one that runs once; vectors and threads.
  expect_same(R"(
    @T.prim_func
    def k(w: T.Buffer((7, 1000), "float32"), f: T.Buffer((7, 1, 1000), "float32")):
        for i in T.parallel(7):
            for j in range(1):
                for c in range(2, 1002):
                    f[i, j, c - 2] = w[6 - i, c - 2] + w[i, 1001 - c]
)");
  expect_same(R"(
    @T.prim_func
    def k(w: T.Buffer((3,), "float32"), f: T.Buffer((1,), "float32")):
        f[0] = w[1] * w[2]
)");
}

TEST(KernelValue, IsMadeLater) {
  const Given one = given(R"(
    @T.prim_func
    def k(w: T.Buffer((1024, 128), "float32"), f: T.Buffer((1024, 128), "float32")):
        for i, c in T.grid(1024, 128):
            f[i, c] = w[1023 - i, c] / T.float32(3)
)");
  const Ref<TensorData> now = kernel_value(one.module, *one.call);
  ASSERT_TRUE(now);
  EXPECT_FALSE(now->is_late());
  for (const bool waits : {true, false}) {
    DeferredWorkScope scope;
    const Ref<TensorData> late = kernel_value(one.module, *one.call);
    ASSERT_TRUE(late);
    EXPECT_TRUE(late->is_late());
    if (waits) scope.finish();
    EXPECT_EQ(late->content_hash(), now->content_hash());
  }
}

TEST(KernelValue, IsLeftToTheInterpreter) {
  for (const char* value : {
           "w[o_1, i_1, c_1 + 1]",        // outside
           "w[o_1 * o_1, i_1, c_1]",      // outside, and not affine
           "w[o_1, i_1, T.max(c_1, 3)]",  // not affine
           "w[o_1, c_1 % 8, c_1 // 3]",   // the loop has no whole number of such pieces
           "T.exp(w[o_1, i_1, c_1])",     // other arithmetic
           "f[o_1, i_1, c_1] + v[c_1]",   // what is not written yet
           "T.Cast(\"float32\", c_1)",
       })
    EXPECT_FALSE(kernel_value(given(elementwise(value)).module, *given(elementwise(value)).call))
        << value;
  const std::string parameters = R"(
    @T.prim_func
    def k(w: T.Buffer((8, 40), "float32"), f: T.Buffer((8, 40), "float32")):
)";
  for (const char* body : {
           // Some elements are written twice or never.
           "        for i, c in T.grid(8, 40):\n            f[0, c] = w[i, c]\n",
           "        for i, c in T.grid(4, 40):\n            f[i, c] = w[i, c]\n",
           "        for i, c in T.grid(8, 40):\n            f[i, c // 2] = w[i, c]\n",
           "        for i, c in T.grid(8, 40):\n            f[i // 2 + i % 2, c] = w[i, c]\n",
           // Steps that take turns, or write the same.
           "        for i in range(8):\n"
           "            for c in range(40):\n                f[i, c] = w[i, c]\n"
           "            for c in range(40):\n                f[i, c] = w[i, c] + w[i, c]\n",
           "        for i, c in T.grid(8, 40):\n            f[i, c] = w[i, c]\n"
           "        for i, c in T.grid(8, 40):\n            f[i, c] = w[i, c] + w[i, c]\n",
           // An input that is written.
           "        for i, c in T.grid(8, 40):\n            w[i, c] = w[i, c] + w[i, c]\n"
           "        for i, c in T.grid(8, 40):\n            f[i, c] = w[i, c]\n",
           // A condition around a statement.
           "        for i, c in T.grid(8, 40):\n"
           "            if i < 9:\n                f[i, c] = w[i, c]\n",
       }) {
    const Given one = given(parameters + body);
    EXPECT_FALSE(kernel_value(one.module, *one.call)) << body;
  }
}

TEST(KernelValue, OfConstantsOfOtherShapesIsLeftToTheInterpreter) {
  const Given one = given(elementwise("w[o_1, i_1, c_1] + v[c_1]"));
  std::vector<graph::Value> inputs = one.call->args[1].as<graph::Tuple>()->values;
  inputs[1] = make<graph::Constant>(random_tensor(kFloat32, {39}, 1));
  const auto other = make<graph::Call>(
      one.call->op,
      std::vector<graph::Value>{one.call->args[0], make<graph::Tuple>(std::move(inputs))},
      one.call->attrs, one.call->type_args);
  EXPECT_FALSE(kernel_value(one.module, *other));
}

// Shared parts make the tree of a value grow as 2^60: it is not walked.
TEST(KernelValue, OfAValueThatGrowsIsLeftToTheInterpreter) {
  Given one = given(elementwise("w[o_1, i_1, c_1]"));
  const auto kernel = one.module.find<tir::PrimFunc>("k");
  const auto grown = [&](bool index) {
    IRModule module = one.module;
    module.set("k", rewrite(kernel, [&](const NodePtr& node) -> std::optional<NodePtr> {
                 const auto* store = node.as<tir::BufferStore>();
                 if (!store) return std::nullopt;
                 Expr value = store->value;
                 std::vector<Expr> indices = value.as<tir::BufferLoad>()->indices;
                 for (int i = 0; i < 60; ++i) {
                   if (index)
                     indices[2] = make<Binary>(BinaryOp::kSub, indices[2], indices[2]);
                   else
                     value = make<Binary>(BinaryOp::kAdd, value, value);
                 }
                 if (index) value = tir::load(value.as<tir::BufferLoad>()->buffer, indices);
                 return make<tir::BufferStore>(store->buffer, value, store->indices);
               }));
    return module;
  };
  EXPECT_FALSE(kernel_value(grown(false), *one.call));
  EXPECT_FALSE(kernel_value(grown(true), *one.call));
}

}  // namespace

}  // namespace tenon::interp
