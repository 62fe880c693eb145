// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/polynomial.h"

#include <algorithm>

#include "tenon/ir/visit.h"

namespace tenon::arith {

// ---- integers and polynomials

int64_t checked_add(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) throw Overflow{};
  return out;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) throw Overflow{};
  return out;
}
int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t floor_mod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

Poly add(const Poly& a, const Poly& b, int64_t factor) {
  if (factor == 0) return a;
  Poly out(checked_add(a.constant, checked_mul(b.constant, factor)));
  out.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->mono < y->mono)) {
      out.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->mono < x->mono) {
      out.terms.push_back({checked_mul(y->coeff, factor), y->mono});
      ++y;
    } else {
      const int64_t coeff = checked_add(x->coeff, checked_mul(y->coeff, factor));
      if (coeff) out.terms.push_back({coeff, x->mono});
      ++x, ++y;
    }
  }
  return out;
}

Poly scale(const Poly& a, int64_t factor) {
  if (factor == 0) return {};
  Poly out = a;
  out.constant = checked_mul(out.constant, factor);
  for (Term& term : out.terms) term.coeff = checked_mul(term.coeff, factor);
  return out;
}

int64_t coefficient(const Poly& p, MonoId mono) {
  const auto it = std::lower_bound(p.terms.begin(), p.terms.end(), mono,
                                   [](const Term& term, MonoId m) { return term.mono < m; });
  return it != p.terms.end() && it->mono == mono ? it->coeff : 0;
}

uint64_t hash(const Poly& p) {
  uint64_t h = static_cast<uint64_t>(p.constant);
  for (const Term& term : p.terms)
    h = hash_combine(hash_combine(h, term.mono), static_cast<uint64_t>(term.coeff));
  return h;
}

// ---- bounds as numbers

static int64_t saturate(Int128 value) {
  if (value >= ConstBound::kInfinity) return ConstBound::kInfinity;
  if (value <= ConstBound::kMinusInfinity) return ConstBound::kMinusInfinity;
  return static_cast<int64_t>(value);
}
static bool is_infinite(int64_t value) {
  return value == ConstBound::kInfinity || value == ConstBound::kMinusInfinity;
}

ConstBound bound_add(ConstBound a, ConstBound b) {
  ConstBound out;
  if (a.has_min() && b.has_min()) out.min = saturate(Int128{a.min} + b.min);
  if (a.has_max() && b.has_max()) out.max = saturate(Int128{a.max} + b.max);
  // A sum that left int64 on the wrong side bounds nothing.
  if (out.min == ConstBound::kInfinity) out.min = ConstBound::kInfinity - 1;
  if (out.max == ConstBound::kMinusInfinity) out.max = ConstBound::kMinusInfinity + 1;
  return out;
}

static int64_t multiply_limits(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b))
    return (a < 0) == (b < 0) ? ConstBound::kInfinity : ConstBound::kMinusInfinity;
  return saturate(Int128{a} * b);
}

ConstBound bound_mul(ConstBound a, ConstBound b) {
  const int64_t products[] = {multiply_limits(a.min, b.min), multiply_limits(a.min, b.max),
                              multiply_limits(a.max, b.min), multiply_limits(a.max, b.max)};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

ConstBound bound_scale(ConstBound a, int64_t factor) { return bound_mul(a, {factor, factor}); }

ConstBound intersect(ConstBound a, ConstBound b) {
  const ConstBound out{std::max(a.min, b.min), std::min(a.max, b.max)};
  return out.min <= out.max ? out : a;  // a contradiction: whatever follows is true
}

ConstBound bound_of(DType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (dtype.is_uint()) {
    if (dtype.bits >= 64) return {};  // constants above 2^63 are held as negative ones
    return {0, (int64_t{1} << dtype.bits) - 1};
  }
  if (dtype.is_int() && dtype.bits < 32)
    return {-(int64_t{1} << (dtype.bits - 1)), (int64_t{1} << (dtype.bits - 1)) - 1};
  return {};
}

// ---- atoms

Analyzer::Impl::Impl() {
  monos_.push_back({});  // kOne
  memos_.emplace_back();
  memos_.back().epoch = epoch_;
}

// Unlike structural_hash, tells variables apart: by the number of their atom.
uint64_t Analyzer::Impl::hash_leaf(const NodePtr& node) {
  if (node.as<Var>()) return hash_combine(17, atom(downcast<ExprNode>(node)));
  if (node.get()->type().identity) return reinterpret_cast<uintptr_t>(node.get());
  const auto known = leaf_hash_.find(node.get());
  if (known != leaf_hash_.end()) return known->second.second;
  const NodeType& type = node.get()->type();
  uint64_t h = hash_bytes(type.name.data(), type.name.size());
  for (const FieldInfo& field : type.fields) {
    if (field.role == FieldRole::kIgnored) continue;
    h = hash_combine(h, field.ops->hash(field.address(*node.get())));
    if (!field.ops->holds_nodes || field.role == FieldRole::kDefinition) continue;
    field.ops->visit(field.address(*node.get()),
                     [&](const NodePtr& member) { h = hash_combine(h, hash_leaf(member)); });
  }
  if (const auto expr = cast<ExprNode>(node)) leaf_hash_.emplace(node.get(), std::pair(expr, h));
  return h;
}

bool has_effect(const Expr& expr) {
  const auto* call = expr.as<Call>();
  return call && (!call->op || call->op->effect == Effect::kOpaque);
}

AtomId Analyzer::Impl::atom(const Expr& leaf) {
  const bool distinct = has_effect(leaf);
  const auto known = atom_of_leaf_.find(leaf.get());
  if (known != atom_of_leaf_.end() && !distinct) return known->second;
  const bool is_var = leaf.as<Var>() != nullptr;
  uint64_t h = 0;
  if (!is_var && !distinct) {
    h = hash_leaf(leaf);
    const auto [first, last] = atom_of_hash_.equal_range(h);
    for (auto it = first; it != last; ++it) {
      const Atom& other = atoms_[it->second];
      if (other.kind == AtomKind::kOther && structural_equal(other.expr, leaf)) return it->second;
    }
  }
  const auto id = static_cast<AtomId>(atoms_.size());
  atoms_.push_back({is_var ? AtomKind::kVar : AtomKind::kOther, leaf, leaf->dtype, {}, {}, {}, {}});
  atom_of_leaf_.emplace(leaf.get(), id);
  if (!is_var && !distinct) atom_of_hash_.emplace(h, id);
  atom_mono_.push_back(static_cast<MonoId>(monos_.size()));
  monos_.push_back({id});
  bounds_.emplace_back();
  return id;
}

AtomId Analyzer::Impl::atom(AtomKind kind, const Poly& a, const Poly& b) {
  const uint64_t h = hash_combine(hash_combine(hash(a), hash(b)), static_cast<uint64_t>(kind));
  const auto [first, last] = atom_of_hash_.equal_range(h);
  for (auto it = first; it != last; ++it) {
    const Atom& other = atoms_[it->second];
    if (other.kind == kind && other.a == a && other.b == b) return it->second;
  }
  const auto id = static_cast<AtomId>(atoms_.size());
  atoms_.push_back({kind, {}, kVoid, a, b, {}, {}});
  atom_of_hash_.emplace(h, id);
  atom_mono_.push_back(static_cast<MonoId>(monos_.size()));
  monos_.push_back({id});
  bounds_.emplace_back();
  return id;
}

const Atom* Analyzer::Impl::single(MonoId mono) const {
  return monos_[mono].size() == 1 ? &atoms_[monos_[mono][0]] : nullptr;
}

Poly Analyzer::Impl::value_of(AtomId atom) {
  const ConstBound range = bound_of_atom(atom);
  if (range.is_constant()) return range.min;
  return Poly(1, mono_of(atom));
}

// ---- products

MonoId Analyzer::Impl::multiply(MonoId a, MonoId b) {
  if (a == kOne) return b;
  if (b == kOne) return a;
  if (a > b) std::swap(a, b);
  const uint64_t key = uint64_t{a} << 32 | b;
  const auto known = products_.find(key);
  if (known != products_.end()) return known->second;
  if (monos_[a].size() + monos_[b].size() > 12) throw Overflow{};  // a degree no shape has
  std::vector<AtomId> product;
  std::merge(monos_[a].begin(), monos_[a].end(), monos_[b].begin(), monos_[b].end(),
             std::back_inserter(product));
  const uint64_t h = hash_bytes(product.data(), product.size() * sizeof(AtomId));
  const auto [first, last] = mono_of_hash_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (monos_[it->second] == product) return products_[key] = it->second;
  const auto id = static_cast<MonoId>(monos_.size());
  monos_.push_back(std::move(product));
  mono_of_hash_.emplace(h, id);
  return products_[key] = id;
}

std::optional<MonoId> Analyzer::Impl::divide(MonoId a, MonoId b) {
  if (b == kOne) return a;
  if (a == b) return kOne;
  const std::vector<AtomId>&x = monos_[a], &y = monos_[b];
  if (x.size() <= y.size() || !std::includes(x.begin(), x.end(), y.begin(), y.end()))
    return std::nullopt;
  std::vector<AtomId> rest;
  std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(rest));
  MonoId out = kOne;
  for (const AtomId id : rest) out = multiply(out, mono_of(id));
  return out;
}

static void sort_terms(Poly& p) {
  std::sort(p.terms.begin(), p.terms.end(),
            [](const Term& a, const Term& b) { return a.mono < b.mono; });
  size_t out = 0;
  for (size_t i = 0; i < p.terms.size();) {
    Term term = p.terms[i++];
    while (i < p.terms.size() && p.terms[i].mono == term.mono)
      term.coeff = checked_add(term.coeff, p.terms[i++].coeff);
    if (term.coeff) p.terms[out++] = term;
  }
  p.terms.resize(out);
}

Poly Analyzer::Impl::multiply_mono(const Poly& a, MonoId mono, int64_t factor) {
  if (mono == kOne) return scale(a, factor);
  Poly out;
  for (const Term& term : a.terms)
    out.terms.push_back({checked_mul(term.coeff, factor), multiply(term.mono, mono)});
  if (a.constant) out.terms.push_back({checked_mul(a.constant, factor), mono});
  sort_terms(out);
  return out;
}

Poly Analyzer::Impl::multiply(const Poly& a, const Poly& b) {
  if (a.is_constant()) return scale(b, a.constant);
  if (b.is_constant()) return scale(a, b.constant);
  if (a.terms.size() * b.terms.size() > 64) throw Overflow{};  // sums of this many products
  Poly out = scale(a, b.constant);
  for (const Term& term : b.terms) out = add(out, multiply_mono(a, term.mono, term.coeff));
  return out;
}

// ---- recombination: (x // c) * c + x % c = x, x - (x // c) * c = x % c

bool Analyzer::Impl::join_remainder(Poly& p, const Term& term, AtomId remainder, MonoId rest) {
  const Atom atom = atoms_[remainder];  // a copy: atoms are added below
  // The partner of x % c is x // c; where x is itself y // a, that is y // (a * c).
  Poly numerator = atom.a, divisor = atom.b;
  if (numerator.is_mono() && divisor.is_constant()) {
    const Atom* inner = single(numerator.terms[0].mono);
    if (inner && inner->kind == AtomKind::kFloorDiv && inner->b.is_constant()) {
      divisor = Poly(checked_mul(inner->b.constant, divisor.constant));
      numerator = Poly(inner->a);
    }
  }
  const MonoId quotient = mono_of(this->atom(AtomKind::kFloorDiv, numerator, divisor));
  const Poly whole = multiply_mono(atom.b, multiply(quotient, rest), term.coeff);
  if (!std::all_of(whole.terms.begin(), whole.terms.end(),
                   [&](const Term& t) { return coefficient(p, t.mono) == t.coeff; }))
    return false;
  p = add(add(p, whole, -1), Poly(term.coeff, term.mono), -1);
  p = add(p, multiply_mono(atom.a, rest, term.coeff));
  return true;
}

// The place of a row among rows of a symbolic length.
bool Analyzer::Impl::join_remainder_of_rows(Poly& p, const Term& term) {
  const std::vector<AtomId> product = factors(term.mono);  // a copy: products are added below
  return std::any_of(product.begin(), product.end(), [&](AtomId factor) {
    if (atoms_[factor].kind != AtomKind::kFloorMod) return false;
    const auto rest = divide(term.mono, mono_of(factor));
    return rest && join_remainder(p, term, factor, *rest);
  });
}

Poly Analyzer::Impl::recombine(Poly p) {
  if (p.terms.size() < 2) return p;
  const auto size = [](const Poly& q) { return q.terms.size() + (q.constant != 0); };
  for (int round = 0; round < 8; ++round) {
    bool changed = false;
    for (const Term term : p.terms) {
      const Atom* found = single(term.mono);
      if (!found) {
        changed = join_remainder_of_rows(p, term);
        if (changed) break;
        continue;
      }
      if (found->kind == AtomKind::kVar || found->kind == AtomKind::kOther) continue;
      // No more of a rest cancels inside min(a, b) than `a` and `b` have, which settles a long one.
      if ((found->kind == AtomKind::kMin || found->kind == AtomKind::kMax) &&
          size(p) - 1 >= 2 * (size(found->a) + size(found->b)))
        continue;
      const Atom atom = *found;  // a copy: atoms are added below
      if (atom.kind == AtomKind::kFloorMod) {
        changed = join_remainder(p, term, factors(term.mono)[0], kOne);
      } else if (atom.kind == AtomKind::kFloorDiv && atom.b.is_constant()) {
        const int64_t c = atom.b.constant;
        if (term.coeff % c != 0) continue;
        const int64_t factor = -(term.coeff / c);
        if (!std::all_of(atom.a.terms.begin(), atom.a.terms.end(), [&](const Term& t) {
              return coefficient(p, t.mono) == checked_mul(t.coeff, factor);
            }))
          continue;
        p = add(add(p, Poly(term.coeff, term.mono), -1), atom.a, -factor);
        p = add(p, floormod(atom.a, c), factor);
        changed = true;
      } else if (!merging_ && term.coeff == 1 &&
                 (atom.kind == AtomKind::kMin || atom.kind == AtomKind::kMax)) {
        // min(a, b) + rest, where the rest cancels inside.
        Poly rest = sub(p, Poly(1, term.mono));
        const Poly a = add(atom.a, rest), b = add(atom.b, rest);
        if (size(a) + size(b) < size(atom.a) + size(atom.b) + size(rest)) {
          const Restore merging(merging_, true);
          p = extremum(atom.kind, a, b);
          changed = true;
        }
      }
      if (changed) break;
    }
    if (!changed || p.terms.size() < 2) break;
  }
  return p;
}

}  // namespace tenon::arith
