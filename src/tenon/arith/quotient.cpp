// SPDX-License-Identifier: Apache-2.0
// Quotients and remainders towards minus infinity, and minima and maxima, of polynomials.
#include <algorithm>
#include <numeric>

#include "tenon/arith/polynomial.h"

namespace tenon::arith {

/// A sum written as unit * high + low with 0 <= low < unit, unit a divisor of the c at hand.
struct Analyzer::Impl::Split {
  int64_t unit;
  Poly high, low;
};

// Terms that are multiples of a divisor of c stay apart from the rest where the rest is too small
// to carry: (i * 4 + j) // 8 with 0 <= j < 4 is i // 2.
std::optional<Analyzer::Impl::Split> Analyzer::Impl::split_low(const Poly& r, int64_t c) {
  struct Part {
    Term term;
    int64_t unit;
  };
  std::vector<Part> parts;
  for (const Term& term : r.terms) parts.push_back({term, std::gcd(term.coeff, c)});
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.unit != b.unit ? a.unit > b.unit : a.term.mono < b.term.mono;
  });
  int64_t unit = c;
  std::optional<Split> found;
  for (size_t taken = 1; taken <= parts.size(); ++taken) {
    unit = std::gcd(unit, parts[taken - 1].unit);
    if (unit == 1) break;
    if (taken < parts.size() && parts[taken].unit == parts[taken - 1].unit) continue;
    Poly low(r.constant);
    for (size_t i = taken; i < parts.size(); ++i)
      low = add(low, Poly(parts[i].term.coeff, parts[i].term.mono));
    const ConstBound range = bound(low);
    if (!range.has_min() || !range.has_max()) continue;
    const int64_t k = floor_div(range.min, unit);
    if (k != floor_div(range.max, unit)) continue;
    Poly high(k);
    for (size_t i = 0; i < taken; ++i)
      high = add(high, Poly(parts[i].term.coeff / unit, parts[i].term.mono));
    low.constant = checked_add(low.constant, -checked_mul(k, unit));
    found = Split{unit, std::move(high), std::move(low)};
    break;
  }
  return found;
}

Poly Analyzer::Impl::floordiv(const Poly& p, int64_t c) {
  if (c == 0) throw Overflow{};
  if (c < 0) return floordiv(negate(p), checked_mul(c, -1));
  if (c == 1) return p;
  Poly q(floor_div(p.constant, c)), r(floor_mod(p.constant, c));
  for (const Term& term : p.terms) {
    // Only what divides leaves: (i * 12 + j) // 8 stays one quotient of a fused index.
    if (term.coeff % c == 0) {
      q.terms.push_back({term.coeff / c, term.mono});
    } else {
      r.terms.push_back(term);
    }
  }
  if (r.is_constant()) return q;
  const ConstBound range = bound(r);
  if (range.has_min() && range.has_max()) {
    const int64_t k = floor_div(range.min, c);
    if (k == floor_div(range.max, c)) {
      q.constant = checked_add(q.constant, k);
      return q;
    }
  }
  if (const auto split = split_low(r, c)) return sum(q, floordiv(split->high, c / split->unit));
  if (r.terms.size() == 1 && r.terms[0].coeff == 1) {
    if (const Atom* found = single(r.terms[0].mono)) {
      const Atom inner = *found;
      if (inner.kind == AtomKind::kFloorDiv && inner.b.is_constant()) {
        const int64_t d = inner.b.constant;
        return sum(q, floordiv(add(inner.a, Poly(checked_mul(d, r.constant))), checked_mul(d, c)));
      }
      if (inner.kind == AtomKind::kFloorMod && inner.b.is_constant() && r.constant == 0 &&
          inner.b.constant % c == 0)
        return sum(q, floormod(floordiv(inner.a, c), inner.b.constant / c));
    }
  }
  return sum(q, value_of(atom(AtomKind::kFloorDiv, r, Poly(c))));
}

Poly Analyzer::Impl::floormod(const Poly& p, int64_t c) {
  if (c == 0) throw Overflow{};
  if (c < 0) return negate(floormod(negate(p), checked_mul(c, -1)));
  if (c == 1) return {};
  const auto within = [&](const Poly& q) -> std::optional<Poly> {
    const ConstBound range = bound(q);
    if (!range.has_min() || !range.has_max()) return std::nullopt;
    const int64_t k = floor_div(range.min, c);
    if (k != floor_div(range.max, c)) return std::nullopt;
    return add(q, Poly(checked_mul(k, c)), -1);
  };
  if (auto whole = within(p)) return *whole;
  Poly r(floor_mod(p.constant, c));
  for (const Term& term : p.terms)
    if (term.coeff % c) r.terms.push_back(term);
  if (r.is_constant()) return r;
  if (auto whole = within(r)) return *whole;
  for (const Term term : r.terms) {
    const Atom* inner = single(term.mono);
    if (!inner || inner->kind != AtomKind::kFloorMod || !inner->b.is_constant()) continue;
    if (Int128{term.coeff} * inner->b.constant % c != 0) continue;
    const Poly replaced = add(sub(r, Poly(term.coeff, term.mono)), inner->a, term.coeff);
    return floormod(replaced, c);
  }
  if (const auto split = split_low(r, c))
    return sum(split->low, floormod(split->high, c / split->unit), split->unit);
  const Modular fact = modular(r);
  if (fact.coefficient != 0 && fact.coefficient % c == 0) return floor_mod(fact.remainder, c);
  return value_of(atom(AtomKind::kFloorMod, r, Poly(c)));
}

// Divides both by the product of atoms and the integer that all their terms share.
void Analyzer::Impl::cancel_content(Poly& p, Poly& d, MonoId& common, int64_t& content) {
  common = kOne;
  content = std::gcd(p.constant, d.constant);
  std::vector<AtomId> shared = d.terms.empty() ? std::vector<AtomId>{} : monos_[d.terms[0].mono];
  if (p.constant || d.constant) shared.clear();
  for (const Poly* side : {&p, &d}) {
    for (const Term& term : side->terms) {
      content = std::gcd(content, term.coeff);
      std::vector<AtomId> both;
      std::set_intersection(shared.begin(), shared.end(), monos_[term.mono].begin(),
                            monos_[term.mono].end(), std::back_inserter(both));
      shared = std::move(both);
    }
  }
  for (const AtomId id : shared) common = multiply(common, mono_of(id));
  if (common == kOne && content == 1) return;
  for (Poly* side : {&p, &d}) {
    Poly out(side->constant / content);
    for (const Term& term : side->terms) {
      const MonoId rest = *divide(term.mono, common);
      if (rest == kOne) {
        out.constant = checked_add(out.constant, term.coeff / content);
      } else {
        out = add(out, Poly(term.coeff / content, rest));
      }
    }
    *side = std::move(out);
  }
}

// Polynomial division by leading terms: p = quotient * d + rest. False where nothing divides.
bool Analyzer::Impl::divide_exact(const Poly& p, const Poly& d, Poly& quotient, Poly& rest) {
  const auto degree = [&](const Term& t) { return monos_[t.mono].size(); };
  const auto leads = [&](const Term& a, const Term& b) {  // graded, then by atoms: an order that
    if (degree(a) != degree(b)) return degree(a) > degree(b);  // products keep
    return monos_[a.mono] > monos_[b.mono];
  };
  const Term lead = *std::min_element(d.terms.begin(), d.terms.end(), leads);
  quotient = {};
  rest = {};
  Poly left = p;
  for (int round = 0; round < 32 && !left.terms.empty(); ++round) {
    const Term top = *std::min_element(left.terms.begin(), left.terms.end(), leads);
    const auto mono = divide(top.mono, lead.mono);
    const int64_t coeff = mono ? top.coeff / lead.coeff : 0;
    if (coeff == 0) {
      rest = add(rest, Poly(top.coeff, top.mono));
      left = sub(left, Poly(top.coeff, top.mono));
      continue;
    }
    const Poly factor = *mono == kOne ? Poly(coeff) : Poly(coeff, *mono);
    quotient = add(quotient, factor);
    left = add(left, multiply_mono(d, *mono, coeff), -1);
    if (const int64_t remains = coefficient(left, top.mono)) {
      rest = add(rest, Poly(remains, top.mono));
      left = sub(left, Poly(remains, top.mono));
    }
  }
  rest = add(rest, left);
  return !quotient.is(0);
}

// The quotient where it can be told without an atom; p = q * d + r on return in any case.
std::optional<Poly> Analyzer::Impl::resolve_quotient(const Poly& p, const Poly& d, Poly& q,
                                                     Poly& r) {
  if (!divide_exact(p, d, q, r)) r = p;
  if (r.is(0)) return q;
  if (!proving_) {
    // 0 <= r < d, or -d <= r < 0. A divisor that is not negative is at least 1.
    const Restore proving(proving_, true);
    std::optional<Poly> out;
    if (nonnegative(d)) {
      const LocalScope scope(*this);
      assume_nonnegative(add(d, Poly(-1)));
      if (nonnegative(r)) {
        if (nonnegative(add(sub(d, r), Poly(-1)))) out = q;
      } else if (nonnegative(add(negate(r), Poly(-1))) && nonnegative(add(r, d))) {
        out = add(q, Poly(-1));
      }
    }
    if (out) return out;
  }
  if (d.terms.size() > 1 || d.constant != 0) {  // no smaller form: keep it whole
    q = {};
    r = p;
  }
  return std::nullopt;
}

Poly Analyzer::Impl::floordiv(const Poly& p, const Poly& d) {
  if (d.is_constant()) return floordiv(p, d.constant);
  if (p.is(0)) return {};
  Poly numerator = p, divisor = d;
  MonoId common;
  int64_t content;
  cancel_content(numerator, divisor, common, content);
  if (divisor.is_constant()) return floordiv(numerator, divisor.constant);
  Poly q, r;
  if (const auto known = resolve_quotient(numerator, divisor, q, r)) return *known;
  return sum(q, value_of(atom(AtomKind::kFloorDiv, r, divisor)));
}

Poly Analyzer::Impl::floormod(const Poly& p, const Poly& d) {
  if (d.is_constant()) return floormod(p, d.constant);
  if (p.is(0)) return {};
  Poly numerator = p, divisor = d;
  MonoId common;
  int64_t content;
  cancel_content(numerator, divisor, common, content);
  const auto restore = [&](const Poly& remainder) {
    return multiply_mono(remainder, common, content);
  };
  if (divisor.is_constant()) {
    // A negative unit divides like its opposite: (g * a) % (g * b) is g * (a % b) for every g.
    return restore(floormod(numerator, divisor.constant));
  }
  Poly q, r;
  if (const auto known = resolve_quotient(numerator, divisor, q, r))
    return restore(sub(numerator, multiply(*known, divisor)));
  return restore(value_of(atom(AtomKind::kFloorMod, r, divisor)));
}

Poly Analyzer::Impl::minimum(const Poly& a, const Poly& b) {
  return extremum(AtomKind::kMin, a, b);
}
Poly Analyzer::Impl::maximum(const Poly& a, const Poly& b) {
  return extremum(AtomKind::kMax, a, b);
}

Poly Analyzer::Impl::extremum(AtomKind kind, const Poly& a, const Poly& b) {
  const bool is_min = kind == AtomKind::kMin;
  const Poly difference = recombine(sub(a, b));
  if (nonnegative(difference, 12)) return is_min ? b : a;
  if (nonnegative(negate(difference), 12)) return is_min ? a : b;
  // What both sides share stands outside: min(i * 8 + 8, i * 8 + n) is i * 8 + min(8, n).
  Poly common;
  for (const Term& term : a.terms)
    if (coefficient(b, term.mono) == term.coeff) common.terms.push_back(term);
  if (a.constant && b.constant && (a.constant < 0) == (b.constant < 0))
    common.constant = std::abs(a.constant) < std::abs(b.constant) ? a.constant : b.constant;
  Poly x = sub(a, common), y = sub(b, common);
  if (poly_before(y, x)) std::swap(x, y);
  return sum(common, value_of(atom(kind, x, y)));
}

}  // namespace tenon::arith
