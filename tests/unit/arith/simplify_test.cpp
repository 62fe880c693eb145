// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tenon/arith/analyzer.h"

namespace tenon::arith {
namespace {

class Simplify : public ::testing::Test {
 protected:
  Simplify() {
    analyzer.bind(i, int64(0), int64(4));
    analyzer.bind(j, int64(0), int64(8));
    analyzer.bind(k, int64(0), n);
  }
  std::string of(const Expr& expr) { return str(analyzer.simplify(expr)); }

  Analyzer analyzer;
  Expr i_ = var("i");
  Ref<Var> i = downcast<Var>(i_), j = var("j"), k = var("k"), x = var("x"), y = var("y");
  Ref<Var> n = Var::size("n"), m = Var::size("m"), h = Var::size("h");
};

TEST_F(Simplify, Sums) {
  EXPECT_EQ(of(x + y - x), "y");
  EXPECT_EQ(of(x * 2 + 3 - (x - 1)), "x + 4");
  EXPECT_EQ(of(Expr(y) + x), "x + y");
  EXPECT_EQ(of(x - y * 2 - 1), "x - y * 2 - 1");
  EXPECT_EQ(of(Expr(n) * 2 * 3), "n * 6");
  EXPECT_EQ(of((Expr(n) + 1) * m - m), "m * n");
  EXPECT_EQ(of(int64(3) - x), "3 - x");
}

TEST_F(Simplify, Quotients) {
  EXPECT_EQ(of(floordiv(i * 8 + j, 8)), "i");
  EXPECT_EQ(of(floormod(i * 8 + j, 8)), "j");
  EXPECT_EQ(of(floordiv(i * 8 + j, 16)), "i // 2");
  EXPECT_EQ(of(floormod(i * 8 + j, 16)), "i % 2 * 8 + j");
  EXPECT_EQ(of(floordiv(floordiv(x, 4), 8)), "x // 32");
  EXPECT_EQ(of(floormod(floormod(x, 32), 8)), "x % 8");
  EXPECT_EQ(of(floordiv(floormod(x, 32), 8)), "x // 8 % 4");
  EXPECT_EQ(of(floordiv(x, 8) * 8 + floormod(x, 8)), "x");
  EXPECT_EQ(of(x - floordiv(x, 8) * 8), "x % 8");
  // Rows of a symbolic length.
  const Expr length = Expr(n) * 4;
  EXPECT_EQ(of(floordiv(x, 8) * (length * 8) + floormod(x, 8) * length + k), "n * x * 4 + k");
  EXPECT_EQ(of(floordiv(x, n) * (length * n) + floormod(x, n) * length), "n * x * 4");
  EXPECT_EQ(of(floordiv(x, 8) * (length * 4) + floormod(x, 8) * length),
            "n * (x // 8) * 16 + n * (x % 8) * 4");
  EXPECT_EQ(of(floordiv(x, 8) * 8 + floormod(floordiv(x, 4), 2) * 4 + floormod(x, 4)), "x");
  EXPECT_EQ(of(floordiv(Expr(n) * 4 * h, 4)), "h * n");
  EXPECT_EQ(of(floordiv(Expr(n) * 4 * h, Expr(h) * 4)), "n");
  EXPECT_EQ(of(floordiv(i * Expr(n) + k, n)), "i");
  EXPECT_EQ(of(floormod(i * Expr(n) + k, n)), "k");
  EXPECT_EQ(of(ceildiv(Expr(n) * 8, int64(8))), "n");
  EXPECT_EQ(of(floordiv(x * 4 + 3, 8)), "x // 2");
  EXPECT_EQ(of((x * 4) / int64(2)), "x * 2");
  // Not x // 4 % 3, which is below 3: what is added carries, (11 % 12 + 3) // 4 is 3.
  EXPECT_EQ(of(floordiv(floormod(x, 12) + 3, 4)), "(x % 12 + 3) // 4");
}

TEST_F(Simplify, FusedIndexStaysWhole) {
  const Ref<Var> a = var("a"), b = var("b");
  analyzer.bind(a, int64(0), int64(5));
  analyzer.bind(b, int64(0), int64(12));
  EXPECT_EQ(of(floordiv(a * 12 + b, 8)), "(a * 12 + b) // 8");
  EXPECT_EQ(of(floormod(a * 12 + b, 4)), "b % 4");
}

TEST_F(Simplify, MinimaAndSelections) {
  EXPECT_EQ(of(min(Expr(i), int64(5))), "i");
  EXPECT_EQ(of(max(x + 3, x + 5)), "x + 5");
  EXPECT_EQ(of(min(x * 8 + 8, Expr(n)) - x * 8), "Min(n - x * 8, 8)");
  EXPECT_EQ(of(max(max(x, y), y)), "Max(x, y)");
  EXPECT_EQ(of(max(y, x) - max(x, y)), "0");
  EXPECT_EQ(of(select(Expr(j) < int64(9), x, y)), "x");
  EXPECT_EQ(of(if_then_else(x > int64(3), max(x, int64(2)), y)), "if_then_else(x > 3, x, y)");
  EXPECT_EQ(of(select(x > y, i + x, x + i)), "i + x");
}

// A padding inside of another one, with the same value outside of both, asks once.
TEST_F(Simplify, ChoicesInsideOfChoices) {
  const auto choice = [](const Expr& condition, const Expr& a, const Expr& b) {
    return if_then_else(condition, a, b);
  };
  EXPECT_EQ(of(choice(x < int64(9), choice(x < int64(8), y, int64(0)), int64(0))),
            "if_then_else(x < 8, y, 0)");
  EXPECT_EQ(of(choice(x < int64(9), choice(y < int64(8), n, int64(0)), int64(0))),
            "if_then_else(y < 8 and x < 9, n, 0)");
  // Another value, and a condition that only counts where the outer one holds.
  EXPECT_EQ(of(choice(x < int64(9), choice(y < int64(8), n, int64(1)), int64(0))),
            "if_then_else(x < 9, if_then_else(y < 8, n, 1), 0)");
  EXPECT_EQ(of(choice(x > int64(0), choice(floordiv(y, x) > int64(3), n, int64(0)), int64(0))),
            "if_then_else(x > 0, if_then_else(y // x > 3, n, 0), 0)");
}

TEST_F(Simplify, Conditions) {
  EXPECT_EQ(of(i * 8 + j < int64(32)), "True");
  EXPECT_EQ(of(i * 8 + j >= int64(32)), "False");
  EXPECT_EQ(of(x * 4 < int64(10)), "x < 3");
  EXPECT_EQ(of(x + 1 <= Expr(y)), "x < y");
  // j is 0 to 7.
  EXPECT_EQ(of(x * 8 + j < y * 8), "x < y");
  EXPECT_EQ(of(x * 8 + j < y * 8 + 16), "x < y + 2");
  EXPECT_EQ(of(x * 8 - j <= y * 8), "x <= y");
  EXPECT_EQ(of(x * 8 + j >= y * 8), "y <= x");
  EXPECT_EQ(of(x * 8 - j < y * 8), "x * 8 < y * 8 + j");
  EXPECT_EQ(of(x * 7 + j < y * 7), "x * 7 + j < y * 7");
  EXPECT_EQ(of(logical_not(x < Expr(y))), "y <= x");
  EXPECT_EQ(of(eq(x * 2, y * 2)), "x == y");
  EXPECT_EQ(of(eq(x * 2, y * 2 + 1)), "False");
  EXPECT_EQ(of(logical_and(x < int64(4), x < int64(8))), "x < 4");
  EXPECT_EQ(of(logical_or(x < int64(4), x < int64(8))), "x < 8");
  EXPECT_EQ(of(logical_and(x > int64(0), x > int64(0))), "x > 0");
  EXPECT_EQ(of(call(IntrinsicId::kLikely, {Expr(i) < int64(4)})), "True");
  EXPECT_EQ(of(Expr(k) < Expr(n)), "True");
}

TEST_F(Simplify, Casts) {
  const Ref<Var> a = var("a", kInt32), b = var("b", kUInt8);
  EXPECT_EQ(of(cast(kInt64, a + int32(1)) - cast(kInt64, a)), "1");
  EXPECT_EQ(of(cast(kInt32, cast(kInt64, a))), "a");
  EXPECT_EQ(of(cast(kInt32, Expr(i))), "int32(i)");
  EXPECT_EQ(of(cast(kInt32, b) < int32(256)), "True");
  // uint8 wraps: 200 + 100 is 44.
  EXPECT_EQ(of(b + imm(kUInt8, int64_t{100}) < b), "b + 100 < b");
  // A narrowing cast of what may not fit stays.
  EXPECT_EQ(of(cast(kInt8, x + 256)), "int8(x + 256)");
  EXPECT_EQ(of(cast(kInt32, x + 256) - int32(256)), "int32(x + 256) - 256");
  EXPECT_EQ(of(cast(kInt64, var("a", kInt32) + 1) - 1), "int64(a)");
  // Widening does not bring back what narrowing has cut off.
  EXPECT_EQ(of(cast(kInt64, cast(kInt32, x))), "int64(int32(x))");
  EXPECT_EQ(of(cast(kInt64, cast(kInt32, x)) - x), "int64(int32(x)) - x");
}

TEST_F(Simplify, FloatsStayExact) {
  const Ref<Var> a = var("a", kFloat32);
  const Expr zero = imm(kFloat32, 0.0), minus = imm(kFloat32, -0.0), one = imm(kFloat32, 1.0);
  EXPECT_EQ(of(make<Binary>(BinaryOp::kMul, a, one)), "a");
  EXPECT_EQ(of(make<Binary>(BinaryOp::kAdd, a, zero)), "a + 0");
  EXPECT_EQ(of(make<Binary>(BinaryOp::kAdd, a, minus)), "a");
  EXPECT_EQ(of(make<Binary>(BinaryOp::kSub, a, zero)), "a");
  EXPECT_EQ(of(make<Binary>(BinaryOp::kSub, a, minus)), "a - -0");  // +0 where a is -0
  EXPECT_EQ(of(make<Binary>(BinaryOp::kMul, a, zero)), "a * 0");
  EXPECT_EQ(of(make<Binary>(BinaryOp::kSub, a, a)), "a - a");
  EXPECT_EQ(of(make<Binary>(BinaryOp::kEQ, a, a)), "a == a");
  EXPECT_EQ(of(call(IntrinsicId::kExp, {cast(kFloat32, x + 1 - x)})), "exp(1)");
}

TEST_F(Simplify, Vectors) {
  const auto ramp = [](const Expr& base, int64_t stride, int64_t lanes) -> Expr {
    return make<Ramp>(base, imm(base->dtype, stride), lanes);
  };
  const auto splat = [](const Expr& value, int64_t lanes) -> Expr {
    return make<Broadcast>(value, lanes);
  };
  EXPECT_EQ(of(ramp(x, 1, 8) + splat(y, 8)), "Ramp(x + y, 1)");
  EXPECT_EQ(of(ramp(x, 1, 8) * splat(int64(4), 8)), "Ramp(x * 4, 4)");
  EXPECT_EQ(of(ramp(x, 1, 8) - ramp(y, 1, 8)), "Broadcast(x - y)");
  EXPECT_EQ(of(floordiv(ramp(x * 8, 1, 8), splat(int64(8), 8))), "Broadcast(x)");
  EXPECT_EQ(of(floormod(ramp(x * 8, 1, 8), splat(int64(8), 8))), "Ramp(0, 1)");
  EXPECT_EQ(of(floordiv(ramp(x, 8, 4), splat(int64(8), 4))), "Ramp(x // 8, 1)");
  EXPECT_EQ(of(ramp(i * 8, 1, 8) < splat(int64(32), 8)), "Broadcast(True)");
}

TEST_F(Simplify, KeepsWhatDoesNotChange) {
  for (const Expr& expr : {x + y, i * 8 + j, floordiv(x, 8), Expr(x) < Expr(y), m * Expr(n),
                           (x + 1) * (y + 1) * (n + 1)})
    EXPECT_TRUE(analyzer.simplify(expr).same_as(expr)) << str(expr);
}

TEST_F(Simplify, CallsWithEffectsAreNeverTheSame) {
  const auto next = [] {
    return call(IntrinsicId::kCallExtern, {make<StringImm>("int64"), make<StringImm>("next")},
                kInt64);
  };
  EXPECT_NE(of(next() - next()), "0");
  EXPECT_EQ(of(call(IntrinsicId::kPopcount, {x}) - call(IntrinsicId::kPopcount, {x})), "0");
}

TEST_F(Simplify, BoundValues) {
  const Ref<Var> one = var("one"), alias = var("alias");
  analyzer.bind(one, int64(0), int64(1));
  analyzer.bind(alias, x * 2);
  EXPECT_EQ(of(one + alias), "x * 2");
  EXPECT_EQ(of(make<Let>(y, int64(3), y + x)), "x + 3");
}

}  // namespace
}  // namespace tenon::arith
