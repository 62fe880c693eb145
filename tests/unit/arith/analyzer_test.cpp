// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/analyzer.h"

#include <gtest/gtest.h>

#include <ctime>

#include "random_exprs.h"

namespace tenon::arith {
namespace {

class Proofs : public ::testing::Test {
 protected:
  Analyzer analyzer;
  Ref<Var> i = var("i"), j = var("j"), x = var("x"), y = var("y");
  Ref<Var> n = Var::size("n"), m = Var::size("m"), h = Var::size("h"), s = Var::size("s");
};

TEST_F(Proofs, EqualShapes) {
  EXPECT_TRUE(analyzer.proves_equal(n * Expr(s), s * Expr(n)));
  EXPECT_TRUE(analyzer.proves_equal(floordiv(n * 4 * Expr(h), 4), n * Expr(h)));
  EXPECT_TRUE(analyzer.proves_equal(Expr(n) * 2 * 3, n * 6));
  EXPECT_TRUE(analyzer.proves_equal(floordiv(n * Expr(s) * h, s * Expr(h)), n));
  EXPECT_TRUE(analyzer.proves_equal((n + 1) * (n - 1), n * Expr(n) - 1));
  EXPECT_TRUE(analyzer.proves_equal(ceildiv(n, int64(8)), floordiv(n - 1, 8) + 1));
  EXPECT_TRUE(analyzer.proves_equal(floordiv(x * 9, 8), x + floordiv(x, 8)));
  EXPECT_TRUE(analyzer.proves_equal(floormod(x * 9, 8), floormod(x, 8)));
  EXPECT_TRUE(analyzer.proves_equal(max(Expr(n), int64(0)), n));
  EXPECT_TRUE(analyzer.proves_equal(cast(kInt64, cast(kInt32, int64(7))), 7));
  EXPECT_FALSE(analyzer.proves_equal(n, m));
  EXPECT_FALSE(analyzer.proves_equal(floordiv(n, 2) * 2, n));
}

TEST_F(Proofs, SymbolicBounds) {
  analyzer.bind(i, int64(0), n);
  analyzer.bind(j, int64(0), m);
  EXPECT_TRUE(analyzer.proves_less(i, n));
  EXPECT_TRUE(analyzer.proves(i + 1 <= Expr(n)));
  EXPECT_FALSE(analyzer.proves_less(i + 1, n));
  EXPECT_TRUE(analyzer.proves_less(i * Expr(m) + j, n * Expr(m)));
  EXPECT_TRUE(analyzer.proves_nonnegative(i * Expr(m) + j));
  EXPECT_FALSE(analyzer.proves_less(i * Expr(m) + j, n * Expr(m) - 1));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(n, 8) * 8, n));
  EXPECT_TRUE(analyzer.proves_less_equal(n, ceildiv(n, int64(8)) * 8));
  EXPECT_TRUE(analyzer.proves_less(ceildiv(n, int64(8)) * 8, n + 8));
  EXPECT_TRUE(analyzer.proves_less_equal(min(x, y), x));
  EXPECT_TRUE(analyzer.proves_less_equal(x, max(y, x)));
  EXPECT_TRUE(analyzer.proves_less_equal(min(x, y) + 1, max(x, y) + 1));
  EXPECT_TRUE(analyzer.proves_less(floormod(x, n), n));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(n, m) * Expr(m), n));
  EXPECT_EQ(analyzer.const_bound(n - floordiv(n, 8) * 8), (ConstBound{0, 7}));
  EXPECT_EQ(analyzer.const_bound(min(x * 8 + 8, Expr(n)) - x * 8).max, 8);
}

TEST_F(Proofs, QuotientsOfDividendsThatLieApart) {
  const auto whole_pieces = [](const Expr& e, int64_t size) { return floordiv(e, size) * size; };
  const Expr e = floordiv(n + 320, 640) - 1;
  EXPECT_TRUE(analyzer.proves_less_equal(whole_pieces(e, 8), whole_pieces(e, 4)));
  EXPECT_TRUE(analyzer.proves_less_equal(whole_pieces(e, 4), e));
  EXPECT_FALSE(analyzer.proves_less_equal(whole_pieces(e, 4), whole_pieces(e, 8)));
  EXPECT_FALSE(analyzer.proves_less_equal(whole_pieces(e + 1, 8), whole_pieces(e, 4)));
  EXPECT_FALSE(analyzer.proves_nonnegative(whole_pieces(e, 8)));
}

TEST_F(Proofs, QuotientsOfSymbolicRanges) {
  analyzer.bind(i, int64(0), n * 4);
  EXPECT_TRUE(analyzer.proves_less(floordiv(i, 4), n));
  EXPECT_FALSE(analyzer.proves_less(floordiv(i, 4), n - 1));
  EXPECT_FALSE(analyzer.proves_less(floordiv(i, 4) + 1, n));
  EXPECT_FALSE(analyzer.proves_less(floordiv(i, 3), n));
  analyzer.bind(j, int64(0), n * Expr(m) * 6);
  EXPECT_TRUE(analyzer.proves_less(floordiv(j, 6), n * Expr(m)));
  EXPECT_TRUE(analyzer.proves_less(floordiv(floordiv(j, 2), 3), n * Expr(m)));
  EXPECT_FALSE(analyzer.proves_less(floordiv(j, 2), n * Expr(m)));
  analyzer.bind(y, int64(0), n * Expr(m) * 2);
  EXPECT_TRUE(analyzer.proves_less(floordiv(y, m), n * 2));
  EXPECT_TRUE(analyzer.proves_less(floordiv(floordiv(y, m), 2), n));
  EXPECT_FALSE(analyzer.proves_less(floordiv(y, m), n));
  EXPECT_FALSE(analyzer.proves_less(floordiv(y, m) + 1, n * 2));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(n, 12) * 12, floordiv(n, 4) * 4));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(x, 12) * 12, floordiv(x, 4) * 4));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(n, 12) * 12 + floormod(floordiv(n, 4), 3) * 4,
                                         floordiv(n, 2) * 2));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(n, 2) * 2 + floormod(n, 2), n));
  EXPECT_TRUE(analyzer.proves_less_equal(floordiv(n, 4) * 4 + floormod(floordiv(n, 2), 2) * 2, n));
  EXPECT_FALSE(analyzer.proves_less_equal(floordiv(n, 4) * 4, floordiv(n, 12) * 12));
  EXPECT_FALSE(analyzer.proves_less_equal(floordiv(n, 6) * 6, floordiv(n, 4) * 4));
}

TEST_F(Proofs, Guards) {
  const Expr index = i * 4 + j;
  analyzer.bind(i, int64(0), ceildiv(n, int64(4)));
  analyzer.bind(j, int64(0), int64(4));
  EXPECT_FALSE(analyzer.proves_less(index, n));
  EXPECT_TRUE(analyzer.proves_less(index, n + 3));
  {
    const auto scope = analyzer.enter(index < Expr(n));
    EXPECT_TRUE(analyzer.proves_less(index, n));
    EXPECT_TRUE(analyzer.proves_less(index + 1, n + 1));
    EXPECT_TRUE(analyzer.proves_less(i * 4, n));
    EXPECT_TRUE(analyzer.proves_positive(n));
    EXPECT_EQ(str(analyzer.simplify(call(IntrinsicId::kLikely, {index < Expr(n)}))), "True");
  }
  EXPECT_FALSE(analyzer.proves_less(index, n));
  {
    const auto scope = analyzer.enter(index < int64(100));
    EXPECT_EQ(analyzer.const_bound(index).max, 99);
    EXPECT_EQ(analyzer.const_bound(index + 5).max, 104);
  }
  {
    const auto scope = analyzer.enter(eq(floormod(n, 8), int64(0)));
    EXPECT_TRUE(analyzer.proves_equal(floordiv(n, 8) * 8, n));
    EXPECT_TRUE(analyzer.proves_divisible(n * 2, 16));
    EXPECT_TRUE(analyzer.proves_divisible(n, 4));
    EXPECT_EQ(analyzer.mod(n + 3), (Modular{8, 3}));
  }
  EXPECT_FALSE(analyzer.proves_divisible(n, 8));
  {
    const auto scope = analyzer.enter(eq(Expr(n), Expr(m)));
    EXPECT_TRUE(analyzer.proves_equal(n * Expr(h), m * Expr(h)));
    EXPECT_TRUE(analyzer.proves_less_equal(n, m));
  }
}

TEST_F(Proofs, ModularFacts) {
  EXPECT_EQ(analyzer.mod(x * 8 + y * 12 + 3), (Modular{4, 3}));
  EXPECT_EQ(analyzer.mod(int64(7)), (Modular{0, 7}));
  EXPECT_TRUE(analyzer.proves_divisible(x * 6 + 12, 6));
  EXPECT_FALSE(analyzer.proves_divisible(x * 6 + 13, 2));
  EXPECT_TRUE(analyzer.proves_divisible(n * Expr(h) * 4, h * 2));
  EXPECT_TRUE(analyzer.proves(ne(x * 4, y * 2 + 1)));
}

TEST_F(Proofs, LinearForms) {
  const std::vector<Ref<Var>> vars{i, j};
  const auto form = analyzer.linear((i + 3) * Expr(n) + j * 4 - i + m, vars);
  ASSERT_TRUE(form);
  EXPECT_EQ(str(form->coefficients), "(n - 1, 4)");
  EXPECT_EQ(str(form->rest), "n * 3 + m");
  EXPECT_FALSE(analyzer.linear(i * Expr(j), vars));
  EXPECT_FALSE(analyzer.linear(floordiv(i, 2), vars));
}

TEST_F(Proofs, ConstantsTooLargeStayAsTheyAre) {
  const int64_t huge = int64_t{1} << 62;
  const Expr expr = x * huge * 4 + x * huge;
  EXPECT_EQ(analyzer.simplify(expr)->dtype, kInt64);
  EXPECT_FALSE(analyzer.proves_less(expr, int64(0)));
  EXPECT_FALSE(analyzer.const_bound(expr).has_max());
}

// Depth, width and sharing cost time in proportion.
TEST_F(Proofs, StaysQuick) {
  const auto milliseconds = [](const auto& work) {
    const std::clock_t start = std::clock();  // of this process: others may load the machine
    work();
    return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  Expr sum = x;
  for (int k = 0; k < 500; ++k) sum = sum + floordiv(i * 8 + j + k, 8) * (k + 1);
  EXPECT_LT(milliseconds([&] { analyzer.simplify(sum); }), 100);
  Expr chosen = x;
  for (int k = 0; k < 100; ++k) chosen = select(x > int64(k), chosen + 1, chosen * 2 + y);
  EXPECT_LT(milliseconds([&] { analyzer.simplify(chosen); }), 1000);
  Expr power = x + 1;
  for (int k = 0; k < 40; ++k) power = power * power;
  EXPECT_LT(milliseconds([&] { analyzer.simplify(power); }), 200);
  Expr least = x;
  for (int k = 0; k < 60; ++k) least = min(least + y, max(least, x * k));
  EXPECT_LT(milliseconds([&] { analyzer.simplify(least); }), 1000);
  Expr deep = x;
  for (int k = 0; k < 300; ++k) deep = floordiv(deep * 3 + y, 2);
  EXPECT_LT(milliseconds([&] { analyzer.simplify(deep); }), 1000);
}

}  // namespace
}  // namespace tenon::arith
