// SPDX-License-Identifier: Apache-2.0
// Results are compared by what rounding explains: relative to the values that there are.
#include "tenon/driver/expectation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/driver/random_values.h"
#include "tenon/driver/validate.h"
#include "tenon/interp/interpreter.h"
#include "tenon/script/parser.h"

namespace tenon {
namespace {

IRModule unary(const std::string& value, const std::string& dtype = "float32") {
  const std::string type = "R.Tensor((\"n\", 3), \"" + dtype + "\")";
  return script::parse_module("@R.function\ndef main(x: " + type + ") -> " + type +
                              ":\n    n = T.int64()\n    with R.dataflow():\n" + value +
                              "        R.output(y)\n    return y\n");
}

Pass reassociating() {
  Pass pass;
  pass.name = "Rewritten";
  pass.precision = Precision::kReassociating;
  return pass;
}

bool agrees(const IRModule& before, const IRModule& after) {
  try {
    Validator().compare(reassociating(), before, after);
    return true;
  } catch (const InternalError&) {
    return false;
  }
}

TEST(Expectation, SmallValuesAreNotZero) {
  const IRModule small = unary("        y = R.multiply(x, R.const(5e-5, \"float32\"))\n");
  EXPECT_FALSE(agrees(small, unary("        y = R.subtract(x, x)\n")));
  EXPECT_TRUE(agrees(small, unary("        a = R.multiply(x, R.const(1e-5, \"float32\"))\n"
                                  "        y = R.multiply(a, R.const(5, \"float32\"))\n")));
  EXPECT_FALSE(agrees(small, unary("        y = R.multiply(x, R.const(5.001e-5, \"float32\"))\n")));
}

TEST(Expectation, CancellationIsExplainedByRounding) {
  // (x + 1000) - 1000 keeps few digits of x, but says no more than that.
  const IRModule rough = unary(
      "        a = R.add(x, R.const(1000, \"float32\"))\n"
      "        y = R.subtract(a, R.const(1000, \"float32\"))\n");
  EXPECT_TRUE(agrees(rough, unary("        y = R.multiply(x, R.const(1, \"float32\"))\n")));
  EXPECT_FALSE(agrees(rough, unary("        y = R.multiply(x, R.const(1.01, \"float32\"))\n")));
  EXPECT_FALSE(agrees(rough, unary("        y = R.negative(x)\n")));
}

TEST(Expectation, ValuesOfAllScalesAreCompared) {
  EXPECT_FALSE(agrees(unary("        y = R.nn.relu(x)\n"),
                      unary("        y = R.clip(x, R.prim_value(0), R.prim_value(1))\n")));
}

TEST(Expectation, ToleranceGrowsWithTheRootOfTheTerms) {
  const Tolerance one = rounding_tolerance(kFloat32, 1), many = rounding_tolerance(kFloat32, 10000);
  EXPECT_EQ(one.relative, 16 * 0x1p-24);
  EXPECT_EQ(one.largest, 0);
  EXPECT_EQ(many.largest, 8 * 100 * 0x1p-24);
  EXPECT_EQ(rounding_tolerance(kFloat16, 4).largest, 16 * 0x1p-11);
  EXPECT_EQ(rounding_tolerance(kInt32, 100).absolute, 0);
}

TEST(Expectation, WithoutRunsAgainTheBoundDecides) {
  const auto floats = [](std::vector<float> values) {
    return TensorData::of(kFloat32, {static_cast<int64_t>(values.size())}, values);
  };
  Expectation expected({floats({1, 100})}, 1, {});
  EXPECT_FALSE(expected.mismatch(0, *floats({1.0000005F, 100})));
  const auto wrong = expected.mismatch(0, *floats({1.00001F, 100}));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->first, 0);
  EXPECT_EQ(wrong->count, 1);
  Expectation sums({floats({1, 100})}, 10000, {});
  EXPECT_FALSE(sums.mismatch(0, *floats({1.00001F, 100})));
  EXPECT_TRUE(sums.mismatch(0, *floats({1.1F, 100})));
  EXPECT_TRUE(sums.mismatch(0, *floats({1})));
}

TEST(RandomRounding, MovesWhatIsNotExact) {
  const IRModule module = unary(
      "        a = R.multiply(x, R.const(0.1, \"float32\"))\n"
      "        y = R.exp(a)\n");
  const auto x = TensorData::of(kFloat32, {1, 3}, std::vector<float>{0, 0.7F, 30});
  const auto run = [&](uint64_t seed) {
    return interp::Interpreter(module, {.rounding_seed = seed}).run_main({x})[0];
  };
  const auto nominal = run(0);
  double most = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const auto moved = run(seed);
    EXPECT_EQ(moved->at_float(0), 1);  // exp(0) is exact
    for (int64_t i = 1; i < 3; ++i) {
      const double share = std::fabs(moved->at_float(i) / nominal->at_float(i) - 1);
      EXPECT_LT(share, 20 * 0x1p-23);
      most = std::max(most, share);
    }
    EXPECT_EQ(run(seed)->at_float(1), moved->at_float(1));  // the same for the same seed
  }
  EXPECT_GT(most, 0);
}

// ---- what inputs are for

std::vector<InputMeaning> meanings(const std::string& text) {
  return input_meanings(script::parse_module(text));
}
using Kind = InputMeaning::Kind;

TEST(InputMeaning, FollowsIndicesThroughMovesAndCalls) {
  const auto found = meanings(R"(
@I.ir_module
class Module:
    @R.function
    def rows(t: R.Tensor((50, 4), "float32"), i: R.Tensor((6,), "int64")) -> R.Tensor((6, 4), "float32"):
        with R.dataflow():
            y = R.take(t, i, axis=0)
            R.output(y)
        return y
    @R.function
    def main(table: R.Tensor((50, 4), "float32"), ids: R.Tensor((2, 3), "int32"), bits: R.Tensor((2,), "int32"),
             scale: R.Tensor((4,), "float32")) -> R.Tensor((6, 4), "float32"):
        cls = Module
        with R.dataflow():
            flat = R.reshape(ids, R.shape([6]))
            wide = R.astype(flat, dtype="int64")
            a: R.Tensor((6, 4), "float32") = cls.rows(table, wide)
            y = R.divide(a, scale)
            R.output(y)
        return y
)");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].kind, Kind::kValue);
  EXPECT_EQ(found[1].kind, Kind::kIndex);
  EXPECT_EQ(*as_int(found[1].extent), 50);
  EXPECT_TRUE(found[1].from_end);
  EXPECT_EQ(found[2].kind, Kind::kValue);
  EXPECT_EQ(found[3].kind, Kind::kDivisor);
}

TEST(InputMeaning, SeesIndicesThatAreCountedFromTheEndByHand) {
  const auto found = meanings(R"(
@R.function
def main(table: R.Tensor((50, 4), "float32"), ids: R.Tensor((3,), "int64")) -> R.Tensor((3, 4), "float32"):
    with R.dataflow():
        below = R.less(ids, R.const(0, "int64"))
        shifted = R.add(ids, R.const(50, "int64"))
        rows = R.where(below, shifted, ids)
        y = R.take(table, rows, axis=0)
        R.output(y)
    return y
)");
  EXPECT_EQ(found[1].kind, Kind::kIndex);
}

TEST(InputMeaning, IntegersThatIndicesAreComputedFromStaySmall) {
  const auto found = meanings(R"(
@R.function
def main(table: R.Tensor((50, 4), "float32"), ids: R.Tensor((3,), "int64")) -> R.Tensor((3, 4), "float32"):
    with R.dataflow():
        next = R.add(ids, R.const(1, "int64"))
        y = R.take(table, next, axis=0)
        R.output(y)
    return y
)");
  EXPECT_EQ(found[1].kind, Kind::kSteers);
}

TEST(InputMeaning, OfLoops) {
  const auto found = meanings(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer((9,), "float32"), i: T.Buffer((4,), "int32"), d: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"tenon.num_inputs": 3})
        for k in range(4):
            y[k] = T.sqrt(x[i[k]]) / d[k]
)");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[1].kind, Kind::kIndex);
  EXPECT_EQ(*as_int(found[1].extent), 9);
  EXPECT_FALSE(found[1].from_end);
  EXPECT_EQ(found[0].kind, Kind::kPositive);
  EXPECT_EQ(found[2].kind, Kind::kDivisor);
}

TEST(RandomValues, CoverWhatIsLegal) {
  RandomRange range;
  range.kind = Kind::kIndex;
  range.extent = 7;
  range.from_end = true;
  const auto indices = random_values(kInt32, {400}, 1, range);
  int64_t least = 0, most = 0;
  for (const int64_t value : indices->to_ints()) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_EQ(least, -7);
  EXPECT_EQ(most, 6);
  range = {.kind = Kind::kDivisor, .values = Values::kScales};
  for (const int64_t value : random_values(kInt8, {1000}, 1, range)->to_ints()) EXPECT_NE(value, 0);
  range = {.values = Values::kScales};
  const auto floats = random_values(kFloat32, {4000}, 1, range);
  double largest = 0;
  for (int64_t i = 0; i < 4000; ++i) largest = std::max(largest, std::fabs(floats->at_float(i)));
  EXPECT_GT(largest, 100);
}

}  // namespace
}  // namespace tenon
