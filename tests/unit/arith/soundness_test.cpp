// SPDX-License-Identifier: Apache-2.0
// Whatever the analyzer says is compared with the values of random expressions at many points.
#include <gtest/gtest.h>

#include "random_exprs.h"
#include "tenon/arith/analyzer.h"

namespace tenon::arith {
namespace {

struct Case {
  DType dtype;
  uint64_t seed;
};

class Soundness : public ::testing::TestWithParam<Case> {
 protected:
  const DType dtype = GetParam().dtype;
  const bool is_signed = dtype.is_int();
  Ref<Var> i = var("i", dtype), j = var("j", dtype), k = var("k", dtype), x = var("x", dtype),
           n = Var::size("n", dtype);
  RandomExprs random{{i, j, k, x, n}, dtype, GetParam().seed};

  // i in [0, 4), j in [1, 9), k in [0, n), x any, n >= 0; `n` > 0 as k has a value.
  void bind(Analyzer& analyzer) const {
    analyzer.bind(i, imm(dtype, int64_t{0}), imm(dtype, int64_t{4}));
    analyzer.bind(j, imm(dtype, int64_t{1}), imm(dtype, int64_t{8}));
    analyzer.bind(k, imm(dtype, int64_t{0}), n);
  }
  Point point() {
    const int64_t size = random.number(1, 20);
    return {{i.get(), random.number(0, 3)},
            {j.get(), random.number(1, 8)},
            {k.get(), random.number(0, size - 1)},
            {x.get(), random.number(is_signed ? -70 : 0, 70)},
            {n.get(), size}};
  }
};

TEST_P(Soundness, SimplifyKeepsEveryValue) {
  for (int round = 0; round < 1500; ++round) {
    Analyzer analyzer;
    bind(analyzer);
    const Expr expr = random.number(0, 3) ? random.integer(4) : random.boolean(3);
    const Expr simplified = analyzer.simplify(expr);
    ASSERT_EQ(simplified->dtype, expr->dtype);
    const bool is_int = expr->dtype.is_integer();
    const ConstBound bound = analyzer.const_bound(expr);
    const Modular mod = is_int ? analyzer.mod(expr) : Modular{};
    for (int trial = 0; trial < 30; ++trial) {
      const Point at = point();
      const auto expected = evaluate(expr, at);
      if (!expected) continue;
      const std::string where =
          fmt::format("{} at i={} j={} k={} x={} n={}", str(expr), at.at(i.get()), at.at(j.get()),
                      at.at(k.get()), at.at(x.get()), at.at(n.get()));
      ASSERT_EQ(evaluate(simplified, at), expected) << str(simplified) << " for " << where;
      ASSERT_TRUE(bound.contains(*expected))
          << *expected << " outside " << bound.min << ".." << bound.max << " for " << where;
      if (mod.coefficient == 0) {
        ASSERT_EQ(*expected, mod.remainder) << where;
      } else {
        ASSERT_EQ((*expected - mod.remainder) % mod.coefficient, 0) << where;
      }
    }
    // A second look changes nothing.
    Analyzer again;
    bind(again);
    const Expr twice = again.simplify(simplified);
    for (int trial = 0; trial < 5; ++trial) {
      const Point at = point();
      const auto expected = evaluate(expr, at);
      if (expected) ASSERT_EQ(evaluate(twice, at), expected) << str(simplified);
    }
  }
}

TEST_P(Soundness, AssumptionsAndProofsHold) {
  int proved = 0;
  for (int round = 0; round < 1500; ++round) {
    Analyzer analyzer;
    bind(analyzer);
    const Expr assumed = random.boolean(2);
    const Expr claim = random.boolean(2);
    const Expr value = random.integer(3);
    bool proves, refutes;
    Expr simplified;
    ConstBound bound;
    {
      const auto scope = analyzer.enter(assumed);
      proves = analyzer.proves(claim);
      refutes = analyzer.proves(logical_not(claim));
      simplified = analyzer.simplify(value);
      bound = analyzer.const_bound(value);
    }
    proved += proves || refutes;
    const Expr outside = analyzer.simplify(value);  // the assumption is forgotten
    for (int trial = 0; trial < 40; ++trial) {
      const Point at = point();
      const auto expected = evaluate(value, at);
      if (expected) ASSERT_EQ(evaluate(outside, at), expected) << str(value);
      if (evaluate(assumed, at) != 1) continue;
      const std::string where =
          fmt::format("assumed {}, at i={} j={} k={} x={} n={}", str(assumed), at.at(i.get()),
                      at.at(j.get()), at.at(k.get()), at.at(x.get()), at.at(n.get()));
      if (proves) ASSERT_NE(evaluate(claim, at), 0) << str(claim) << ", " << where;
      if (refutes) ASSERT_NE(evaluate(claim, at), 1) << str(claim) << ", " << where;
      if (!expected) continue;
      ASSERT_EQ(evaluate(simplified, at), expected)
          << str(simplified) << " for " << str(value) << ", " << where;
      ASSERT_TRUE(bound.contains(*expected)) << *expected << " outside " << bound.min << ".."
                                             << bound.max << " for " << str(value) << ", " << where;
    }
  }
  EXPECT_GT(proved, 50);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Soundness,
                         ::testing::Values(Case{kInt64, 1}, Case{kInt32, 2}, Case{kInt8, 3},
                                           Case{kUInt8, 4}, Case{kInt64, 5}));

}  // namespace
}  // namespace tenon::arith
