// SPDX-License-Identifier: Apache-2.0
// Integer reasoning over scalar expressions: a simplifier, constant bounds, modular facts, proofs.
//
// An integer expression is held as a polynomial over atoms (variables, quotients and remainders,
// minima, loads, ...), so that equal sums and products have one form whatever way they were
// written. What is assumed, everywhere in this room:
//  - arithmetic of signed integers of 32 bits and more does not overflow (indices and shapes;
//    narrower and unsigned dtypes are reasoned about only where the bounds show that no value
//    wraps);
//  - divisors are not zero (division by zero is an error at run time);
//  - a load has one value: expressions of two points of a program between which memory is written
//    must not meet in one proof; a call with effects is never the same value twice.
// Floating-point expressions keep their value bit for bit: constants are folded where `binary()`
// does, and only identities that hold for every value are used (x * 1, x / 1, x - 0, select of two
// equal values; not x + 0, which turns -0 into 0).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/ir/expr.h"

namespace tenon::arith {

/// A half-open range [min, min + extent).
struct Range {
  Expr min, extent;
};

/// Every value lies in [min, max]; the limits of int64 stand for no bound.
struct ConstBound {
  static constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();
  int64_t min = kMinusInfinity;
  int64_t max = kInfinity;

  bool has_min() const { return min != kMinusInfinity; }
  bool has_max() const { return max != kInfinity; }
  bool is_constant() const { return min == max; }
  bool contains(int64_t value) const { return min <= value && value <= max; }
  bool operator==(const ConstBound&) const = default;
};

/// Every value is `coefficient * k + remainder` for some integer k, 0 <= remainder < coefficient.
/// Coefficient 0: the value is the constant `remainder`; 1: nothing is known.
struct Modular {
  int64_t coefficient = 1;
  int64_t remainder = 0;
  bool operator==(const Modular&) const = default;
};

/// `rest + coefficients[0] * vars[0] + ...`; each coefficient and the rest are free of the vars.
struct LinearForm {
  std::vector<Expr> coefficients;  // simplified; of the vars' order
  Expr rest;
  bool is_constant(size_t i, int64_t value) const { return is_int(coefficients.at(i), value); }
};

/// What is known about variables, and what follows from it. Not shared between threads. Asking is
/// cached; binding a variable that was asked about before starts the caches afresh, so bind first.
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(Analyzer&&) noexcept;
  Analyzer& operator=(Analyzer&&) noexcept;

  // ---- what is known. The latest binding of a variable counts.

  /// `var` lies in [min, min + extent), which is not empty.
  void bind(const Ref<Var>& var, const Expr& min, const Expr& extent);
  template <typename R>
    requires requires(const R& r) {
      r.min;
      r.extent;
    }
  void bind(const Ref<Var>& var, const R& range) {
    bind(var, range.min, range.extent);
  }
  /// `var` stands for `value`: simplify() puts the value in its place.
  void bind(const Ref<Var>& var, const Expr& value);
  /// `var` >= least (size variables are >= 0 without this).
  void bind_lower(const Ref<Var>& var, int64_t least);
  void bind_bounds(const Ref<Var>& var, ConstBound bound);
  /// From now on `condition` holds.
  void assume(const Expr& condition);

  /// What was known and assumed since the scope began is forgotten where it ends. Scopes nest.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept : analyzer_(std::exchange(other.analyzer_, nullptr)) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    Scope& operator=(Scope&&) = delete;
    ~Scope() {
      if (analyzer_) analyzer_->leave();
    }

   private:
    friend class Analyzer;
    explicit Scope(Analyzer* analyzer) : analyzer_(analyzer) {}
    Analyzer* analyzer_;  // must stay where it is
  };
  Scope enter();
  /// `auto scope = analyzer.enter(condition);`: the condition holds until the scope ends.
  Scope enter(const Expr& condition);

  // ---- what follows

  /// An equal expression in canonical form; the same node where nothing changes. Terms are ordered
  /// by size of their coefficients, then by name. Never longer than a few times the original.
  Expr simplify(const Expr& expr);
  std::vector<Expr> simplify(std::span<const Expr> exprs);

  ConstBound const_bound(const Expr& expr);
  Modular mod(const Expr& expr);

  /// True where it was proved. False says nothing: ask for the negation to know more.
  bool proves(const Expr& condition);
  bool proves_equal(const Expr& a, const Expr& b);
  bool proves_less(const Expr& a, const Expr& b);
  bool proves_less_equal(const Expr& a, const Expr& b);
  /// Equal in number and each pair proved equal.
  bool proves_equal(std::span<const Expr> a, std::span<const Expr> b);
  bool proves_equal(const Expr& a, int64_t b) { return proves_equal(a, imm(a->dtype, b)); }
  bool proves_less(const Expr& a, int64_t b) { return proves_less(a, imm(a->dtype, b)); }
  bool proves_nonnegative(const Expr& a) { return proves_less_equal(imm(a->dtype, int64_t{0}), a); }
  bool proves_positive(const Expr& a) { return proves_less(imm(a->dtype, int64_t{0}), a); }
  /// `a` is a multiple of `factor`.
  bool proves_divisible(const Expr& a, int64_t factor);
  bool proves_divisible(const Expr& a, const Expr& factor);

  /// `expr` as a linear form of `vars`; nothing where it is not linear in them.
  std::optional<LinearForm> linear(const Expr& expr, std::span<const Ref<Var>> vars);

  struct Impl;
  Impl& impl() { return *impl_; }  // for the sources of this room

 private:
  void leave();
  std::unique_ptr<Impl> impl_;
};

/// With nothing known but that size variables are >= 0.
Expr simplify(const Expr& expr);
bool proves_equal(const Expr& a, const Expr& b);
bool proves_equal(std::span<const Expr> a, std::span<const Expr> b);

}  // namespace tenon::arith
