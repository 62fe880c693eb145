// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/expectation.h"

#include <algorithm>
#include <map>

#include "tenon/graph/expr.h"
#include "tenon/graph/transforms.h"
#include "tenon/tir/analysis/longest_sum.h"

namespace tenon {

// Random rounding draws from the errors that an element may have. The largest of a few draws is
// seldom far below the largest error that another order of evaluation has.
static constexpr uint64_t kMostRuns = 8;
static constexpr double kTimesSpread = 8;

// What a loop counts for whose extent is known only when the program runs.
static constexpr int64_t kUnknownTerms = 4096;

int64_t longest_sum(const IRModule& module) {
  IRModule legal = module;
  try {
    legal = graph::legalize_ops(std::move(legal));
  } catch (const CompileError&) {  // an operator that only the interpreter runs
  }
  int64_t terms = 0;
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const auto& [name, function] : legal.functions()) {
    if (const auto* prim = function.as<tir::PrimFunc>()) {
      terms += tir::longest_sum(*prim, kUnknownTerms) - 1;
    } else if (function.as<graph::Function>()) {
      // A kernel that is called more than once.
      std::map<std::string, int64_t> calls;
      walk<graph::FuncRef>(function, [&](const graph::FuncRef& ref) { ++calls[ref.name]; });
      for (const auto& [callee, count] : calls)
        if (const auto prim = legal.find<tir::PrimFunc>(callee))
          terms += (count - 1) * (tir::longest_sum(*prim, kUnknownTerms) - 1);
    }
    terms = std::min(terms, kMost);
  }
  return terms + 1;
}

void Expectation::spread_of(uint64_t runs) {
  if (!rerun_) return;
  spread_.resize(outputs_.size());
  while (runs_ < runs) {
    const std::vector<Ref<TensorData>> moved = rerun_(++runs_);
    for (size_t i = 0; i < outputs_.size() && i < moved.size(); ++i)
      add_spread(*outputs_[i], *moved[i], spread_[i]);
  }
}

std::optional<Mismatch> Expectation::unexplained(size_t i, const TensorData& got,
                                                 const Expectation* own,
                                                 std::span<const double> given) const {
  const TensorData& expected = *outputs_.at(i);
  std::vector<double> slack(given.begin(), given.end());
  for (const Expectation* side : {this, own}) {
    if (!side || i >= side->spread_.size()) continue;
    const std::vector<double>& more = side->spread_[i];
    slack.resize(std::max(slack.size(), more.size()));
    for (size_t e = 0; e < more.size(); ++e) slack[e] += kTimesSpread * more[e];
  }
  return tenon::mismatch(got, expected, rounding_tolerance(expected.dtype, terms_), slack);
}

std::optional<Mismatch> Expectation::mismatch(size_t i, const TensorData& got, Expectation* own,
                                              std::span<const double> slack) {
  auto wrong = unexplained(i, got, own, slack);
  const TensorData& expected = *outputs_.at(i);
  if (got.dtype != expected.dtype || got.shape != expected.shape) return wrong;
  for (uint64_t runs = 1; wrong && runs <= kMostRuns; ++runs) {
    spread_of(runs);
    if (own) own->spread_of(runs);
    wrong = unexplained(i, got, own, slack);
  }
  return wrong;
}

}  // namespace tenon
