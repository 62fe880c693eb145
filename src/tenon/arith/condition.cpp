// SPDX-License-Identifier: Apache-2.0
// Folds conditions, canonicalises comparisons, derives facts from assumptions.
#include <algorithm>
#include <numeric>

#include "tenon/arith/polynomial.h"
#include "tenon/support/deeper.h"

namespace tenon::arith {

// Conditions nested deeper than this are simplified without what encloses them, which would visit
// a shared part once for each way to reach it.
static constexpr int kMaxCases = 3;
static constexpr int kMostCaseWork = 2000;

static bool compares_integers(const Binary& op) {
  const DType dtype = op.lhs->dtype;
  return is_comparison(op.op) && dtype.is_scalar() && dtype.is_integer() && dtype != kUInt64;
}

std::optional<bool> Analyzer::Impl::decide_comparison(BinaryOp op, const Poly& d, int budget) {
  const auto positive = [&](const Poly& p) { return nonnegative(add(p, Poly(-1)), budget); };
  switch (op) {
    case BinaryOp::kLT:
      if (positive(negate(d))) return true;
      if (nonnegative(d, budget)) return false;
      return std::nullopt;
    case BinaryOp::kLE:
      if (nonnegative(negate(d), budget)) return true;
      if (positive(d)) return false;
      return std::nullopt;
    case BinaryOp::kGT: return decide_comparison(BinaryOp::kLT, negate(d), budget);
    case BinaryOp::kGE: return decide_comparison(BinaryOp::kLE, negate(d), budget);
    case BinaryOp::kEQ: {
      if (equal_zero(d)) return true;
      const Modular fact = modular(d);
      if (fact.coefficient ? fact.remainder % fact.coefficient != 0 : fact.remainder != 0)
        return false;
      if (positive(d) || positive(negate(d))) return false;
      return std::nullopt;
    }
    case BinaryOp::kNE: {
      const auto equal = decide_comparison(BinaryOp::kEQ, d, budget);
      return equal ? std::optional(!*equal) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

Expr Analyzer::Impl::known_truth(const Expr& condition) {
  if (truths_.empty() || as_int(condition)) return condition;
  const auto known = truths_.find(atom(condition));
  return known == truths_.end() ? condition : boolean(known->second);
}

// g * q + r < 0, where k * g <= r < (k + 1) * g, says g * (q + k) < 0: puts k * g for r.
void Analyzer::Impl::drop_rest_below_factor(Poly& p) {
  std::vector<Term> terms = p.terms;
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return std::abs(a.coeff) > std::abs(b.coeff); });
  int64_t factor = 0;
  for (size_t i = 0; i + 1 < terms.size(); ++i) {
    factor = std::gcd(factor, terms[i].coeff);
    if (factor == 1) return;
    if (std::abs(terms[i + 1].coeff) >= factor) continue;
    Poly multiple, rest(floor_mod(p.constant, factor));
    for (const Term& term : p.terms)
      (term.coeff % factor == 0 ? multiple : rest).terms.push_back(term);
    const ConstBound range = bound(rest);
    if (!range.has_min() || !range.has_max()) continue;
    const int64_t quotient = floor_div(range.min, factor);
    if (floor_div(range.max, factor) != quotient) continue;
    multiple.constant =
        checked_add(checked_add(p.constant, -rest.constant), checked_mul(quotient, factor));
    p = std::move(multiple);
    return;
  }
}

Expr Analyzer::Impl::compare(const Binary& op, const Expr& original) {
  if (case_depth_ > 0) ++case_work_;
  if (!compares_integers(op)) return known_truth(simplify_members(original));
  Expr out;
  try {
    Poly p = sum(poly(op.lhs), poly(op.rhs), -1);
    if (const auto value = decide_comparison(op.op, p, 12)) return boolean(*value);
    BinaryOp kind = op.op;
    if (kind == BinaryOp::kGT || kind == BinaryOp::kGE) {
      p = negate(p);
      kind = kind == BinaryOp::kGT ? BinaryOp::kLT : BinaryOp::kLE;
    }
    if (kind == BinaryOp::kLE) {
      p = add(p, Poly(-1));
      kind = BinaryOp::kLT;
    }
    if (kind == BinaryOp::kLT) drop_rest_below_factor(p);
    int64_t g = 0;
    for (const Term& term : p.terms) g = std::gcd(g, term.coeff);
    p.constant = floor_div(p.constant, g);  // exact for ==, which was decided where it is not
    for (Term& term : p.terms) term.coeff /= g;
    Poly left, right;
    if (kind != BinaryOp::kLT) {
      // One sign of the two: more terms on the left, then by name.
      const auto plus =
          std::count_if(p.terms.begin(), p.terms.end(), [](const Term& t) { return t.coeff > 0; });
      const auto minus = static_cast<std::ptrdiff_t>(p.terms.size()) - plus;
      const MonoId first =
          std::min_element(p.terms.begin(), p.terms.end(), [&](const Term& a, const Term& b) {
            return mono_before(a.mono, b.mono);
          })->mono;
      if (minus > plus || (minus == plus && coefficient(p, first) < 0)) p = negate(p);
    }
    for (const Term& term : p.terms) {
      if (term.coeff > 0) left.terms.push_back(term);
      if (term.coeff < 0) right.terms.push_back({-term.coeff, term.mono});
    }
    bool flip = false;
    if (left.is_constant()) {  // c < x is said as x > c
      flip = true;
      left.constant = p.constant;
    } else if (right.is_constant() || p.constant < 0) {
      right.constant = checked_mul(p.constant, -1);
    } else {
      left.constant = p.constant;
    }
    if (kind == BinaryOp::kLT && !flip && !right.terms.empty() && right.constant == 1) {
      right.constant = 0;
      kind = BinaryOp::kLE;
    }
    const DType dtype = op.lhs->dtype;
    const Expr a = emit_exact(left, dtype), b = emit_exact(right, dtype);
    out = flip ? binary(kind == BinaryOp::kLT ? BinaryOp::kGT : kind, b, a) : binary(kind, a, b);
  } catch (const Overflow&) {
    return known_truth(simplify_members(original));
  }
  if (longer(out, original)) out = simplify_members(original);
  return known_truth(out);
}

Expr Analyzer::Impl::negation(const Expr& condition) {
  if (const auto* op = condition.as<Binary>(); op && compares_integers(*op)) {
    static constexpr BinaryOp kOpposite[] = {BinaryOp::kNE, BinaryOp::kEQ, BinaryOp::kGE,
                                             BinaryOp::kGT, BinaryOp::kLE, BinaryOp::kLT};
    const int i = static_cast<int>(op->op) - static_cast<int>(BinaryOp::kEQ);
    return simplify(binary(kOpposite[i], op->lhs, op->rhs));
  }
  return logical_not(condition);
}

bool Analyzer::Impl::may_enter_case() const {
  return case_depth_ < kMaxCases && case_work_ < kMostCaseWork;
}

Expr Analyzer::Impl::simplify_case(const Expr& expr, const Expr& condition, bool holds) {
  if (expr->height() == 1 && !expr.as<Var>()) return expr;
  const LocalScope scope(*this);
  const Deeper deeper(case_depth_);
  assume(condition, holds);
  return simplify(expr);
}

// `and`, `or`: the right side counts where the left side does not decide, and a left side that the
// right one makes redundant goes. Both are evaluated, so what may fail keeps its form.
Expr Analyzer::Impl::connect(const Binary& op, const Expr& original) {
  const bool is_and = op.op == BinaryOp::kAnd;
  const auto simplify_given = [&](const Expr& expr, const Expr& given) {
    if (!may_enter_case() || !cannot_fail(expr)) return simplify(expr);
    return simplify_case(expr, given, is_and);
  };
  const Expr a = simplify(op.lhs);
  if (const auto value = as_int(a)) return (*value != 0) == is_and ? simplify(op.rhs) : a;
  const Expr b = simplify_given(op.rhs, a);
  if (const auto value = as_int(b)) return (*value != 0) == is_and ? a : b;
  if (const auto value = as_int(simplify_given(a, b)); value && (*value != 0) == is_and) return b;
  if (a.same_as(op.lhs) && b.same_as(op.rhs)) return original;
  return binary(op.op, a, b, original->origin);
}

Expr Analyzer::Impl::choose(const Expr& condition, const Expr& a, const Expr& b,
                            const Expr& original) {
  if (condition->dtype.is_vector()) return simplify_members(original);
  const Expr c = simplify(condition);
  if (const auto value = as_int(c)) return simplify(*value ? a : b);
  Expr x, y;
  // Select evaluates both: what must not fail cannot rely on the condition.
  const bool lazy = original.as<Call>() != nullptr;
  if (may_enter_case() && (lazy || (cannot_fail(a) && cannot_fail(b)))) {
    x = simplify_case(a, c, true);
    y = simplify_case(b, c, false);
  } else {
    x = simplify(a);
    y = simplify(b);
  }
  if (same(x, y)) return x;
  // A choice inside of a choice, with the same value otherwise, is one choice.
  if (const auto* inner = lazy ? x.as<Call>() : nullptr;
      inner && inner->is(IntrinsicId::kIfThenElse) && inner->arg(0)->dtype.is_scalar() &&
      same(inner->arg(2), y) && cannot_fail(inner->arg(0)))
    return tenon::if_then_else(simplify(logical_and(inner->arg(0), c)), inner->arg(1), y);
  if (c.same_as(condition) && x.same_as(a) && y.same_as(b)) return original;
  return original.as<Select>() ? tenon::select(c, x, y) : tenon::if_then_else(c, x, y);
}

Expr Analyzer::Impl::simplify_condition(const Expr& expr) {
  if (const auto* op = expr.as<Binary>()) {
    if (is_logical(op->op)) return known_truth(connect(*op, expr));
    return compare(*op, expr);
  }
  if (const auto* op = expr.as<Not>()) {
    const Expr inner = simplify(op->value);
    const Expr out = negation(inner);
    if (inner.same_as(op->value) && out.as<Not>()) return expr;
    return out;
  }
  if (const auto* op = expr.as<Select>())
    return choose(op->condition, op->true_value, op->false_value, expr);
  if (const auto* op = expr.as<Call>()) {
    if (op->is(IntrinsicId::kIfThenElse)) return choose(op->arg(0), op->arg(1), op->arg(2), expr);
    if (op->is(IntrinsicId::kLikely)) {
      const Expr inner = simplify(op->arg(0));
      if (as_int(inner)) return inner;
      return inner.same_as(op->args[0]) ? expr : tenon::call(IntrinsicId::kLikely, {inner});
    }
  }
  if (const auto* var = expr.as<Var>()) {
    const auto known = vars_.find(atom(ref_to(var)));
    if (known != vars_.end() && known->second.value) return known->second.value;
    return known_truth(expr);
  }
  return known_truth(simplify_members(expr));
}

// ---- assumptions

void Analyzer::Impl::assume_nonnegative(const Poly& p) {
  if (p.is_constant()) return;
  if (p.terms.size() > 1) {
    if (std::find(facts_.begin(), facts_.end(), p) != facts_.end()) return;
    facts_.push_back(p);
    changed();
    return;
  }
  const auto [coeff, mono] = p.terms[0];
  ConstBound range;  // coeff * mono + constant >= 0
  if (coeff > 0) range.min = checked_mul(floor_div(p.constant, coeff), -1);
  if (coeff < 0) range.max = floor_div(p.constant, checked_mul(coeff, -1));
  const auto known = assumed_.find(mono);
  if (!scopes_.empty())
    scopes_.back().assumed.emplace_back(
        mono, known == assumed_.end() ? std::nullopt : std::optional(known->second));
  if (known == assumed_.end()) {
    assumed_.emplace(mono, range);
  } else {
    known->second = intersect(known->second, range);
  }
  changed();
}

void Analyzer::Impl::assume(const Expr& condition, bool holds) {
  if (as_int(condition) || condition->dtype.is_vector()) return;
  if (const auto* op = condition.as<Not>()) return assume(op->value, !holds);
  if (const auto* op = condition.as<Call>(); op && op->is(IntrinsicId::kLikely))
    return assume(op->arg(0), holds);
  const auto* op = condition.as<Binary>();
  if (op && is_logical(op->op) && (op->op == BinaryOp::kAnd) == holds) {
    assume(op->lhs, holds);
    assume(op->rhs, holds);
    return;
  }
  if (op && compares_integers(*op)) {
    try {
      const Poly p = sum(poly(op->lhs), poly(op->rhs), -1);
      const auto below = [&](const Poly& q) {  // q < 0
        assume_nonnegative(add(negate(q), Poly(-1)));
      };
      const auto zero = [&] {
        assume_nonnegative(p);
        assume_nonnegative(negate(p));
      };
      const auto apart = [&] {
        if (nonnegative(p)) assume_nonnegative(add(p, Poly(-1)));
        if (nonnegative(negate(p))) assume_nonnegative(add(negate(p), Poly(-1)));
      };
      switch (op->op) {
        case BinaryOp::kLT: holds ? below(p) : assume_nonnegative(p); return;
        case BinaryOp::kGE: holds ? assume_nonnegative(p) : below(p); return;
        case BinaryOp::kGT: holds ? below(negate(p)) : assume_nonnegative(negate(p)); return;
        case BinaryOp::kLE: holds ? assume_nonnegative(negate(p)) : below(negate(p)); return;
        case BinaryOp::kEQ: holds ? zero() : apart(); break;
        case BinaryOp::kNE: holds ? apart() : zero(); break;
        default: break;
      }
    } catch (const Overflow&) {
      return;
    }
    if ((op->op == BinaryOp::kEQ) == holds) return;
  }
  const AtomId id = atom(condition);
  const auto known = truths_.find(id);
  if (!scopes_.empty())
    scopes_.back().truths.emplace_back(
        id, known == truths_.end() ? std::nullopt : std::optional(known->second));
  truths_[id] = holds;
  changed();
}

bool Analyzer::Impl::proves(const Expr& condition) {
  if (const auto* op = condition.as<Binary>()) {
    if (op->op == BinaryOp::kAnd) return proves(op->lhs) && proves(op->rhs);
    if (op->op == BinaryOp::kOr && (proves(op->lhs) || proves(op->rhs))) return true;
    if (compares_integers(*op)) {
      try {
        const Poly p = sum(poly(op->lhs), poly(op->rhs), -1);
        const auto value = decide_comparison(op->op, p, 48);
        if (value) return *value;
      } catch (const Overflow&) {
      }
    }
  }
  return is_int(simplify(condition), 1);
}

}  // namespace tenon::arith
