// SPDX-License-Identifier: Apache-2.0
// Loops that the interpreter runs without a step for each instruction: the same values, and the
// same errors at the same places.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/interp/interpreter.h"
#include "tenon/script/parser.h"

namespace tenon::interp {
namespace {

// A PrimFunc of `x` (n = 40 elements) and `y` (as many).
std::vector<float> run(const std::string& body, std::vector<float> x, int64_t step_limit = 0) {
  const IRModule module = script::parse_module(
      "@T.prim_func\ndef f(x: T.Buffer((40,), \"float32\"), y: T.Buffer((40,), \"float32\")):\n" +
      body);
  const auto out = Interpreter(module, {.step_limit = step_limit})
                       .run_prim_func("f", {TensorData::of(kFloat32, {40}, x), nullptr})
                       .at(1);
  const auto values = out->as_span<float>();
  return {values.begin(), values.end()};
}

std::vector<float> counting() {
  std::vector<float> x(40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  return x;
}

TEST(InnerLoops, ResultsFeedLaterIterations) {
  const std::vector<float> sums = run(
      "    y[0] = x[0]\n    for i in range(39):\n        y[i + 1] = y[i] + x[i + 1]\n", counting());
  EXPECT_EQ(sums[39], 39 * 40 / 2);
  // The sum stands where a later term is read.
  const std::vector<float> own =
      run("    for i in range(40):\n        y[i] = x[i]\n"
          "    for i in range(40):\n        y[20] = y[20] + y[i]\n",
          counting());
  float sum = 20;
  for (int i = 0; i < 40; ++i) sum += i == 20 ? sum : static_cast<float>(i);
  EXPECT_EQ(own[20], sum);
  const std::vector<float> products =
      run("    for i in range(40):\n        y[i] = x[i]\n"
          "    for i in range(40):\n        y[20] = y[20] + y[i] * x[1]\n",
          counting());
  EXPECT_EQ(products[20], sum);
}

TEST(InnerLoops, GoBackwardsAndStandStill) {
  const std::vector<float> reversed =
      run("    for i in range(40):\n        y[i] = x[39 - i]\n", counting());
  EXPECT_EQ(reversed[0], 39);
  EXPECT_EQ(reversed[39], 0);
  const std::vector<float> last =
      run("    for i in range(40):\n        y[i] = x[0]\n    for i in range(40):\n"
          "        y[3] = x[i] * T.float32(2)\n",
          counting());
  EXPECT_EQ(last[3], 78);
  EXPECT_EQ(last[4], 0);
}

TEST(InnerLoops, NaNsStay) {
  std::vector<float> x = counting();
  x[7] = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"max", "min"}) {
    const std::vector<float> y =
        run("    for i in range(40):\n        y[i] = T.float32(0)\n"
            "    for i in range(40):\n        y[0] = T." +
                std::string(op) + "(y[0], x[i])\n",
            x);
    EXPECT_TRUE(std::isnan(y[0]));
  }
}

std::string error_of(const std::string& body, int64_t step_limit = 0) {
  try {
    run(body, counting(), step_limit);
  } catch (const CompileError& error) {
    return std::string(error.first().code.id) + ": " + error.first().message;
  }
  return "none";
}

TEST(InnerLoops, ReadsBeforeWritesAreFound) {
  const std::string half = "    for i in range(20):\n        y[i] = x[i]\n";
  const std::string found = "element (20) of buffer `y` is read before it is written";
  for (const char* loop : {"y[39] = y[i]", "y[i] = y[i] + x[i]", "y[0] = y[0] + y[i]",
                           "y[0] = y[0] + y[i] * x[i]", "y[i] = y[i] + x[i] * x[0]"}) {
    const std::string said = error_of(half + "    for i in range(39):\n        " + loop + "\n");
    EXPECT_NE(said.find(found), std::string::npos) << loop << ": " << said;
  }
  EXPECT_NE(error_of("    for i in range(40):\n        y[0] = y[0] + x[i]\n").find("element (0)"),
            std::string::npos);
}

TEST(InnerLoops, CountSteps) {
  const std::string long_loop =
      "    y[0] = T.float32(0)\n    for i, j in T.grid(1000000, 40):\n        y[0] = y[0] + x[j]\n";
  EXPECT_NE(error_of(long_loop, 100000).find("limit of steps"), std::string::npos);
}

TEST(InnerLoops, NarrowIntegersWrap) {
  const IRModule module = script::parse_module(
      "@T.prim_func\ndef f(x: T.Buffer((2,), \"int32\"), b: T.Buffer((2,), \"int8\"), y: "
      "T.Buffer((4,), \"int32\"), z: T.Buffer((2,), \"int8\")):\n"
      "    y[0] = x[0] + x[1]\n    y[1] = x[0] * x[1]\n    y[2] = x[1] - x[0]\n"
      "    y[3] = T.Cast(\"int32\", b[0]) * T.Cast(\"int32\", b[1])\n"
      "    z[0] = b[0] + b[1]\n    z[1] = b[0] * b[1]\n");
  const std::vector<int32_t> x{2147483647, 2};
  const std::vector<int8_t> b{-128, -1};
  const auto out = Interpreter(module).run_prim_func(
      "f", {TensorData::of(kInt32, {2}, x), TensorData::of(kInt8, {2}, b), nullptr, nullptr});
  EXPECT_EQ(out[2]->to_ints(), (std::vector<int64_t>{-2147483647, -2, -2147483645, 128}));
  EXPECT_EQ(out[3]->to_ints(), (std::vector<int64_t>{127, -128}));
}

}  // namespace
}  // namespace tenon::interp
