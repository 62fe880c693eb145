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
  EXPECT_EQ(of(floordiv(x, 8) * 8 + floormod(floordiv(x, 4), 2) * 4 + floormod(x, 4)), "x");
  EXPECT_EQ(of(floordiv(Expr(n) * 4 * h, 4)), "h * n");
  EXPECT_EQ(of(floordiv(Expr(n) * 4 * h, Expr(h) * 4)), "n");
  EXPECT_EQ(of(floordiv(i * Expr(n) + k, n)), "i");
  EXPECT_EQ(of(floormod(i * Expr(n) + k, n)), "k");
  EXPECT_EQ(of(ceildiv(Expr(n) * 8, int64(8))), "n");
  EXPECT_EQ(of(floordiv(x * 4 + 3, 8)), "x // 2");
  EXPECT_EQ(of((x * 4) / int64(2)), "x * 2");
}

}  // namespace
}  // namespace tenon::arith
