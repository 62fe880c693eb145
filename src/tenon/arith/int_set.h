// SPDX-License-Identifier: Apache-2.0
// Sets of integers as intervals with symbolic ends: the values that an index takes while some
// variables run through their ranges.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "tenon/arith/analyzer.h"

namespace tenon::arith {

/// Every integer from min to max, both included; an end that is null is unbounded.
struct Interval {
  Expr min, max;

  static Interval everything() { return {}; }
  static Interval point(const Expr& value) { return {value, value}; }
  /// [min, min + extent)
  static Interval of(const Expr& min, const Expr& extent) { return {min, min + extent - 1}; }
  template <typename R>
    requires requires(const R& r) {
      r.min;
      r.extent;
    }
  static Interval of(const R& range) {
    return of(range.min, range.extent);
  }
  bool is_bounded() const { return min && max; }
  bool is_point() const { return min && min.same_as(max); }
};

/// Variables that run, each through its interval. An interval may refer to other variables of the
/// domain (an inner loop's to an outer one's).
using Domain = std::unordered_map<const Var*, Interval>;

/// An interval that holds every value of `expr` while the variables of `domain` run; its ends are
/// free of them. Exact (tight, symbolic) for affine forms and for the quotients and remainders of
/// splits; otherwise it may be larger. Not changed: what `analyzer` knows.
Interval evaluate(Analyzer& analyzer, const Expr& expr, const Domain& domain);
/// With nothing known of the other variables but that sizes are >= 0.
Interval evaluate(const Expr& expr, const Domain& domain);

/// The smallest interval known to hold both.
Interval unite(Analyzer& analyzer, const Interval& a, const Interval& b);
/// What both hold.
Interval intersect(Analyzer& analyzer, const Interval& a, const Interval& b);

/// As [min, min + extent), simplified. It must be bounded.
Range to_range(Analyzer& analyzer, const Interval& interval);

/// The box that a region covers while the variables of `domain` run: one interval for each
/// dimension [min, min + extent).
template <typename R>
std::vector<Interval> evaluate_region(Analyzer& analyzer, const std::vector<R>& region,
                                      const Domain& domain) {
  std::vector<Interval> out;
  for (const R& range : region) {
    const Interval first = evaluate(analyzer, range.min, domain);
    if (is_int(range.extent, 1)) {
      out.push_back(first);
    } else {
      out.push_back({first.min, evaluate(analyzer, range.min + range.extent - 1, domain).max});
    }
  }
  return out;
}

}  // namespace tenon::arith
