// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/intrinsic.h"

#include <gtest/gtest.h>

#include "tenon/ir/expr.h"

namespace tenon {
namespace {

TEST(Intrinsics, AreFoundByNameAndById) {
  for (size_t i = 0; i < kIntrinsicCount; ++i) {
    const auto id = static_cast<IntrinsicId>(i);
    const Intrinsic& row = intrinsic(id);
    EXPECT_EQ(row.id, id) << row.name;
    EXPECT_EQ(find_intrinsic(row.name), &row) << row.name;
    EXPECT_FALSE(row.summary.empty()) << row.name;
  }
  EXPECT_EQ(find_intrinsic("no_such_intrinsic"), nullptr);
  EXPECT_EQ(find_intrinsic(""), nullptr);
}

TEST(Intrinsics, GiveCallsTheirDTypes) {
  const Expr x = var("x", kFloat32), i = var("i", kInt64), yes = var("yes", kBool);
  EXPECT_EQ(call(IntrinsicId::kExp, {x})->dtype, kFloat32);
  EXPECT_EQ(call(IntrinsicId::kIsnan, {x})->dtype, kBool);
  EXPECT_EQ(call(IntrinsicId::kIfThenElse, {yes, i, i})->dtype, kInt64);
  EXPECT_EQ(call(IntrinsicId::kMaxValue, {}, kInt8)->dtype, kInt8);
  EXPECT_EQ(call(IntrinsicId::kAssume, {yes})->dtype, kVoid);
  EXPECT_THROW(call(IntrinsicId::kPow, {x}), CompileError);  // takes two
  EXPECT_TRUE(call(IntrinsicId::kExp, {x}).to<Call>().is(IntrinsicId::kExp));
  EXPECT_FALSE(call(IntrinsicId::kExp, {x}).to<Call>().is(IntrinsicId::kExp2));
}

TEST(Intrinsics, TakeTheirDTypes) {
  const Expr x = var("x", kFloat32), i = var("i", kInt64), n = var("n", kInt32);
  EXPECT_THROW(call(IntrinsicId::kBitwiseAnd, {x, x}), CompileError);
  EXPECT_THROW(call(IntrinsicId::kShiftLeft, {i, n}), CompileError);
  EXPECT_THROW(call(IntrinsicId::kSqrt, {i}), CompileError);
  EXPECT_THROW(call(IntrinsicId::kIfThenElse, {i, x, x}), CompileError);
  EXPECT_EQ(call(IntrinsicId::kLdexp, {x, n})->dtype, kFloat32);
  EXPECT_EQ(call(IntrinsicId::kBitwiseAnd, {i < i, i < i})->dtype, kBool);
  EXPECT_EQ(call(IntrinsicId::kAbs, {i})->dtype, kInt64);
}

}  // namespace
}  // namespace tenon
