// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong only for some values or sizes are refused by `tenon check --kernels`, and
// right ones that round in another way are not.
#include "checked_kernels.h"
#include "tenon/driver/usage.h"

namespace tenon {
namespace {

std::string elementwise(const std::string& op, const std::string& value,
                        const std::string& dtype = "float32") {
  const std::string buffer = "T.Buffer((\"n\", \"m\"), \"" + dtype + "\")";
  return "@T.prim_func\ndef own(x: " + buffer + ", y: " + buffer +
         "):\n    T.func_attr({\"op\": \"" + op +
         "\"})\n    n = T.int64()\n    m = T.int64()\n"
         "    for i, j in T.grid(n, m):\n        with T.block(\"own\"):\n"
         "            vi, vj = T.axis.remap(\"SS\", [i, j])\n            y[vi, vj] = " +
         value + "\n";
}

std::string take(const std::string& index, const std::string& rows = "\"n\"") {
  return "@T.prim_func\ndef own(x: T.Buffer((" + rows +
         ", \"m\"), \"float32\"), at: T.Buffer((\"k\",), \"int64\"), y: T.Buffer((\"k\", \"m\"), "
         "\"float32\")):\n"
         "    T.func_attr({\"op\": \"take\", \"op_attrs\": {\"axis\": 0}})\n"
         "    n = T.int64()\n    m = T.int64()\n    k = T.int64()\n"
         "    for i, j in T.grid(k, m):\n        y[i, j] = x[" +
         index + ", j]\n";
}

std::string matmul(const std::string& terms) {
  return R"(
@T.prim_func
def own(a: T.Buffer(("n", "k"), "float32"), b: T.Buffer(("k", "m"), "float32"), c: T.Buffer(("n", "m"), "float32")):
    T.func_attr({"op": "matmul"})
    n = T.int64()
    m = T.int64()
    k = T.int64()
    for i, j in T.grid(n, m):
        c[i, j] = T.float32(0)
        for r in range()" +
         terms + R"():
            c[i, j] = c[i, j] + a[i, r] * b[r, j]
)";
}

// exp(x - shift) over its sum.
std::string softmax(const std::string& shift) {
  return R"(
@T.prim_func
def own(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    T.func_attr({"op": "nn.softmax", "op_attrs": {"axis": -1}})
    n = T.int64()
    m = T.int64()
    top = T.alloc_buffer((1,), "float32")
    total = T.alloc_buffer((1,), "float32")
    for i in range(n):
        top[0] = T.min_value("float32")
        for k in range(m):
            top[0] = T.max(top[0], x[i, k])
        total[0] = T.float32(0)
        for k in range(m):
            total[0] = total[0] + T.exp(x[i, k] - )" +
         shift + R"()
        for k in range(m):
            y[i, k] = T.exp(x[i, k] - )" +
         shift + ") / total[0]\n";
}

void expect_refused(const std::string& text, const char* words = "TN0903") {
  const std::string said = checked(text, 1, {});
  EXPECT_NE(said.find(words), std::string::npos) << text << said;
}
void expect_accepted(const std::string& text, const char* words = "own: ok") {
  const std::string said = checked(text, 0, {});
  EXPECT_NE(said.find(words), std::string::npos) << text << said;
}

const std::string kX = "x[vi, vj]";

TEST(WrongKernels, HardswishWithoutItsClamp) {
  expect_refused(elementwise("nn.hardswish", kX + " * (" + kX + " + T.float32(3)) / T.float32(6)"));
  expect_accepted(elementwise("nn.hardswish", kX + " * T.min(T.max(" + kX +
                                                  " + T.float32(3), T.float32(0)), T.float32(6)) / "
                                                  "T.float32(6)"));
}

TEST(WrongKernels, ReluWithACap) {
  for (const char* cap : {"4", "1"})
    expect_refused(elementwise(
        "nn.relu", "T.min(T.max(" + kX + ", T.float32(0)), T.float32(" + std::string(cap) + "))"));
  expect_accepted(elementwise("nn.relu", "T.max(" + kX + ", T.float32(0))"));
}

TEST(WrongKernels, Relu6WithoutTheSix) {
  expect_refused(elementwise("nn.relu6", "T.max(" + kX + ", T.float32(0))"));
  expect_accepted(elementwise("nn.relu6", "T.min(T.max(" + kX + ", T.float32(0)), T.float32(6))"));
}

TEST(WrongKernels, SoftmaxWithoutTheMaximum) {
  expect_refused(softmax("T.float32(0)"));
  expect_accepted(softmax("top[0]"));
}

TEST(WrongKernels, TanhThatOverflows) {
  const std::string e = "T.exp(T.float32(2) * " + kX + ")";
  expect_refused(elementwise("tanh", "(" + e + " - T.float32(1)) / (" + e + " + T.float32(1))"));
  // This form loses all digits of small values to rounding, which is no fault of its logic.
  expect_accepted(elementwise("tanh", "T.float32(1) - T.float32(2) / (" + e + " + T.float32(1))"));
}

TEST(WrongKernels, ExpOfAClippedArgument) {
  expect_refused(
      elementwise("exp", "T.exp(T.min(T.max(" + kX + ", T.float32(-1)), T.float32(1)))"));
}

TEST(WrongKernels, AProductThatStopsEarly) {
  expect_refused(matmul("T.min(k, T.int64(200))"));
  expect_accepted(matmul("k"));
}

TEST(WrongKernels, TakeOfTheFirstTwoRows) {
  expect_refused(take("T.min(T.max(at[i], T.int64(0)), T.int64(1))"));
  expect_accepted(take("T.if_then_else(at[i] < T.int64(0), at[i] + n, at[i])"),
                  "largest error 0\n");
  expect_accepted(take("at[i]"), "indices below 0, which `take` counts from the end, it does not");
  expect_accepted(take("at[i]", "1"));  // an axis of one element has one legal index
}

TEST(WrongKernels, NaNsAndInfinitiesAreSeen) {
  expect_refused(
      elementwise("nn.relu", "T.if_then_else(" + kX + " > T.float32(0), " + kX + ", T.float32(0))"),
      "with NaNs");
  expect_refused(
      elementwise("nn.relu", "T.min(T.max(" + kX + ", T.float32(0)), T.max_value(\"float32\"))"),
      "with infinities");
}

TEST(WrongKernels, SizesMayBeGiven) {
  const std::string text = matmul("T.min(k, T.int64(5000))");
  CheckKernels options;
  options.trials = 1;
  EXPECT_NE(checked(text, 0, options).find("own: ok"), std::string::npos);
  options.sizes = {"k=6000", "n=1", "m=2"};
  EXPECT_NE(checked(text, 1, options).find("TN0903"), std::string::npos);
  for (const char* bad : {"k", "k=", "k=0", "=3", "k=1x", "z=4"}) {
    options.sizes = {bad};
    EXPECT_THROW(checked(text, 1, options), UsageError) << bad;
  }
}

TEST(WrongKernels, ApproximationsNeedATolerance) {
  const std::string text = elementwise("exp", "T.exp(" + kX + ") * T.float32(1.00001)");
  expect_refused(text);
  CheckKernels options;
  options.trials = 2;
  options.tolerance = 1e-3;
  EXPECT_NE(checked(text, 0, options).find("own: ok"), std::string::npos);
}

}  // namespace
}  // namespace tenon
