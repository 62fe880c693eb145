// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/analyzer.h"

#include <algorithm>

#include "tenon/arith/polynomial.h"
#include "tenon/ir/visit.h"

namespace tenon::arith {

Analyzer::Analyzer() : impl_(std::make_unique<Impl>()) {}
Analyzer::~Analyzer() = default;
Analyzer::Analyzer(Analyzer&&) noexcept = default;
Analyzer& Analyzer::operator=(Analyzer&&) noexcept = default;

// ---- what is known

void Analyzer::Impl::changed() { epoch_ = ++last_epoch_; }

void Analyzer::Impl::enter_scope() {
  Saved saved;
  saved.epoch = epoch_;
  saved.facts = facts_.size();
  scopes_.push_back(std::move(saved));
}

void Analyzer::Impl::leave_scope() {
  check(!scopes_.empty(), "a scope of an Analyzer ends twice");
  Saved& saved = scopes_.back();
  facts_.resize(saved.facts);
  for (auto it = saved.vars.rbegin(); it != saved.vars.rend(); ++it) {
    if (it->second) {
      vars_[it->first] = std::move(*it->second);
    } else {
      vars_.erase(it->first);
    }
  }
  for (auto it = saved.assumed.rbegin(); it != saved.assumed.rend(); ++it) {
    if (it->second) {
      assumed_[it->first] = *it->second;
    } else {
      assumed_.erase(it->first);
    }
  }
  for (auto it = saved.truths.rbegin(); it != saved.truths.rend(); ++it) {
    if (it->second) {
      truths_[it->first] = *it->second;
    } else {
      truths_.erase(it->first);
    }
  }
  epoch_ = saved.epoch;
  scopes_.pop_back();
  while (memos_.size() > 1 && memos_.back().depth > scopes_.size()) memos_.pop_back();
}

// The entry of `var` to be changed; what was known is kept for the end of the scope.
VarInfo& Analyzer::Impl::edit(const Ref<Var>& var) {
  const bool fresh = atom_of_leaf_.find(var.get()) == atom_of_leaf_.end();
  const AtomId id = atom(var);
  const auto known = vars_.find(id);
  if (!scopes_.empty())
    scopes_.back().vars.emplace_back(
        id, known == vars_.end() ? std::nullopt : std::optional(known->second));
  // Nothing was derived from a variable that was never seen.
  if (!fresh) changed();
  return vars_[id];
}

void Analyzer::bind(const Ref<Var>& var, const Expr& min, const Expr& extent) {
  const Poly low = impl_->poly(min);
  Poly high;
  try {
    high = impl_->sum(low, add(impl_->poly(extent), Poly(-1)));
  } catch (const Overflow&) {
    return;
  }
  const auto found = impl_->atom_of_leaf_.find(var.get());
  if (found != impl_->atom_of_leaf_.end()) {
    const auto known = impl_->vars_.find(found->second);
    if (known != impl_->vars_.end() && known->second.has_range && !known->second.value &&
        known->second.low == low && known->second.high == high)
      return;  // the same again
  }
  VarInfo& info = impl_->edit(var);
  info = {};
  info.has_range = true;
  info.low = low;
  info.high = high;
}

void Analyzer::bind(const Ref<Var>& var, const Expr& value) {
  const Expr simplified = impl_->simplify(value);
  VarInfo& info = impl_->edit(var);
  info = {};
  info.value = simplified->dtype == var->dtype ? simplified : tenon::cast(var->dtype, simplified);
}

void Analyzer::bind_lower(const Ref<Var>& var, int64_t least) {
  bind_bounds(var, {least, ConstBound::kInfinity});
}

void Analyzer::bind_bounds(const Ref<Var>& var, ConstBound bound) {
  VarInfo& info = impl_->edit(var);
  info.bound = bound;
  info.value = {};
}

void Analyzer::assume(const Expr& condition) {
  impl_->case_work_ = 0;
  impl_->assume(impl_->simplify(condition), true);
}

Analyzer::Scope Analyzer::enter() {
  impl_->enter_scope();
  return Scope(this);
}

Analyzer::Scope Analyzer::enter(const Expr& condition) {
  impl_->enter_scope();
  Scope scope(this);
  assume(condition);
  return scope;
}

void Analyzer::leave() { impl_->leave_scope(); }

// ---- what follows

Expr Analyzer::simplify(const Expr& expr) {
  impl_->case_work_ = 0;
  return impl_->simplify(expr);
}

std::vector<Expr> Analyzer::simplify(std::span<const Expr> exprs) {
  std::vector<Expr> out;
  out.reserve(exprs.size());
  for (const Expr& expr : exprs) out.push_back(simplify(expr));
  return out;
}

ConstBound Analyzer::const_bound(const Expr& expr) {
  if (const auto* ramp = expr.as<Ramp>()) {
    const ConstBound step = const_bound(ramp->stride);
    return bound_add(const_bound(ramp->base), bound_mul(step, {0, ramp->lanes - 1}));
  }
  if (const auto* splat = expr.as<Broadcast>()) return const_bound(splat->value);
  if (!expr->dtype.is_scalar()) return bound_of(expr->dtype.element());
  if (expr->dtype.is_bool()) {
    const auto value = as_int(impl_->simplify(expr));
    return value ? ConstBound{*value, *value} : ConstBound{0, 1};
  }
  if (!expr->dtype.is_integer()) return {};
  try {
    return impl_->bound(impl_->poly(expr));
  } catch (const Overflow&) {
    return {};
  }
}

Modular Analyzer::mod(const Expr& expr) {
  if (!expr->dtype.is_scalar() || !expr->dtype.is_integer()) return {};
  try {
    return impl_->modular(impl_->poly(expr));
  } catch (const Overflow&) {
    return {};
  }
}

bool Analyzer::proves(const Expr& condition) {
  impl_->case_work_ = 0;
  return impl_->proves(condition);
}

static bool is_scalar_integer(const Expr& expr) {
  return expr->dtype.is_scalar() && expr->dtype.is_integer() && expr->dtype != kUInt64;
}

bool Analyzer::proves_equal(const Expr& a, const Expr& b) {
  impl_->case_work_ = 0;
  if (a.same_as(b)) return true;
  if (is_scalar_integer(a) && is_scalar_integer(b)) {
    if (const auto x = as_int(a), y = as_int(b); x && y) return *x == *y;
    try {
      return impl_->equal_zero(impl_->sum(impl_->poly(a), impl_->poly(b), -1));
    } catch (const Overflow&) {
      return false;
    }
  }
  if (a->dtype != b->dtype) return false;
  return same(impl_->simplify(a), impl_->simplify(b));
}

bool Analyzer::proves_less_equal(const Expr& a, const Expr& b) {
  if (!is_scalar_integer(a) || !is_scalar_integer(b)) return false;
  try {
    return impl_->nonnegative(impl_->sum(impl_->poly(b), impl_->poly(a), -1), 48);
  } catch (const Overflow&) {
    return false;
  }
}

bool Analyzer::proves_less(const Expr& a, const Expr& b) {
  if (!is_scalar_integer(a) || !is_scalar_integer(b)) return false;
  try {
    const Poly gap = impl_->sum(impl_->poly(b), impl_->poly(a), -1);
    return impl_->nonnegative(add(gap, Poly(-1)), 48);
  } catch (const Overflow&) {
    return false;
  }
}

bool Analyzer::proves_equal(std::span<const Expr> a, std::span<const Expr> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!proves_equal(a[i], b[i])) return false;
  return true;
}

bool Analyzer::proves_divisible(const Expr& a, int64_t factor) {
  if (factor == 0) return false;
  return proves_divisible(a, imm(a->dtype, factor));
}

bool Analyzer::proves_divisible(const Expr& a, const Expr& factor) {
  if (!is_scalar_integer(a) || !is_scalar_integer(factor)) return false;
  try {
    const Poly p = impl_->poly(a), d = impl_->poly(factor);
    if (d.is(0)) return false;
    return impl_->equal_zero(impl_->floormod(p, d));
  } catch (const Overflow&) {
    return false;
  }
}

std::optional<LinearForm> Analyzer::linear(const Expr& expr, std::span<const Ref<Var>> vars) {
  if (!is_scalar_integer(expr)) return std::nullopt;
  try {
    Poly rest = impl_->poly(expr);
    std::vector<Poly> coefficients(vars.size());
    std::vector<AtomId> ids;
    for (const Ref<Var>& var : vars) ids.push_back(impl_->atom(var));
    Poly remaining(rest.constant);
    for (const Term& term : rest.terms) {
      const std::vector<AtomId>& factors = impl_->factors(term.mono);
      size_t found = vars.size();
      for (size_t i = 0; i < ids.size(); ++i)
        if (std::find(factors.begin(), factors.end(), ids[i]) != factors.end()) {
          found = i;
          break;
        }
      MonoId other = term.mono;
      if (found < vars.size()) {
        other = *impl_->divide(term.mono, impl_->mono_of(ids[found]));
        coefficients[found] =
            add(coefficients[found], other == kOne ? Poly(term.coeff) : Poly(term.coeff, other));
      } else {
        remaining = add(remaining, Poly(term.coeff, term.mono));
      }
      if (impl_->mentions(other, ids)) return std::nullopt;
    }
    LinearForm out;
    for (const Poly& coefficient : coefficients)
      out.coefficients.push_back(impl_->emit(coefficient, expr->dtype));
    out.rest = impl_->emit(remaining, expr->dtype);
    return out;
  } catch (const Overflow&) {
    return std::nullopt;
  }
}

bool Analyzer::Impl::mentions(MonoId mono, const std::vector<AtomId>& ids) {
  for (const AtomId id : std::vector<AtomId>(monos_[mono])) {
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
    const Atom& atom = atoms_[id];
    if (atom.kind == AtomKind::kVar) continue;
    if (atom.kind == AtomKind::kOther) {
      bool found = false;
      walk(atom.expr, [&](const NodePtr& node) {
        if (!node.as<Var>()) return;
        const auto known = atom_of_leaf_.find(node.get());
        found |= known != atom_of_leaf_.end() &&
                 std::find(ids.begin(), ids.end(), known->second) != ids.end();
      });
      if (found) return true;
      continue;
    }
    for (const Poly* side : {&atom.a, &atom.b})
      for (const Term& term : side->terms)
        if (mentions(term.mono, ids)) return true;
  }
  return false;
}

Expr simplify(const Expr& expr) { return Analyzer().simplify(expr); }
bool proves_equal(const Expr& a, const Expr& b) { return Analyzer().proves_equal(a, b); }
bool proves_equal(std::span<const Expr> a, std::span<const Expr> b) {
  return Analyzer().proves_equal(a, b);
}

}  // namespace tenon::arith
