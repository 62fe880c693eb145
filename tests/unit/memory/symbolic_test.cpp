// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/symbolic.h"

#include <map>

#include "problems.h"

namespace tenon::memory {

using Values = std::map<const Node*, int64_t>;

/// `values` of variables, and of the expressions evaluated before: offsets share parts.
static int64_t evaluate(const Expr& expr, Values& values) {
  if (const auto known = values.find(expr.get()); known != values.end()) return known->second;
  if (const auto value = as_int(expr)) return *value;
  if (const auto* cast = expr.as<Cast>()) return evaluate(cast->value, values);
  const auto* op = expr.as<Binary>();
  check(op != nullptr, "an expression that this test does not know");
  const int64_t lhs = evaluate(op->lhs, values), rhs = evaluate(op->rhs, values);
  return values[op] = fold_int(op->op, op->dtype, lhs, rhs).value();
}

/// The plan at these values, looked at by the checker; gives its total.
static int64_t checked_total(const std::vector<SymbolicAllocation>& buffers,
                             const SymbolicPlan& symbolic, Values values) {
  Problem problem;
  Plan plan;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const SymbolicAllocation& b = buffers[i];
    problem.buffers.push_back(
        {b.name, evaluate(b.bytes, values), b.alignment, b.lower, b.upper, 0, {}});
    plan.offsets.push_back(evaluate(symbolic.offsets[i], values));
  }
  plan.pools.push_back({evaluate(symbolic.total, values), 0, "", 0});
  EXPECT_EQ(check_plan(problem, plan), std::nullopt);
  return plan.pools[0].peak;
}

TEST(SymbolicPlan, ConstantsArePackedAsUsual) {
  const std::vector<SymbolicAllocation> buffers = {{"a", int64(8), 1, 0, 2},
                                                   {"b", int64(8), 1, 2, 4}};
  const SymbolicPlan plan = plan_symbolic(buffers);
  EXPECT_EQ(as_int(plan.total), 8);
  EXPECT_EQ(plan.slots, 0u);
}

TEST(SymbolicPlan, AChainTakesTwoSlots) {
  const Expr n = Var::size("n");
  std::vector<SymbolicAllocation> buffers;
  for (int64_t i = 0; i < 20; ++i)
    buffers.push_back({"x" + std::to_string(i), n * (64 * (i % 3 + 1)), 64, i, i + 2});
  const SymbolicPlan plan = plan_symbolic(buffers);
  EXPECT_EQ(plan.slots, 2u);
  EXPECT_EQ(checked_total(buffers, plan, {{n.get(), 5}}), 2 * 5 * 192);
}

TEST(SymbolicPlan, PrefersASlotOfItsOwnSize) {
  const Expr n = Var::size("n"), m = Var::size("m");
  // When `c` and `d` come, both slots are free: each takes the one it provably fits.
  const std::vector<SymbolicAllocation> buffers = {
      {"a", n * 8, 1, 0, 2}, {"b", m * 8, 1, 0, 2}, {"c", m * 4, 1, 2, 4}, {"d", n * 8, 1, 2, 4}};
  const SymbolicPlan plan = plan_symbolic(buffers);
  EXPECT_EQ(plan.slots, 2u);
  EXPECT_EQ(checked_total(buffers, plan, {{n.get(), 1}, {m.get(), 100}}), 808);
  EXPECT_EQ(checked_total(buffers, plan, {{n.get(), 100}, {m.get(), 1}}), 808);
}

TEST(SymbolicPlan, SizesThatCannotBeComparedShareTheirMaximum) {
  const Expr n = Var::size("n"), m = Var::size("m");
  const std::vector<SymbolicAllocation> buffers = {{"a", n * 3, 4, 0, 1}, {"b", m * 5, 8, 1, 2}};
  const SymbolicPlan plan = plan_symbolic(buffers);
  EXPECT_EQ(plan.slots, 1u);
  EXPECT_EQ(checked_total(buffers, plan, {{n.get(), 7}, {m.get(), 2}}), 24);
  EXPECT_EQ(checked_total(buffers, plan, {{n.get(), 1}, {m.get(), 4}}), 24);
}

TEST(SymbolicPlan, UsesTheProofsOfItsCaller) {
  const Expr n = Var::size("n");
  const std::vector<SymbolicAllocation> buffers = {{"a", n + 1, 1, 0, 1}, {"b", n + 2, 1, 1, 2}};
  SymbolicOptions options;
  options.proves_less_equal = [&](const Expr& a, const Expr& b) {
    Values one = {{n.get(), 1}};
    return evaluate(a, one) <= evaluate(b, one);  // true of n + constant
  };
  EXPECT_EQ(str(plan_symbolic(buffers, options).total), str(n + 2));
}

TEST(SymbolicPlan, RandomPlansAreLegalAtAllValues) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t k) { return static_cast<int64_t>(random() % k); };
    const Expr n = Var::size("n"), m = Var::size("m"), k = Var::size("k", kInt32);
    std::vector<SymbolicAllocation> buffers;
    for (int i = 0; i < 60; ++i) {
      const std::vector<Expr> kinds = {int64(1 + below(1000)),
                                       n * (1 + below(64)),
                                       m * (4 * (1 + below(8))),
                                       n * m * 4,
                                       n * 64 + m,
                                       ceildiv(n, int64(2)) * 128,
                                       k * 12,
                                       n * n};
      const int64_t lower = below(30);
      buffers.push_back({"b" + std::to_string(i), kinds[below(8)], int64_t{1} << below(7), lower,
                         lower + 1 + below(8)});
    }
    const SymbolicPlan plan = plan_symbolic(buffers);
    for (const auto& [a, b, c] : {std::tuple(1, 1, 1), std::tuple(1, 1000, 3),
                                  std::tuple(777, 1, 100), std::tuple(63, 65, 4097)})
      checked_total(buffers, plan, {{n.get(), a}, {m.get(), b}, {k.get(), c}});
  }
}

TEST(SymbolicPlan, ThousandsOfSlotsDoNotNestDeep) {
  const Expr n = Var::size("n");
  std::vector<SymbolicAllocation> buffers;
  for (int i = 0; i < 3000; ++i) buffers.push_back({"b" + std::to_string(i), n * 64, 64, 0, 1});
  EXPECT_EQ(checked_total(buffers, plan_symbolic(buffers), {{n.get(), 2}}), 3000 * 128);
}

TEST(SymbolicPlan, RefusesWhatIsMalformed) {
  const Expr n = Var::size("n");
  EXPECT_EQ(error_of([&] { plan_symbolic({{"a", n, 1, 4, 4}}); }),
            "bad-problem: buffer `a` is alive from step 4 until before step 4, which is never");
  EXPECT_EQ(error_of([&] { plan_symbolic({{"a", imm(kFloat32, 1.0), 1, 0, 1}}); }),
            "bad-problem: the size of buffer `a` is no integer scalar");
}

TEST(ProvesLessEqual, ByStructure) {
  const Expr n = Var::size("n"), m = Var::size("m");
  EXPECT_TRUE(proves_less_equal_by_structure(n * 4, n * 4));
  EXPECT_TRUE(proves_less_equal_by_structure(n * 4, n * 8));
  EXPECT_TRUE(proves_less_equal_by_structure(n, n * 2 * 2));
  EXPECT_TRUE(proves_less_equal_by_structure(int64(3), int64(4)));
  EXPECT_FALSE(proves_less_equal_by_structure(n * 8, n * 4));
  EXPECT_FALSE(proves_less_equal_by_structure(n * 4, m * 8));
  EXPECT_FALSE(proves_less_equal_by_structure(int64(4), n * 4 - 4));
}

}  // namespace tenon::memory
