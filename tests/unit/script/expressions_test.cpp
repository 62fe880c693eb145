// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/expressions.h"

#include <gtest/gtest.h>

#include "tenon/graph/op.h"

namespace tenon::script {
namespace {

using ast::Integer;

graph::Value variable(const char* name) {
  return make<graph::Var>(name, graph::Type(make<graph::TensorType>(
                                    std::vector<Expr>{imm(kInt64, int64_t{2})}, kFloat32)));
}

TEST(Expressions, CallsOfOperatorsAreTrees) {
  const graph::Value x = variable("x"), y = variable("y");
  const Object product = call_word("R.multiply", {x, y});
  const Object sum = operate("+", product, 2.0);
  const auto* call = sum.as<graph::Value>()->as<graph::Call>();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->op->name, "add");
  EXPECT_TRUE(call->args[0].same_as(*product.as<graph::Value>()));
  EXPECT_TRUE(call->args[1].as<graph::Constant>());
  EXPECT_EQ(graph::str(graph::type_of(*sum.as<graph::Value>())), "R.Tensor((2,), \"float32\")");
}

TEST(Expressions, AttributesAndErrorsAreThoseOfTexts) {
  const graph::Value x = variable("x");
  const Object softmax = call_word("R.nn.softmax", {x}, {{"axis", Integer(0)}});
  EXPECT_EQ(softmax.as<graph::Value>()->as<graph::Call>()->attrs.get<int64_t>("axis"), 0);
  try {
    call_word("R.nn.softmax", {x}, {{"axes", Integer(0)}});
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("axes"), std::string::npos) << error.what();
  }
}

TEST(Expressions, TypesScalarsItemsAndDimensions) {
  const Object type = call_word("R.Tensor", {make_list({Integer(2)}, true), std::string("int8")});
  EXPECT_EQ(graph::str(type_of(type)), "R.Tensor((2,), \"int8\")");
  EXPECT_EQ(graph::str(type_of(Path{"R.Object"})), "R.Object");
  EXPECT_TRUE(is_int(*call_word("T.int64", {Integer(4)}).as<Expr>(), 4));
  const std::vector<Expr> dims = dimensions_of(make_list({std::string("n"), Integer(4)}, true));
  ASSERT_EQ(dims.size(), 2u);
  EXPECT_TRUE(dims[0].as<Var>());
  const graph::Value tuple =
      make<graph::Tuple>(std::vector<graph::Value>{variable("x"), variable("y")});
  const Object item = item_of(tuple, Integer(1));
  EXPECT_EQ(item.as<graph::Value>()->as<graph::TupleGetItem>()->index, 1);
}

}  // namespace
}  // namespace tenon::script
