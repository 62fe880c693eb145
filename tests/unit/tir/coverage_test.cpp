// SPDX-License-Identifier: Apache-2.0
// The box that loops and conditions reach: compared with what runs, iteration by iteration.
#include "tenon/tir/schedule/coverage.h"

#include <gtest/gtest.h>

#include <set>

namespace tenon::tir {
namespace {

using arith::Iterator;

struct Nest {
  std::vector<Iterator> loops;  // from 0 to below a constant
  Expr index;
};

int64_t value_of(const Expr& expr, const Substitution& at) {
  return as_int(arith::simplify(substitute(expr, at))).value();
}

std::set<int64_t> reached(const Nest& nest, const Expr& condition) {
  std::set<int64_t> values;
  std::vector<int64_t> now(nest.loops.size(), 0);
  for (;;) {
    Substitution at;
    for (size_t l = 0; l < now.size(); ++l) at[nest.loops[l].var.get()] = int64(now[l]);
    if (value_of(condition, at)) values.insert(value_of(nest.index, at));
    size_t l = now.size();
    while (l > 0 && ++now[l - 1] == *as_int(nest.loops[l - 1].extent)) now[--l] = 0;
    if (l == 0) return values;
  }
}

std::set<int64_t> points(const Span& span) {
  std::set<int64_t> values;
  for (int64_t v = value_of(span.min, {}); v < value_of(span.end, {}); ++v)
    if ((!span.least || value_of(span.least, {}) <= v) &&
        (!span.limit || v < value_of(span.limit, {})))
      values.insert(v);
  return values;
}

TEST(ExactBox, AConditionLeavesWhatItSays) {
  const Ref<Var> i = var("i"), j = var("j");
  const Iterator rows{i, int64(0), int64(3)}, columns{j, int64(0), int64(4)};
  const Nest nests[] = {{{columns}, j}, {{rows, columns}, i * 4 + j}, {{rows, columns}, j * 3 + i}};
  for (const Nest& nest : nests)
    for (int64_t c = -1; c <= 13; ++c)
      for (const Expr& condition :
           {nest.index<int64(c), nest.index <= int64(c), int64(c) < nest.index,
                       int64(c) <= nest.index, nest.index>
                int64(c),
            nest.index >= int64(c), nest.index + 2 < int64(c), int64(c) >= nest.index * 1 + 1}) {
        SCOPED_TRACE(str(nest.index) + " where " + str(condition));
        arith::Analyzer analyzer;
        const auto box =
            exact_box({nest.index}, nest.loops, {}, {condition}, Times::kAny, analyzer);
        ASSERT_TRUE(box);
        EXPECT_EQ(points(box->at(0)), reached(nest, condition));
      }
}

TEST(ExactBox, LoopsThatOnlyRepeatMustRun) {
  const Ref<Var> i = var("i"), r = var("r"), n = Var::size("n"), o = var("o");
  const Iterator moving{i, int64(0), int64(4)};
  const auto box = [&](const Expr& extent, Times times, const std::vector<Ref<Var>>& around = {}) {
    arith::Analyzer analyzer;
    analyzer.bind(o, int64(0), int64(5));
    return exact_box({Expr(i)}, {{r, int64(0), extent}, moving}, around, {}, times, analyzer)
        .has_value();
  };
  EXPECT_TRUE(box(int64(3), Times::kAny));
  EXPECT_TRUE(box(n + 1, Times::kAny));
  EXPECT_FALSE(box(n, Times::kAny));  // n may be 0
  EXPECT_FALSE(box(int64(0), Times::kAny));
  EXPECT_FALSE(box(int64(3), Times::kOnce));
  EXPECT_TRUE(box(int64(1), Times::kOnce));
  // As often in each iteration around: where it does not run, nothing comes later that misses it.
  EXPECT_TRUE(box(n, Times::kAny, {o}));
  EXPECT_FALSE(box(o, Times::kAny, {o}));
  EXPECT_TRUE(box(o + 1, Times::kAny, {o}));
}

}  // namespace
}  // namespace tenon::tir
