// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/int_set.h"

#include <gtest/gtest.h>

#include "random_exprs.h"

namespace tenon::arith {
namespace {

static std::string text(const Interval& interval) {
  return (interval.min ? str(interval.min) : "-inf") + " .. " +
         (interval.max ? str(interval.max) : "inf");
}

TEST(IntSet, SymbolicEnds) {
  const Ref<Var> i = var("i"), io = var("io"), ii = var("ii"), n = Var::size("n");
  const Domain inner{{ii.get(), Interval::of(int64(0), int64(8))}};
  EXPECT_EQ(text(evaluate(io * 8 + ii, inner)), "io * 8 .. io * 8 + 7");
  EXPECT_EQ(text(evaluate(io * 8 - ii, inner)), "io * 8 - 7 .. io * 8");
  EXPECT_EQ(text(evaluate(floordiv(io * 8 + ii, 8), inner)), "io .. io");
  EXPECT_EQ(text(evaluate(floormod(io * 8 + ii, 8), inner)), "0 .. 7");
  EXPECT_EQ(text(evaluate(floordiv(io * 8 + ii, 4), inner)), "io * 2 .. io * 2 + 1");
  const Domain whole{{i.get(), Interval::of(int64(0), n)}};
  EXPECT_EQ(text(evaluate(i * 2 + 1, whole)), "1 .. n * 2 - 1");
  EXPECT_EQ(text(evaluate(min(Expr(i), int64(5)), whole)), "0 .. Min(n - 1, 5)");
  // An inner range that depends on an outer variable of the domain.
  const Domain nested{{io.get(), Interval::of(int64(0), int64(4))},
                      {i.get(), Interval::of(io * 8, int64(8))}};
  EXPECT_EQ(text(evaluate(Expr(i) + 1, nested)), "1 .. 32");
}

TEST(IntSet, RegionOfATile) {
  const Ref<Var> y = var("y"), r = var("r"), n = Var::size("n");
  const Domain domain{{r.get(), Interval::of(int64(0), int64(3))}};
  Analyzer analyzer;
  const auto box =
      evaluate_region(analyzer, std::vector<Range>{{y * 4 + r, int64(4)}, {int64(0), n}}, domain);
  EXPECT_EQ(text(box[0]), "y * 4 .. y * 4 + 5");
  EXPECT_EQ(str(to_range(analyzer, box[0]).extent), "6");
  EXPECT_EQ(str(to_range(analyzer, box[1]).extent), "n");
}

TEST(IntSet, HoldsEveryValue) {
  const Ref<Var> i = var("i"), j = var("j"), x = var("x"), n = Var::size("n");
  RandomExprs random({i, j, x, n}, kInt64, 7);
  const Domain domain{{i.get(), Interval::of(int64(0), int64(5))},
                      {j.get(), Interval::of(x * 3, int64(4))}};
  int bounded = 0;
  for (int round = 0; round < 3000; ++round) {
    const Expr expr = random.integer(3);
    const Interval interval = evaluate(expr, domain);
    bounded += interval.is_bounded();
    for (int trial = 0; trial < 20; ++trial) {
      const int64_t at_x = random.number(-30, 30), at_n = random.number(1, 20);
      const Point point{{i.get(), random.number(0, 4)},
                        {j.get(), at_x * 3 + random.number(0, 3)},
                        {x.get(), at_x},
                        {n.get(), at_n}};
      const Point outside{{x.get(), at_x}, {n.get(), at_n}};
      const auto value = evaluate(expr, point);
      if (!value) continue;
      if (interval.min) {
        const auto least = evaluate(interval.min, outside);
        if (least) ASSERT_LE(*least, *value) << str(expr) << " in " << text(interval);
      }
      if (interval.max) {
        const auto most = evaluate(interval.max, outside);
        if (most) ASSERT_GE(*most, *value) << str(expr) << " in " << text(interval);
      }
    }
  }
  EXPECT_GT(bounded, 1500);
}

}  // namespace
}  // namespace tenon::arith
