// SPDX-License-Identifier: Apache-2.0
// Sets and maps of nodes, and what a walk and a rewrite do with shared ones.
#include "tenon/ir/node_table.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tenon/ir/expr.h"
#include "tenon/ir/visit.h"

namespace tenon {
namespace {

TEST(NodeTable, AMapFindsWhatWasInserted) {
  std::vector<NodePtr> nodes;
  NodeMap<int> map;
  EXPECT_EQ(map.find(int64(1).get()), nullptr);
  for (int i = 0; i < 1000; ++i) {
    nodes.push_back(int64(i));
    map.insert_or_assign(nodes.back(), i);
  }
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(map.find(nodes[static_cast<size_t>(i)].get()), nullptr);
    EXPECT_EQ(*map.find(nodes[static_cast<size_t>(i)].get()), i);
  }
  map.insert_or_assign(nodes[7], 70);
  EXPECT_EQ(*map.find(nodes[7].get()), 70);
  EXPECT_EQ(map.find(int64(7).get()), nullptr);  // equal, but another node
}

TEST(NodeTable, AMapKeepsItsKeysAlive) {
  NodePtr node = int64(3);
  EXPECT_FALSE(node.get()->is_shared());
  NodeMap<NodePtr> map;
  map.insert_or_assign(node, int64(4));
  EXPECT_TRUE(node.get()->is_shared());
  const Node* key = node.get();
  node = nullptr;
  ASSERT_NE(map.find(key), nullptr);
  EXPECT_EQ(as_int(downcast<ExprNode>(*map.find(key))), 4);
}

TEST(NodeTable, AWalkSeesASharedNodeOnce) {
  const Expr x = make<Var>("x", kInt64);
  const Expr shared = x + int64(1), sum = shared * shared + (x + int64(1));
  int additions = 0, uses = 0;
  walk(sum, [&](const NodePtr& node) {
    const auto* binary = node.as<Binary>();
    additions += binary && binary->op == BinaryOp::kAdd;
    uses += node.as<Var>() != nullptr;
  });
  EXPECT_EQ(additions, 3);  // the sum, the shared one, and the one like it
  EXPECT_EQ(uses, 1);
}

TEST(NodeTable, ARewriteKeepsSharingAndSurvivesErrors) {
  const Expr x = make<Var>("x", kInt64);
  const Expr shared = x + int64(1), sum = shared * shared;
  const auto next = [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto number = node.as<IntImm>() ? as_int(downcast<ExprNode>(node)) : std::nullopt;
    if (number) return NodePtr(int64(*number + 1));
    return std::nullopt;
  };
  const Expr changed = rewrite(sum, next);
  const auto& product = *changed.as<Binary>();
  EXPECT_TRUE(product.lhs.same_as(product.rhs));
  EXPECT_TRUE(structural_equal(product.lhs, x + int64(2)));
  // What was rewritten before an error does not show in the next rewrite.
  const auto fails = [](const NodePtr& node) -> std::optional<NodePtr> {
    if (node.as<IntImm>()) throw std::runtime_error("no");
    return std::nullopt;
  };
  EXPECT_THROW(rewrite(sum, fails), std::runtime_error);
  EXPECT_TRUE(structural_equal(rewrite(sum, next), changed));
}

}  // namespace
}  // namespace tenon
