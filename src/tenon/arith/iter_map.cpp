// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/iter_map.h"

#include <algorithm>

#include "tenon/arith/polynomial.h"
#include "tenon/ir/visit.h"

namespace tenon::arith {

namespace {

/// (source // lower) % extent, times scale. A source is an iterator or a fused sum of splits.
struct Part {
  size_t source;
  Poly lower, extent, scale;
};

/// Parts in the order of their scales, the smallest first, and a base.
struct Sum {
  std::vector<Part> parts;
  Poly base;
};

struct Source {
  Poly value;  // from 0
  Poly extent;
  std::vector<Part> fused;  // of an iterator empty
  std::vector<Part> uses;   // what the indices see of it
  Poly found;               // its value in terms of the indices
};

struct NotUnderstood {};

class Detector {
 public:
  Detector(Analyzer::Impl& impl, std::span<const Iterator> domain, MapKind kind)
      : impl_(impl), kind_(kind) {
    for (const Iterator& iterator : domain) {
      const AtomId id = impl.atom(iterator.var);
      const Poly low = impl.poly(iterator.min);
      Source source;
      source.value = sub(Poly(1, impl.mono_of(id)), low);
      source.extent = impl.poly(iterator.extent);
      ids_.push_back(id);
      lows_.push_back(low);
      sources_.push_back(std::move(source));
    }
  }

  /// \throws NotUnderstood, Overflow
  IterMap run(std::span<const Expr> indices, std::span<const Iterator> domain,
              const Expr& predicate) {
    std::vector<Poly> limits = limits_of(predicate);
    IterMap map;
    std::vector<Sum> sums;
    std::vector<Poly> extents;
    for (const Expr& index : indices) {
      const Poly p = impl_.poly(index);
      Sum sum = parse(p);
      Poly extent = order(sum.parts, Poly(1));
      // index + rest < 0 bounds it where the rest is free of iterators.
      for (auto it = limits.begin(); it != limits.end(); ++it) {
        const Poly rest = sub(*it, p);
        if (sum.parts.empty() || mentions(rest)) continue;
        const Poly limit = sub(negate(rest), sum.base);
        extent = impl_.minimum(extent, limit);
        limits.erase(it);
        break;
      }
      sums.push_back(std::move(sum));
      extents.push_back(std::move(extent));
    }
    if (!limits.empty() && kind_ == MapKind::kBijective) throw NotUnderstood{};

    // Each index falls into its parts again.
    std::vector<Poly> placeholders;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Ref<Var> placeholder = var(fmt::format("y{}", i), indices[i]->dtype);
      map.placeholders.push_back(placeholder);
      const AtomId id = impl_.atom(placeholder);
      VarInfo& info = impl_.edit(placeholder);
      info.has_range = true;
      info.low = sums[i].base;
      info.high = add(add(sums[i].base, extents[i]), Poly(-1));
      placeholders.push_back(sub(Poly(1, impl_.mono_of(id)), sums[i].base));
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      take_apart(placeholders[i], sums[i].parts);
      const DType dtype = indices[i]->dtype;
      map.min.push_back(impl_.emit(sums[i].base, dtype));
      map.extent.push_back(impl_.emit(extents[i], dtype));
    }
    // A fused source is made after what it is made of.
    for (size_t i = sources_.size(); i-- > 0;) {
      put_together(sources_[i], i < ids_.size());
      if (i >= ids_.size()) take_apart(sources_[i].found, sources_[i].fused);
    }
    for (size_t i = 0; i < ids_.size(); ++i)
      map.inverse.push_back(
          impl_.emit(impl_.sum(sources_[i].found, lows_[i]), domain[i].var->dtype));
    return map;
  }

 private:
  bool equal(const Poly& a, const Poly& b) {
    return a == b || impl_.equal_zero(impl_.sum(a, b, -1));
  }
  bool mentions(const Poly& p) {
    return std::any_of(p.terms.begin(), p.terms.end(),
                       [&](const Term& t) { return impl_.mentions(t.mono, ids_); });
  }

  // The predicate's conjuncts, each as p < 0.
  std::vector<Poly> limits_of(const Expr& predicate) {
    if (!predicate || is_int(predicate, 1)) return {};
    if (const auto* op = predicate.as<Call>(); op && op->is(IntrinsicId::kLikely))
      return limits_of(op->arg(0));
    const auto* op = predicate.as<Binary>();
    if (!op) throw NotUnderstood{};
    if (op->op == BinaryOp::kAnd) {
      std::vector<Poly> out = limits_of(op->lhs);
      for (Poly& p : limits_of(op->rhs)) out.push_back(std::move(p));
      return out;
    }
    if (!is_comparison(op->op) || !op->lhs->dtype.is_integer()) throw NotUnderstood{};
    const Poly p = sub(impl_.poly(op->lhs), impl_.poly(op->rhs));
    switch (op->op) {
      case BinaryOp::kLT: return {p};
      case BinaryOp::kLE: return {add(p, Poly(-1))};
      case BinaryOp::kGT: return {negate(p)};
      case BinaryOp::kGE: return {add(negate(p), Poly(-1))};
      default: throw NotUnderstood{};
    }
  }

  Sum parse(const Poly& p) {
    Sum out;
    out.base = Poly(p.constant);
    for (const Term& term : p.terms) {
      if (!impl_.mentions(term.mono, ids_)) {
        out.base = add(out.base, Poly(term.coeff, term.mono));
        continue;
      }
      std::optional<AtomId> moving;
      MonoId rest = kOne;
      for (const AtomId id : std::vector<AtomId>(impl_.factors(term.mono))) {
        if (!impl_.mentions(impl_.mono_of(id), ids_)) {
          rest = impl_.multiply(rest, impl_.mono_of(id));
        } else if (moving) {
          throw NotUnderstood{};
        } else {
          moving = id;
        }
      }
      const Poly scale = rest == kOne ? Poly(term.coeff) : Poly(term.coeff, rest);
      Sum part = parse_atom(*moving);
      out.base = impl_.sum(out.base, impl_.multiply(part.base, scale));
      for (Part& piece : part.parts) {
        piece.scale = impl_.multiply(piece.scale, scale);
        out.parts.push_back(std::move(piece));
      }
    }
    return out;
  }

  Sum parse_atom(AtomId id) {
    const Atom atom = impl_.atoms_[id];
    if (atom.kind == AtomKind::kVar) {
      const auto it = std::find(ids_.begin(), ids_.end(), id);
      const auto i = static_cast<size_t>(it - ids_.begin());
      Sum out;
      out.base = lows_[i];
      if (!sources_[i].extent.is(1)) out.parts = {{i, Poly(1), sources_[i].extent, Poly(1)}};
      return out;
    }
    const bool quotient = atom.kind == AtomKind::kFloorDiv;
    if ((!quotient && atom.kind != AtomKind::kFloorMod) || mentions(atom.b)) throw NotUnderstood{};
    Sum inner = parse(atom.a);
    if (!inner.base.is(0)) throw NotUnderstood{};
    Part part = single_part(std::move(inner), atom.a);
    const Poly& c = atom.b;
    // (x // lower % extent) divided by c: exact, or rounded up at the top of its source.
    const Poly outer = impl_.floordiv(part.extent, c);
    const bool exact = equal(impl_.multiply(outer, c), part.extent);
    const bool top = equal(impl_.multiply(part.lower, part.extent), sources_[part.source].extent);
    if (!exact && !top) throw NotUnderstood{};
    if (quotient) {
      part.lower = impl_.multiply(part.lower, c);
      part.extent = exact ? outer : impl_.floordiv(add(add(part.extent, c), Poly(-1)), c);
    } else {
      part.extent = c;
    }
    Sum out;
    if (!part.extent.is(1)) out.parts = {part};
    return out;
  }

  // A sum seen as one part: the part itself, or of a source that fuses them.
  Part single_part(Sum sum, const Poly& value) {
    if (sum.parts.size() == 1 && sum.parts[0].scale.is(1)) return sum.parts[0];
    for (size_t i = ids_.size(); i < sources_.size(); ++i)
      if (sources_[i].value == value) return {i, Poly(1), sources_[i].extent, Poly(1)};
    Source source;
    source.value = value;
    const MapKind kind = std::exchange(kind_, MapKind::kBijective);  // fused sums have no gaps
    source.extent = order(sum.parts, Poly(1));
    kind_ = kind;
    source.fused = std::move(sum.parts);
    sources_.push_back(source);
    return {sources_.size() - 1, Poly(1), source.extent, Poly(1)};
  }

  // Orders parts so that each one's scale is the product of the extents before it. Returns the
  // extent of their sum. Where gaps are allowed a scale may be larger than that.
  Poly order(std::vector<Part>& parts, Poly expected) {
    for (size_t i = 0; i < parts.size(); ++i) {
      size_t next = parts.size();
      for (size_t k = i; k < parts.size() && next == parts.size(); ++k)
        if (equal(parts[k].scale, expected)) next = k;
      if (next == parts.size() && kind_ == MapKind::kInjective) {
        for (size_t k = i; k < parts.size(); ++k) {
          if (!impl_.nonnegative(sub(parts[k].scale, expected))) continue;
          if (next == parts.size() || impl_.nonnegative(sub(parts[next].scale, parts[k].scale)))
            next = k;
        }
        // All others must lie above it.
        for (size_t k = i; next < parts.size() && k < parts.size(); ++k)
          if (!impl_.nonnegative(sub(parts[k].scale, parts[next].scale))) throw NotUnderstood{};
      }
      if (next == parts.size()) throw NotUnderstood{};
      std::swap(parts[i], parts[next]);
      expected = impl_.multiply(parts[i].scale, parts[i].extent);
    }
    return expected;
  }

  // What `value` = sum of the ordered parts says of each part's source.
  void take_apart(const Poly& value, const std::vector<Part>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      Part part = parts[i];
      Poly piece = value;
      if (!part.scale.is(1)) piece = impl_.floordiv(piece, part.scale);
      if (i + 1 < parts.size()) {
        // Up to where the next part begins; with gaps that is more than the extent.
        piece = equal(parts[i + 1].scale, impl_.multiply(part.scale, part.extent))
                    ? impl_.floormod(piece, part.extent)
                    : impl_.floordiv(impl_.floormod(value, parts[i + 1].scale), part.scale);
      }
      part.scale = std::move(piece);  // from here on: its value
      sources_[part.source].uses.push_back(std::move(part));
    }
  }

  // The source from what was seen of it: all of it, each piece once.
  void put_together(Source& source, bool is_iterator) {
    source.found = {};
    if (source.extent.is(1)) return;
    std::vector<Part> left = source.uses;
    if (left.empty() && !is_iterator) return;
    Poly covered(1);
    while (!left.empty()) {
      const auto next = std::find_if(left.begin(), left.end(),
                                     [&](const Part& part) { return equal(part.lower, covered); });
      if (next == left.end()) {
        if (kind_ == MapKind::kBijective) throw NotUnderstood{};
        break;  // seen twice: what is left must be no more than that
      }
      source.found = impl_.sum(source.found, impl_.multiply(next->scale, next->lower));
      covered = impl_.multiply(covered, next->extent);
      left.erase(next);
    }
    if (kind_ == MapKind::kBijective ? !equal(covered, source.extent)
                                     : !impl_.nonnegative(sub(covered, source.extent)))
      throw NotUnderstood{};
  }

  Analyzer::Impl& impl_;
  MapKind kind_;
  std::vector<AtomId> ids_;
  std::vector<Poly> lows_;
  std::vector<Source> sources_;  // the iterators first, then fused sums
};

}  // namespace

std::optional<IterMap> detect_iter_map(Analyzer& analyzer, std::span<const Expr> indices,
                                       std::span<const Iterator> domain, MapKind kind,
                                       const Expr& predicate) {
  for (const Expr& index : indices)
    if (!index->dtype.is_scalar() || !index->dtype.is_integer()) return std::nullopt;
  const auto scope = analyzer.enter();
  for (const Iterator& iterator : domain)
    analyzer.bind(iterator.var, iterator.min, iterator.extent);
  try {
    return Detector(analyzer.impl(), domain, kind).run(indices, domain, predicate);
  } catch (const NotUnderstood&) {
    return std::nullopt;
  } catch (const Overflow&) {
    return std::nullopt;
  }
}

std::vector<Expr> IterMap::invert(Analyzer& analyzer, std::span<const Expr> values) const {
  check(values.size() == placeholders.size(), "a map is inverted at one value for each index");
  Substitution substitution;
  for (size_t i = 0; i < values.size(); ++i)
    substitution.emplace(placeholders[i].get(), cast(placeholders[i]->dtype, values[i]));
  std::vector<Expr> out;
  for (const Expr& expr : inverse) out.push_back(analyzer.simplify(substitute(expr, substitution)));
  return out;
}

std::optional<std::vector<Expr>> invert(Analyzer& analyzer, std::span<const Expr> indices,
                                        std::span<const Iterator> domain,
                                        std::span<const Expr> values) {
  const auto map = detect_iter_map(analyzer, indices, domain);
  if (!map) return std::nullopt;
  return map->invert(analyzer, values);
}

}  // namespace tenon::arith
