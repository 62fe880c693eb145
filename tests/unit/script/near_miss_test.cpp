// SPDX-License-Identifier: Apache-2.0
// Where a pattern that matches nothing came nearest; networks and patterns are written as text.
#include "tenon/graph/patterns/near_miss.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tenon/graph/builder.h"
#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/script/parser.h"
#include "tenon/script/pattern_file.h"

namespace tenon::graph {
namespace {

constexpr const char* kNetwork = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), b: R.Tensor((1, 4, 1, 1), "float32")) -> R.Tensor((1, 4, 6, 6), "float32"):
        with R.dataflow():
            first = R.nn.conv2d(x, w, strides=[2, 2], padding=[2, 2, 3, 3])
            biased = R.add(b, first)
            active = R.sigmoid(biased)
            plain = R.nn.conv2d(x, w)
            relu = R.nn.relu(plain)
            scaled = R.multiply(relu, b)
            other = R.nn.relu(scaled)
            sum = R.add(other, plain)
            less = R.strided_slice(active, axes=[2], begin=[0], end=[6])
            last = R.add(sum, less)
            R.output(last)
        return last
)";

// The near miss of pattern `p` of a file of combinators.
std::string miss(const std::string& pattern, const char* network = kNetwork) {
  const IRModule module = script::parse_module(network);
  const auto file = script::read_pattern_file(pattern, {.backend = "t"});
  const auto found = nearest_miss(module, file.patterns.at(0).pattern);
  return found ? found->text() : "matches";
}

TEST(NearMiss, AttributeThatDiffers) {
  EXPECT_EQ(
      miss("p = is_op('nn.relu')(is_op('nn.conv2d')(wildcard(), "
           "wildcard()).has_attr({'groups': 2}))"),
      "1 of 2 operators matches: `groups` of `nn.conv2d` (`plain`) is 1 and 2 in the pattern");
}

TEST(NearMiss, ArgumentThatIsAnotherOperator) {
  EXPECT_EQ(
      miss("p = is_op('nn.relu')(is_op('add')(wildcard(), wildcard()))"),
      "1 of 2 operators matches: `x` of `nn.relu` (`relu`) is `nn.conv2d` (`plain`) and `add` "
      "in the pattern");
}

TEST(NearMiss, ConvolutionWithAnotherUser) {
  // The root matches nowhere, or with less: what the convolution is used by says more.
  EXPECT_EQ(miss("c = is_op('nn.conv2d')(wildcard(), wildcard())\n"
                 "s = is_op('add')(c, wildcard())\n"
                 "p = is_op('tanh')(s)\n"
                 "patterns = [('p', p)]"),
            "2 of 3 operators match: `add` (`biased`) is used by `sigmoid` (`active`), and by "
            "`tanh` in the pattern; the module has no `tanh`");
}

TEST(NearMiss, ConstantThatIsAnInput) {
  EXPECT_EQ(miss("p = is_op('nn.conv2d')(wildcard(), is_const())"),
            "1 of 1 operator matches: `weight` of `nn.conv2d` (`first`) is the input `w` and a "
            "constant in the pattern");
}

TEST(NearMiss, InnerValueThatIsUsedElsewhere) {
  EXPECT_EQ(miss("p = is_op('multiply')(is_op('nn.relu')(is_op('nn.conv2d')(wildcard(), "
                 "wildcard())), wildcard())"),
            "3 of 3 operators match: `nn.conv2d` (`plain`) is used by `add` (`sum`), too; the "
            "pattern has no output for it");
}

TEST(NearMiss, DtypeAndShapeThatDiffer) {
  EXPECT_EQ(miss("p = is_op('nn.conv2d')(wildcard().has_dtype('float16'), wildcard())"),
            "1 of 1 operator matches: the input `x` is R.Tensor((1, 3, 8, 8), \"float32\") "
            "and of dtype float16 in the pattern");
  EXPECT_EQ(miss("p = is_op('nn.conv2d')(wildcard(), wildcard().has_shape((4, 3, 1, 1)))"),
            "1 of 1 operator matches: the input `w` is R.Tensor((4, 3, 3, 3), \"float32\") "
            "and of shape (4, 3, 1, 1) in the pattern");
}

TEST(NearMiss, OneValueThatStandsTwice) {
  EXPECT_EQ(miss("x = wildcard()\np = is_op('add')(x, x)"),
            "1 of 1 operator matches: `rhs` of `add` (`biased`) is `nn.conv2d` (`first`) and the "
            "input `b`, which it has elsewhere, in the pattern");
}

TEST(NearMiss, NothingOfThePatternIsThere) {
  EXPECT_EQ(miss("p = is_op('tanh')(is_op('exp')(wildcard()))"),
            "the module has no `tanh` and no `exp`");
}

TEST(NearMiss, NoneWhereItMatches) {
  EXPECT_EQ(miss("p = is_op('sigmoid')(wildcard())"), "matches");
}

TEST(NearMiss, GraphFunctionAsPattern) {
  const IRModule patterns = script::parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def f(x: R.Tensor, w: R.Tensor, b: R.Tensor(ndim=2)):
        R.func_attr({"Pattern": "t.f", "any": True})
        return R.add(b, R.nn.conv2d(x, w))
)");
  const auto found =
      nearest_miss(script::parse_module(kNetwork), read_patterns(patterns).at(0).pattern);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->function, "main");
  EXPECT_EQ(found->at->var->name, "biased");
}

TEST(NearMiss, ComesToAnEnd) {
  const auto seconds = [](int size) {
    IRModule module;
    BlockBuilder builder(module);
    const auto x = make<Var>("x", TensorType::of({4, 4}, kFloat32));
    builder.begin_function({x});
    builder.begin_dataflow();
    Value at = x;
    for (int i = 0; i < size; ++i)
      at = builder.op(i % 3 == 0 ? "matmul" : "add", {at, i % 2 ? Value(x) : at});
    builder.end_dataflow();
    module.set("main", builder.end_function(at));
    DFPattern pattern = wildcard();
    for (int i = 0; i < 12; ++i) {
      pattern =
          is_op("add")(is_op("add")(is_op("matmul")(pattern, wildcard()), wildcard()), is_const());
    }
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(nearest_miss(module, is_op("nn.relu")(pattern)));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Each sum of a value with itself is two ways to match: 2^24 of them, and an end to the search.
  const double large = seconds(8000);
  RecordProperty("milliseconds", static_cast<int>(large * 1e3));
  EXPECT_LT(large, 20);
}

}  // namespace
}  // namespace tenon::graph
