// SPDX-License-Identifier: Apache-2.0
// Operators that share a name or a place are told apart, and copies of an origin are one operator.
#include "tenon/support/operator_id.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

Origin node() { return Origin::model("m.onnx", "gelu", "Gelu"); }

TEST(OperatorId, TellsOperatorsOfOneNodeApart) {
  const Origin first = node().numbered(1), second = node().numbered(2);
  EXPECT_NE(operator_id(first), operator_id(second));
  EXPECT_FALSE(is_same_operator(first, second));
  EXPECT_EQ(first.str(), second.str());
  const Origin both = Origin::merge({first, second, node().numbered(1)});
  ASSERT_EQ(both->parts.size(), 2);
  EXPECT_EQ(both.name(), "gelu");
}

TEST(OperatorId, CopiesOfAnOriginAreOneOperator) {
  const Origin made_again = node().numbered(3);
  EXPECT_EQ(operator_id(node().numbered(3)), operator_id(made_again));
  EXPECT_EQ(Origin::merge({node().numbered(3), made_again})->kind, OriginInfo::Kind::kModel);
}

TEST(OperatorId, TellsPlacesOfAScriptApart) {
  const auto file = std::make_shared<const SourceFile>(SourceFile{"m.py", ""});
  const auto same = std::make_shared<const SourceFile>(SourceFile{"m.py", ""});
  EXPECT_EQ(operator_id(Origin::script(file, 3, 5)), operator_id(Origin::script(same, 3, 5)));
  EXPECT_NE(operator_id(Origin::script(file, 3, 5)), operator_id(Origin::script(file, 3, 9)));
}

TEST(OperatorId, AMergedOriginHasNoNumber) {
  const Origin merged = Origin::merge({node(), Origin::model("m.onnx", "add", "Add")});
  EXPECT_TRUE(is_same_operator(merged.numbered(4), merged));
  EXPECT_EQ(operator_id(merged).number, 0);
  EXPECT_FALSE(Origin().numbered(4));
}

}  // namespace
}  // namespace tenon
