// SPDX-License-Identifier: Apache-2.0
// Attributes of one operator or of several, by the names that people give them.
#include "tenon/graph/operator_attributes.h"

#include <gtest/gtest.h>

#include "tenon/graph/kernels.h"
#include "tenon/ir/expr.h"

namespace tenon::graph {
namespace {

std::string text(const OperatorAttributes& attributes, const std::string& name) {
  const auto value = attributes.find(name);
  return value ? value->str() : "nothing";
}

OperatorAttributes conv_softmax_sum() {
  OperatorAttributes out;
  out.add("nn.conv2d", {{"strides", AttrList{2, 1}}, {"padding", AttrList{3}}, {"groups", 4}}, "c");
  out.add("nn.softmax", {{"axis", 1}});
  out.add("sum", {{"axis", AttrList{2}}, {"keepdims", true}});
  return out;
}

TEST(OperatorAttributes, AreFoundByEverySpelling) {
  const OperatorAttributes a = conv_softmax_sum();
  for (const char* name :
       {"strides[1]", "strides_1", "conv2d.strides[1]", "conv.strides[1]", "nn.conv2d.strides[1]",
        "c.strides[1]", "Conv.strides[1]", "conv2d_strides_1", "c_strides_1", "conv2d.strides_1"})
    EXPECT_EQ(text(a, name), "1") << name;
  EXPECT_EQ(text(a, "strides"), "[2, 1]");
  EXPECT_EQ(text(a, "groups"), "4");
  EXPECT_EQ(text(a, "strides[2]"), "nothing");
  EXPECT_EQ(text(a, "relu.strides"), "nothing");
}

TEST(OperatorAttributes, OnnxsNamesStandBesideOurs) {
  const OperatorAttributes a = conv_softmax_sum();
  EXPECT_EQ(text(a, "padding"), "[3]");
  EXPECT_EQ(text(a, "pads"), "[3, 3, 3, 3]");
  EXPECT_EQ(text(a, "Conv.pads[3]"), "3");
  EXPECT_EQ(text(a, "group"), "4");
  OperatorAttributes two;
  two.add("nn.max_pool2d", {{"padding", AttrList{1, 2}}, {"pool_size", AttrList{3, 3}}});
  EXPECT_EQ(text(two, "pads"), "[1, 2, 1, 2]");
  EXPECT_EQ(text(two, "kernel_shape[1]"), "3");
}

TEST(OperatorAttributes, AnAmbiguousNameMeansNothing) {
  const OperatorAttributes a = conv_softmax_sum();
  EXPECT_EQ(text(a, "axis"), "nothing");
  EXPECT_EQ(text(a, "softmax.axis"), "1");
  EXPECT_EQ(text(a, "sum.axis"), "[2]");
  EXPECT_EQ(a.missing("axis"),
            "`axis` is 1 of `nn.softmax`, [2] of `sum`; say which, as in `nn.softmax.axis`");
  OperatorAttributes same;
  same.add("nn.relu", {{"k", 3}});
  same.add("tanh", {{"k", 3}});
  EXPECT_EQ(text(same, "k"), "3");
}

TEST(OperatorAttributes, TheWholesOwnComeFirst) {
  OperatorAttributes a = conv_softmax_sum();
  a.add_whole("ai.onnx::Thing", {{"axis", 7}});
  EXPECT_EQ(text(a, "axis"), "7");
  EXPECT_EQ(text(a, "softmax.axis"), "1");
}

TEST(OperatorAttributes, AListOfOneStandsForAllItems) {
  const OperatorAttributes a = conv_softmax_sum();
  EXPECT_EQ(text(a, "padding[1]"), "3");
  EXPECT_EQ(a.scalar("padding")->str(), "3");
  EXPECT_FALSE(a.scalar("strides"));
  EXPECT_EQ(as_int(a.number("keepdims")), 1);
  EXPECT_FALSE(a.number("strides"));
  EXPECT_EQ(a.missing("strides"), "`strides` is [2, 1]; expected a number");
}

TEST(OperatorAttributes, StandInExpressions) {
  const OperatorAttributes a = conv_softmax_sum();
  const ExpressionNames names{.values = {{"n", int64(10)}}, .attributes = &a};
  const auto value = [&](const char* expression) {
    return as_int(parse_expression(expression, names, {}, "expression", kBadArgument));
  };
  EXPECT_EQ(value("n * conv.strides[0] + Conv.pads[1]"), 23);
  EXPECT_EQ(value("(n + strides_0 - 1) // strides_0"), 5);
  OperatorAttributes leaky;
  leaky.add("nn.leakyrelu", {{"alpha", 0.125}});
  const ExpressionNames of_leaky{.attributes = &leaky};
  EXPECT_EQ(as_int(parse_condition("alpha < 2 and 8 * alpha == 1", of_leaky, {})), 1);
  EXPECT_EQ(as_int(parse_condition("alpha >= 0.5", of_leaky, {})), 0);
  try {
    value("axis + 1");
    FAIL() << "an ambiguous name";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().message,
              "expression `axis + 1`: `axis` is 1 of `nn.softmax`, [2] of `sum`; say which, as in "
              "`nn.softmax.axis`");
  }
}

}  // namespace
}  // namespace tenon::graph
