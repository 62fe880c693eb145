// SPDX-License-Identifier: Apache-2.0
// Constant bounds, modular facts and proofs of non-negativity.
#include <algorithm>
#include <numeric>

#include "tenon/arith/polynomial.h"

namespace tenon::arith {

// ---- constant bounds

static int64_t divide_limit(int64_t a, int64_t c) {
  return a == ConstBound::kInfinity || a == ConstBound::kMinusInfinity ? a : floor_div(a, c);
}

ConstBound Analyzer::Impl::bound_of_atom(AtomId atom) {
  BoundEntry& entry = bounds_[atom];
  if (entry.epoch == epoch_) return entry.bound;
  if (entry.busy) return bound_of(atoms_[atom].dtype);  // a range that refers to itself
  entry.busy = true;
  ConstBound range;
  try {
    range = compute_bound(atom);
  } catch (const Overflow&) {
    range = bound_of(atoms_[atom].dtype);
  }
  const auto assumed = assumed_.find(mono_of(atom));
  if (assumed != assumed_.end()) range = intersect(range, assumed->second);
  BoundEntry& done = bounds_[atom];  // bounds_ may have grown
  done = {epoch_, false, range};
  return range;
}

ConstBound Analyzer::Impl::compute_bound(AtomId id) {
  const Atom atom = atoms_[id];
  switch (atom.kind) {
    case AtomKind::kVar: {
      ConstBound range = bound_of(atom.dtype);
      if (atom.expr.as<Var>()->is_size) range.min = std::max(range.min, int64_t{0});
      const auto known = vars_.find(id);
      if (known == vars_.end()) return range;
      const VarInfo info = known->second;
      range = intersect(range, info.bound);
      if (info.has_range) range = intersect(range, {bound(info.low).min, bound(info.high).max});
      return range;
    }
    case AtomKind::kFloorDiv: {
      const ConstBound a = bound(atom.a);
      if (atom.b.is_constant()) {
        const int64_t c = atom.b.constant;
        return {divide_limit(a.min, c), divide_limit(a.max, c)};
      }
      const ConstBound b = bound(atom.b);
      if (b.min < 0) return {};
      // A divisor of at least 1 (0 is an error) brings every value nearer to 0, -1 stays -1.
      const int64_t least = std::max(b.min, int64_t{1});
      ConstBound out;
      if (a.has_min()) out.min = a.min >= 0 ? 0 : divide_limit(a.min, least);
      if (a.has_max()) out.max = a.max >= 0 ? divide_limit(a.max, least) : -1;
      return out;
    }
    case AtomKind::kFloorMod: {
      const ConstBound b = bound(atom.b);
      if (b.min < 0) return {};
      ConstBound out{0, b.has_max() ? std::max(b.max - 1, int64_t{0}) : ConstBound::kInfinity};
      const ConstBound a = bound(atom.a);
      if (a.min >= 0) out.max = std::min(out.max, a.max);
      return out;
    }
    case AtomKind::kMin:
    case AtomKind::kMax: {
      const ConstBound a = bound(atom.a), b = bound(atom.b);
      if (atom.kind == AtomKind::kMin) return {std::min(a.min, b.min), std::min(a.max, b.max)};
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case AtomKind::kOther: break;
  }
  ConstBound range = bound_of(atom.dtype);
  if (!atom.dtype.is_scalar() || !(atom.dtype.is_integer() || atom.dtype.is_bool())) return range;
  const auto either = [&](const Expr& a, const Expr& b) {
    const ConstBound x = bound(poly(a)), y = bound(poly(b));
    return ConstBound{std::min(x.min, y.min), std::max(x.max, y.max)};
  };
  if (const auto* op = atom.expr.as<Select>())
    return intersect(range, either(op->true_value, op->false_value));
  if (const auto* op = atom.expr.as<Call>()) {
    if (op->is(IntrinsicId::kIfThenElse)) return intersect(range, either(op->arg(1), op->arg(2)));
    if (op->is(IntrinsicId::kPopcount) || op->is(IntrinsicId::kClz))
      return intersect(range, {0, op->arg(0)->dtype.bits});
    if (op->is(IntrinsicId::kBitwiseAnd)) {
      const ConstBound x = bound(poly(op->arg(0))), y = bound(poly(op->arg(1)));
      if (x.min >= 0) range = intersect(range, {0, x.max});
      if (y.min >= 0) range = intersect(range, {0, y.max});
      return range;
    }
    if (op->is(IntrinsicId::kCheckIndex)) {
      const ConstBound x = bound(poly(op->arg(0))), extent = bound(poly(op->arg(1)));
      range = intersect(range, {0, extent.has_max() ? extent.max - 1 : extent.max});
      range = intersect(range, x);
      // Never one value alone: a constant in its place would check nothing.
      if (range.is_constant()) ++range.max;
      return range;
    }
    if (op->is(IntrinsicId::kAbs)) {
      const ConstBound x = bound(poly(op->arg(0)));
      if (x.has_min() && x.has_max()) {
        const int64_t most = std::max(std::abs(x.min), std::abs(x.max));
        return {bound_of(atom.dtype).min, most};
      }
    }
    if (op->is(IntrinsicId::kShiftRight) && as_int(op->arg(1))) {
      const ConstBound x = bound(poly(op->arg(0)));
      const int64_t n = *as_int(op->arg(1));
      if (n < 0 || n >= op->dtype.bits || x.min < 0) return range;
      return intersect(range, {x.min >> n, x.has_max() ? x.max >> n : x.max});
    }
  }
  if (const auto* op = atom.expr.as<Cast>()) {
    if (op->value->dtype.is_bool()) return {0, 1};
  }
  if (const auto* op = atom.expr.as<Binary>()) {
    // A division towards zero: the quotient lies between 0 and the dividend.
    const auto c = as_int(op->rhs);
    if (!is_index_like(atom.dtype) || !c || *c <= 0) return range;
    const ConstBound x = bound(poly(op->lhs));
    if (op->op == BinaryOp::kDiv)
      return intersect(range, {x.has_min() ? x.min / *c : x.min, x.has_max() ? x.max / *c : x.max});
    if (op->op == BinaryOp::kMod)
      return intersect(range, {x.min >= 0 ? 0 : 1 - *c, x.max <= 0 ? 0 : *c - 1});
  }
  return range;
}

ConstBound Analyzer::Impl::bound(MonoId mono) {
  if (mono == kOne) return {1, 1};
  const std::vector<AtomId> factors = monos_[mono];
  if (factors.size() == 1) return bound_of_atom(factors[0]);
  ConstBound out{1, 1};
  for (size_t i = 0; i < factors.size();) {
    size_t power = 0;
    const ConstBound base = bound_of_atom(factors[i]);
    ConstBound range{1, 1};
    for (const AtomId id = factors[i]; i < factors.size() && factors[i] == id; ++i, ++power)
      range = bound_mul(range, base);
    if (power % 2 == 0) range = intersect(range, {0, ConstBound::kInfinity});
    out = bound_mul(out, range);
  }
  const auto assumed = assumed_.find(mono);
  return assumed == assumed_.end() ? out : intersect(out, assumed->second);
}

Poly Analyzer::Impl::replace_mono(const Poly& p, MonoId mono, const Poly& value) {
  const int64_t coeff = coefficient(p, mono);
  return sum(sub(p, Poly(coeff, mono)), value, coeff);
}

ConstBound Analyzer::Impl::bound(const Poly& p, int depth) {
  ConstBound out{p.constant, p.constant};
  for (const Term& term : p.terms) out = bound_add(out, bound_scale(bound(term.mono), term.coeff));
  if (p.terms.size() < 2) return out;
  // An assumption about the same sum.
  for (const Poly& fact : facts_) {
    if (fact.terms.size() != p.terms.size() || fact.terms[0].mono != p.terms[0].mono) continue;
    const int64_t k = p.terms[0].coeff / fact.terms[0].coeff;
    if (k == 0) continue;
    if (!std::equal(p.terms.begin(), p.terms.end(), fact.terms.begin(),
                    [&](const Term& a, const Term& b) {
                      return a.mono == b.mono && Int128{b.coeff} * k == a.coeff;
                    }))
      continue;
    // p = k * (fact - fact.constant) + p.constant, fact >= 0
    const int64_t limit = checked_add(p.constant, -checked_mul(k, fact.constant));
    out = intersect(out, k > 0 ? ConstBound{limit, ConstBound::kInfinity}
                               : ConstBound{ConstBound::kMinusInfinity, limit});
  }
  if (depth == 0) return out;
  const Restore merging(merging_, true);
  // A minimum beside what cancels in it: min(i * 8 + 8, n) - i * 8 <= 8.
  for (const Term& term : p.terms) {
    const Atom* found = single(term.mono);
    if (!found || (found->kind != AtomKind::kMin && found->kind != AtomKind::kMax)) continue;
    const bool is_min = found->kind == AtomKind::kMin;
    const MonoId mono = term.mono;
    const bool up = (term.coeff > 0) == is_min;  // both sides bound it from above
    const Poly a = found->a, b = found->b;
    const ConstBound x = bound(replace_mono(p, mono, a), depth - 1);
    const ConstBound y = bound(replace_mono(p, mono, b), depth - 1);
    ConstBound range{std::min(x.min, y.min), std::max(x.max, y.max)};
    if (up) range.max = std::min(x.max, y.max);
    if (!up) range.min = std::max(x.min, y.min);
    return intersect(out, range);
  }
  return out;
}

// ---- modular facts

Modular Analyzer::Impl::modular(MonoId mono) {
  Modular out{0, 1};
  for (const AtomId id : std::vector<AtomId>(monos_[mono])) {
    Modular fact{1, 0};
    const ConstBound range = bound_of_atom(id);
    if (range.is_constant()) {
      fact = {0, range.min};
    } else if (const auto known = vars_.find(id); known != vars_.end() && known->second.has_range) {
      // Of a range the start is known, no step.
    } else {
      // An assumption x % c == r, by the bound of the remainder's atom.
      for (const int64_t c : {2, 4, 8, 16, 32, 64, 3, 5, 7, 128, 256}) {
        const uint64_t h = hash_combine(hash_combine(hash(Poly(1, mono_of(id))), hash(Poly(c))),
                                        static_cast<uint64_t>(AtomKind::kFloorMod));
        if (atom_of_hash_.find(h) == atom_of_hash_.end()) continue;
        const ConstBound rest =
            bound_of_atom(atom(AtomKind::kFloorMod, Poly(1, mono_of(id)), Poly(c)));
        if (rest.is_constant() && c > fact.coefficient) fact = {c, rest.min};
      }
    }
    // (a i + b) (c j + d) = b d modulo gcd(a c, a d, b c)
    try {
      const int64_t g = std::gcd(std::gcd(checked_mul(out.coefficient, fact.coefficient),
                                          checked_mul(out.coefficient, fact.remainder)),
                                 checked_mul(out.remainder, fact.coefficient));
      const int64_t rest = checked_mul(out.remainder, fact.remainder);
      out = g == 0 ? Modular{0, rest} : Modular{g, floor_mod(rest, g)};
    } catch (const Overflow&) {
      return {};
    }
  }
  return out;
}

Modular Analyzer::Impl::modular(const Poly& p) {
  Modular out{0, p.constant};
  for (const Term& term : p.terms) {
    const Modular fact = modular(term.mono);
    const int64_t step = checked_mul(std::abs(term.coeff), fact.coefficient);
    const int64_t g = std::gcd(out.coefficient, step);
    const int64_t rest = checked_add(out.remainder, checked_mul(term.coeff, fact.remainder));
    out = g == 0 ? Modular{0, rest} : Modular{g, floor_mod(rest, g)};
  }
  return out;
}

// ---- proofs

// p with every x % c written as x - (x // c) * c, and what is whole taken out of quotients: makes
// equal what differs in form only.
Poly Analyzer::Impl::expand_remainders(const Poly& p) {
  Poly out = p;
  for (int round = 0; round < 16; ++round) {
    bool changed = false;
    for (const Term& term : out.terms) {
      const Atom* found = single(term.mono);
      if (!found || (found->kind != AtomKind::kFloorMod && found->kind != AtomKind::kFloorDiv))
        continue;
      const Atom atom = *found;
      const Term old = term;
      Poly value;
      if (atom.kind == AtomKind::kFloorMod) {
        const Poly quotient(1, mono_of(this->atom(AtomKind::kFloorDiv, atom.a, atom.b)));
        value = sub(atom.a, multiply(quotient, atom.b));
      } else {
        if (!atom.b.is_constant()) continue;
        const int64_t c = atom.b.constant;
        Poly whole, rest(atom.a.constant);
        for (const Term& t : atom.a.terms) {
          const int64_t q = floor_div(t.coeff, c);
          if (q) whole.terms.push_back({q, t.mono});
          if (t.coeff - q * c) rest.terms.push_back({t.coeff - q * c, t.mono});
        }
        if (whole.is(0)) continue;
        value = add(whole, floordiv(rest, c));
      }
      out = add(sub(out, Poly(old.coeff, old.mono)), value, old.coeff);
      changed = true;
      break;
    }
    if (!changed) break;
  }
  return out;
}

bool Analyzer::Impl::nonnegative(const Poly& p, int budget) {
  const Restore merging(merging_, true);
  try {
    if (prove(p, budget, 4)) return true;
    // Remainders hide what quotients by other divisors have in common.
    const bool remainders = std::any_of(p.terms.begin(), p.terms.end(), [&](const Term& term) {
      const Atom* found = single(term.mono);
      return found && found->kind == AtomKind::kFloorMod && found->b.is_constant();
    });
    if (!remainders || budget <= 0) return false;
    const Poly expanded = expand_remainders(p);
    return prove(expanded, budget, 4);
  } catch (const Overflow&) {
    return false;
  }
}

bool Analyzer::Impl::prove(const Poly& p, int& budget, int depth) {
  const ConstBound range = bound(p, 1);
  if (range.min >= 0) return true;
  if (p.is_constant() || range.max < 0 || depth == 0 || --budget < 0) return false;
  // A minimum is one of its sides: both must do, or either where it counts the other way.
  for (const Term& term : p.terms) {
    const Atom* found = single(term.mono);
    if (!found || (found->kind != AtomKind::kMin && found->kind != AtomKind::kMax)) continue;
    const bool both = (term.coeff > 0) == (found->kind == AtomKind::kMin);
    const Poly a = found->a, b = found->b;
    const MonoId mono = term.mono;
    const bool first = prove(replace_mono(p, mono, a), budget, depth - 1);
    if (first != both) return first;
    return prove(replace_mono(p, mono, b), budget, depth - 1);
  }
  return prove_by_facts(p, budget, depth);
}

// p >= 0 where k * p = fact * (product) + p' with k >= 1, product >= 0 and p' > -k: p is whole, so
// that k * p > -k says as much. `term` is the one of p that the fact cancels.
bool Analyzer::Impl::try_fact(const Poly& p, const Term& term, const Poly& fact, int& budget,
                              int depth) {
  for (const Term& candidate : fact.terms) {
    if ((candidate.coeff < 0) != (term.coeff < 0)) continue;
    const auto rest = divide(term.mono, candidate.mono);
    if (!rest || bound(*rest).min < 0) continue;
    const int64_t g = std::gcd(term.coeff, candidate.coeff);
    const int64_t times = std::abs(candidate.coeff) / g;
    const Poly scaled = scale(p, times);
    const Poly left =
        recombine(add(scaled, multiply_mono(fact, *rest, std::abs(term.coeff) / g), -1));
    if (prove(add(left, Poly(times - 1)), budget, depth - 1)) return true;
  }
  return false;
}

bool Analyzer::Impl::prove_by_facts(const Poly& p, int& budget, int depth) {
  for (const Term& term : p.terms) {
    // A term that cannot be negative needs no help; an assumption may still say it is large.
    const ConstBound range = bound_scale(bound(term.mono), term.coeff);
    if (range.min >= 0) continue;
    // What the atoms of the term say of themselves.
    for (const AtomId id : std::vector<AtomId>(monos_[term.mono])) {
      const Atom atom = atoms_[id];
      const Poly self(1, mono_of(id));
      std::vector<Poly> facts;
      switch (atom.kind) {
        case AtomKind::kVar: {
          const auto known = vars_.find(id);
          if (known == vars_.end() || !known->second.has_range) break;
          facts = {sub(known->second.high, self), sub(self, known->second.low)};
          break;
        }
        case AtomKind::kFloorDiv: {
          if (bound(atom.b).min < 0) break;  // the divisor is not 0, hence positive
          const Poly whole = multiply(atom.b, self);
          facts = {sub(atom.a, whole), add(add(sub(whole, atom.a), atom.b), Poly(-1))};
          // b * p > -b says as much as p >= 0, and there a >= b * self counts.
          if (!atom.b.is_constant() && term.coeff < 0 && term.mono == mono_of(id)) {
            const Poly rest = sub(p, Poly(term.coeff, term.mono));
            const Poly left = add(add(multiply(atom.b, rest), atom.a, term.coeff), atom.b);
            if (prove(recombine(add(left, Poly(-1))), budget, depth - 1)) return true;
          }
          // Quotients of one dividend by a divisor and by its divisor; of another dividend too that
          // lies a multiple of that away.
          for (const Term& other : p.terms) {
            const Atom* finer = single(other.mono);
            if (!atom.b.is_constant() || !finer || finer->kind != AtomKind::kFloorDiv ||
                !finer->b.is_constant() || other.mono == mono_of(id))
              continue;
            const Poly gap = sub(atom.a, finer->a);
            const int64_t whole = atom.b.constant, part = finer->b.constant;
            if (part > 0 && whole % part == 0 && gap.is_constant() && gap.constant % part == 0)
              facts.push_back(
                  add(add(Poly(1, other.mono), Poly(gap.constant / part)), self, -(whole / part)));
          }
          // A quotient lies between 0 and a dividend that is not negative.
          if (!atom.b.is_constant() && bound(atom.a).min >= 0) facts.push_back(sub(atom.a, self));
          break;
        }
        case AtomKind::kFloorMod: {
          if (bound(atom.b).min < 0) break;
          facts = {add(sub(atom.b, self), Poly(-1))};
          if (bound(atom.a).min >= 0) facts.push_back(sub(atom.a, self));
          break;
        }
        case AtomKind::kOther: {
          const auto* checked = atom.expr.as<Call>();
          // A checked index that is a minimum asks for proofs itself, which may end here again.
          if (!checked || !checked->is(IntrinsicId::kCheckIndex) || asks_checks_) break;
          const Restore asking(asks_checks_, true);
          const Poly index = poly(checked->arg(0));
          facts = {add(sub(poly(checked->arg(1)), self), Poly(-1)), sub(index, self),
                   sub(self, index)};
          break;
        }
        default: break;
      }
      for (const Poly& fact : facts)
        if (try_fact(p, term, fact, budget, depth)) return true;
      if (budget < 0) return false;
    }
  }
  for (size_t i = 0; i < facts_.size(); ++i) {
    const Poly fact = facts_[i];
    for (const Term& term : p.terms) {
      if (try_fact(p, term, fact, budget, depth)) return true;
      if (budget < 0) return false;
    }
  }
  return false;
}

bool Analyzer::Impl::equal_zero(const Poly& p) {
  if (p.is(0)) return true;
  const ConstBound range = bound(p);
  if (range.is_constant()) return range.min == 0;
  if (!range.contains(0)) return false;
  const Poly expanded = recombine(expand_remainders(p));
  if (expanded.is(0)) return true;
  return nonnegative(p) && nonnegative(negate(p));
}

}  // namespace tenon::arith
