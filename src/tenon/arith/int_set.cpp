// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/int_set.h"

#include <algorithm>

#include "tenon/arith/polynomial.h"

namespace tenon::arith {

namespace {

struct Ends {
  std::optional<Poly> low, high;
};

class IntervalEvaluator {
 public:
  IntervalEvaluator(Analyzer::Impl& impl, const Expr& expr, const Domain& domain) : impl_(impl) {
    // In the order of the expression, then of names: never of addresses.
    impl.poly(expr);
    for (const auto& [var, interval] : domain) order_.emplace_back(ref_to(var), &interval);
    const auto rank = [&](const Ref<Var>& var) {
      const auto known = impl.atom_of_leaf_.find(var.get());
      return known == impl.atom_of_leaf_.end() ? ~AtomId{0} : known->second;
    };
    std::sort(order_.begin(), order_.end(), [&](const auto& a, const auto& b) {
      const AtomId x = rank(a.first), y = rank(b.first);
      return x != y ? x < y : a.first->name < b.first->name;
    });
    for (const auto& [var, interval] : order_) {
      Ends ends;
      if (interval->min) ends.low = impl.poly(interval->min);
      if (interval->max) ends.high = impl.poly(interval->max);
      ids_.push_back(impl.atom(var));
      ends_.emplace(ids_.back(), std::move(ends));
    }
  }

  // Bounds are known while the result is formed, so that splits resolve.
  void bind() {
    for (const auto& [var, interval] : order_) {
      const Ends& ends = ends_.at(impl_.atom(var));
      VarInfo& info = impl_.edit(var);
      info = {};
      if (!ends.low || !ends.high) continue;
      info.has_range = true;
      info.low = *ends.low;
      info.high = *ends.high;
    }
    for (const auto& [var, interval] : order_) {
      const Ends& ends = ends_.at(impl_.atom(var));
      if (ends.low && ends.high) continue;
      ConstBound bound;
      if (ends.low) bound.min = impl_.bound(*ends.low).min;
      if (ends.high) bound.max = impl_.bound(*ends.high).max;
      impl_.edit(var).bound = bound;
    }
    impl_.changed();
  }

  bool mentions(const Poly& p) {
    return std::any_of(p.terms.begin(), p.terms.end(),
                       [&](const Term& t) { return impl_.mentions(t.mono, ids_); });
  }

  Ends of(const Poly& p, int depth = 8) {
    Ends out{Poly(p.constant), Poly(p.constant)};
    if (depth == 0) return constants(p);
    for (const Term& term : p.terms) {
      Ends part = of_mono(term.mono, depth);
      if (term.coeff < 0) std::swap(part.low, part.high);
      add_end(out.low, part.low, term.coeff);
      add_end(out.high, part.high, term.coeff);
    }
    if (p.terms.size() > 1 && (!out.low || !out.high)) {
      const Ends fallback = constants(p);
      if (!out.low) out.low = fallback.low;
      if (!out.high) out.high = fallback.high;
    }
    return out;
  }

 private:
  void add_end(std::optional<Poly>& sum, const std::optional<Poly>& part, int64_t coeff) {
    if (sum && part) {
      sum = impl_.sum(*sum, *part, coeff);
    } else {
      sum.reset();
    }
  }

  Ends constants(const Poly& p) {
    const ConstBound range = impl_.bound(p);
    Ends out;
    if (range.has_min()) out.low = Poly(range.min);
    if (range.has_max()) out.high = Poly(range.max);
    return out;
  }

  Ends of_mono(MonoId mono, int depth) {
    const std::vector<AtomId> factors = impl_.factors(mono);
    MonoId rest = kOne;
    std::optional<AtomId> moving;
    for (const AtomId id : factors) {
      if (!impl_.mentions(impl_.mono_of(id), ids_)) {
        rest = impl_.multiply(rest, impl_.mono_of(id));
      } else if (moving) {
        return constants(Poly(1, mono));
      } else {
        moving = id;
      }
    }
    if (!moving) return {Poly(1, mono), Poly(1, mono)};
    Ends ends = of_atom(*moving, depth);
    if (rest == kOne) return ends;
    const ConstBound sign = impl_.bound(rest);
    if (sign.min < 0 && sign.max > 0) return constants(Poly(1, mono));
    if (sign.min < 0) std::swap(ends.low, ends.high);
    if (ends.low) ends.low = impl_.multiply_mono(*ends.low, rest, 1);
    if (ends.high) ends.high = impl_.multiply_mono(*ends.high, rest, 1);
    return ends;
  }

  Ends of_atom(AtomId id, int depth) {
    const Atom atom = impl_.atoms_[id];
    const Poly self(1, impl_.mono_of(id));
    switch (atom.kind) {
      case AtomKind::kVar: return ends_.at(id);
      case AtomKind::kFloorDiv: {
        if (mentions(atom.b) || impl_.bound(atom.b).min < 0) return constants(self);
        Ends a = of(atom.a, depth - 1);
        if (a.low) a.low = impl_.floordiv(*a.low, atom.b);
        if (a.high) a.high = impl_.floordiv(*a.high, atom.b);
        return a;
      }
      case AtomKind::kFloorMod: {
        if (mentions(atom.b) || impl_.bound(atom.b).min < 0) return constants(self);
        const Ends a = of(atom.a, depth - 1);
        if (a.low && a.high) {
          const Poly first = impl_.floordiv(*a.low, atom.b);
          const Poly gap = impl_.sum(first, impl_.floordiv(*a.high, atom.b), -1);
          if (impl_.equal_zero(gap))
            return {impl_.floormod(*a.low, atom.b), impl_.floormod(*a.high, atom.b)};
        }
        Ends out{Poly(0), add(atom.b, Poly(-1))};
        const ConstBound range = impl_.bound(self);
        if (range.has_max() && atom.b.is_constant()) out.high = Poly(range.max);
        return out;
      }
      case AtomKind::kMin:
      case AtomKind::kMax: {
        const Ends a = of(atom.a, depth - 1), b = of(atom.b, depth - 1);
        const bool is_min = atom.kind == AtomKind::kMin;
        const auto meet = [&](const std::optional<Poly>& x, const std::optional<Poly>& y,
                              bool one_is_enough) -> std::optional<Poly> {
          if (x && y) return impl_.extremum(atom.kind, *x, *y);
          if (one_is_enough) return x ? x : y;
          return std::nullopt;
        };
        return {meet(a.low, b.low, !is_min), meet(a.high, b.high, is_min)};
      }
      case AtomKind::kOther: break;
    }
    if (const auto* op = atom.expr.as<Call>(); op && op->is(IntrinsicId::kCheckIndex)) {
      Ends ends = of(impl_.poly(op->arg(0)), depth - 1);
      const Ends extent = of(impl_.poly(op->arg(1)), depth - 1);
      if (!ends.low || impl_.bound(*ends.low).min < 0) ends.low = Poly(0);
      if (extent.high) {
        const Poly last = add(*extent.high, Poly(-1));
        if (!ends.high || !impl_.nonnegative(impl_.sum(last, *ends.high, -1), 12)) ends.high = last;
      }
      return ends;
    }
    Expr x, y;
    if (const auto* op = atom.expr.as<Select>()) x = op->true_value, y = op->false_value;
    if (const auto* op = atom.expr.as<Call>(); op && op->is(IntrinsicId::kIfThenElse))
      x = op->arg(1), y = op->arg(2);
    if (x) {
      const Ends a = of(impl_.poly(x), depth - 1), b = of(impl_.poly(y), depth - 1);
      Ends out;
      if (a.low && b.low) out.low = impl_.minimum(*a.low, *b.low);
      if (a.high && b.high) out.high = impl_.maximum(*a.high, *b.high);
      return out;
    }
    return constants(self);
  }

  Analyzer::Impl& impl_;
  std::vector<std::pair<Ref<Var>, const Interval*>> order_;
  std::vector<AtomId> ids_;
  std::unordered_map<AtomId, Ends> ends_;
};

}  // namespace

Interval evaluate(Analyzer& analyzer, const Expr& expr, const Domain& domain) {
  if (!expr->dtype.is_scalar() || !expr->dtype.is_integer()) return {};
  Analyzer::Impl& impl = analyzer.impl();
  Interval out;
  IntervalEvaluator evaluator(impl, expr, domain);
  const auto scope = analyzer.enter();
  evaluator.bind();
  try {
    Ends ends;
    ends.low = ends.high = impl.poly(expr);
    // An end may refer to variables that run outside it: those are next.
    for (int round = 0; round < 8; ++round) {
      const bool low = ends.low && evaluator.mentions(*ends.low);
      const bool high = ends.high && evaluator.mentions(*ends.high);
      if (!low && !high) break;
      if (round == 7) return {};
      if (low) ends.low = evaluator.of(*ends.low).low;
      if (high) ends.high = evaluator.of(*ends.high).high;
    }
    if (ends.low) out.min = impl.emit(*ends.low, expr->dtype);
    if (ends.high) out.max = impl.emit(*ends.high, expr->dtype);
    if (out.min && out.max && *ends.low == *ends.high) out.max = out.min;
  } catch (const Overflow&) {
    return {};
  }
  return out;
}

Interval evaluate(const Expr& expr, const Domain& domain) {
  Analyzer analyzer;
  return evaluate(analyzer, expr, domain);
}

Interval unite(Analyzer& analyzer, const Interval& a, const Interval& b) {
  Interval out;
  if (a.min && b.min) out.min = analyzer.simplify(min(a.min, b.min));
  if (a.max && b.max) out.max = analyzer.simplify(max(a.max, b.max));
  return out;
}

Interval intersect(Analyzer& analyzer, const Interval& a, const Interval& b) {
  Interval out;
  out.min = a.min && b.min ? analyzer.simplify(max(a.min, b.min)) : a.min ? a.min : b.min;
  out.max = a.max && b.max ? analyzer.simplify(min(a.max, b.max)) : a.max ? a.max : b.max;
  return out;
}

Range to_range(Analyzer& analyzer, const Interval& interval) {
  check(interval.is_bounded(), "an interval without ends is no range");
  return {analyzer.simplify(interval.min), analyzer.simplify(interval.max - interval.min + 1)};
}

}  // namespace tenon::arith
