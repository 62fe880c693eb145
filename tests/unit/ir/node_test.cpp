// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/node.h"

#include <gtest/gtest.h>

#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"

namespace tenon {
namespace {

TEST(Kinds, TellNodesApart) {
  const NodePtr number = int64(3), name = make<GlobalVar>("f"), symbol = make<ExternFunc>("f");
  EXPECT_NE(number.as<IntImm>(), nullptr);
  EXPECT_EQ(number.as<FloatImm>(), nullptr);
  EXPECT_EQ(name.as<Var>(), nullptr);
  // The base of a family takes all of its kinds and no other's, though numbers of kinds are alike.
  EXPECT_NE(number.as<ExprNode>(), nullptr);
  EXPECT_NE(name.as<ExprNode>(), nullptr);
  EXPECT_EQ(symbol.as<ExprNode>(), nullptr);
  EXPECT_NE(symbol.as<FunctionNode>(), nullptr);
  EXPECT_EQ(number.as<FunctionNode>(), nullptr);
  EXPECT_EQ(NodePtr().as<ExprNode>(), nullptr);
  EXPECT_EQ(number.to<IntImm>().value, 3);
  EXPECT_EQ(kind_of(int64(3) + Expr(var("n"))), ExprKind::kBinary);
  EXPECT_EQ(kind_of(*make<ExternFunc>("f")), FunctionKind::kExternFunc);
}

TEST(With, CopiesWhatOthersHold) {
  const Expr n = var("n");
  const auto sum = make<Binary>(BinaryOp::kAdd, n, int64(1));
  const auto product = with(sum, [](Binary& copy) { copy.op = BinaryOp::kMul; });
  EXPECT_EQ(sum->op, BinaryOp::kAdd);
  EXPECT_EQ(product->op, BinaryOp::kMul);
  EXPECT_EQ(kind_of(*product), ExprKind::kBinary);
  const auto again = with(*product, [](Binary& copy) { copy.op = BinaryOp::kSub; });
  EXPECT_EQ(product->op, BinaryOp::kMul);
  EXPECT_EQ(again->op, BinaryOp::kSub);
}

TEST(With, ChangesInPlaceWhatNobodyElseHolds) {
  auto sum = make<Binary>(BinaryOp::kAdd, var("n"), int64(1));
  const Binary* before = sum.get();
  const auto product = with(std::move(sum), [](Binary& own) { own.op = BinaryOp::kMul; });
  EXPECT_EQ(product.get(), before);
  EXPECT_EQ(product->op, BinaryOp::kMul);
}

TEST(With, ChecksAndDerivesAgain) {
  const Expr n = var("n");
  const auto sum = make<Binary>(BinaryOp::kAdd, n, n);
  EXPECT_EQ(sum->height(), 2U);
  const auto compared = with(sum, [&](Binary& copy) {
    copy.op = BinaryOp::kLT;
    copy.lhs = n * n;
  });
  EXPECT_EQ(compared->dtype, kBool);
  EXPECT_EQ(compared->height(), 3U);
  EXPECT_THROW(with(sum, [](Binary& copy) { copy.rhs = var("x", kFloat32); }), CompileError);
  EXPECT_EQ(sum->rhs->dtype, kInt64);
}

TEST(With, TakesAnyKindOfAFamily) {
  const BaseFunc symbol = make<ExternFunc>("f");
  const BaseFunc hidden = with(symbol, [](FunctionNode& copy) { copy.is_private = true; });
  EXPECT_FALSE(symbol->is_private);
  EXPECT_TRUE(hidden->is_private);
  ASSERT_NE(hidden.as<ExternFunc>(), nullptr);
  EXPECT_EQ(hidden.to<ExternFunc>().symbol, "f");
}

TEST(Kinds, HaveTagsOfTheirOwn) {
  (void)IntImm::static_type();
  claim_tag(tag_of<IntImm>(), "IntImm");
  EXPECT_THROW(claim_tag(tag_of<IntImm>(), "Other"), InternalError);
}

}  // namespace
}  // namespace tenon
