// SPDX-License-Identifier: Apache-2.0
// The canonical form of integers in this room: polynomials with integer coefficients over interned
// atoms. Internal to arith/; others use analyzer.h.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/arith/analyzer.h"

namespace tenon::arith {

__extension__ typedef __int128 Int128;

using AtomId = uint32_t;
using MonoId = uint32_t;  // a product of atoms; kOne is the empty one
inline constexpr MonoId kOne = 0;

struct Term {
  int64_t coeff;
  MonoId mono;
  bool operator==(const Term&) const = default;
};

/// Sum of the terms, ordered by mono, no coefficient 0, and the constant. It has no dtype: it is
/// the integer itself.
struct Poly {
  std::vector<Term> terms;
  int64_t constant = 0;

  Poly() = default;
  Poly(int64_t constant) : constant(constant) {}
  Poly(int64_t coeff, MonoId mono) {
    if (coeff) terms.push_back({coeff, mono});
  }
  bool is_constant() const { return terms.empty(); }
  bool is(int64_t value) const { return terms.empty() && constant == value; }
  /// One term with coefficient 1 and nothing else.
  bool is_mono() const { return terms.size() == 1 && constant == 0 && terms[0].coeff == 1; }
  bool operator==(const Poly&) const = default;
};

/// A coefficient left int64: what is being computed stays as it was written.
struct Overflow {};

int64_t checked_add(int64_t a, int64_t b);  // throw Overflow
int64_t checked_mul(int64_t a, int64_t b);
int64_t floor_div(int64_t a, int64_t b);  // b > 0
int64_t floor_mod(int64_t a, int64_t b);  // b > 0

Poly add(const Poly& a, const Poly& b, int64_t factor = 1);  // a + factor * b
Poly scale(const Poly& a, int64_t factor);
inline Poly negate(const Poly& a) { return scale(a, -1); }
inline Poly sub(const Poly& a, const Poly& b) { return add(a, b, -1); }
int64_t coefficient(const Poly& p, MonoId mono);
uint64_t hash(const Poly& p);

ConstBound bound_add(ConstBound a, ConstBound b);
ConstBound bound_scale(ConstBound a, int64_t factor);
ConstBound bound_mul(ConstBound a, ConstBound b);
ConstBound intersect(ConstBound a, ConstBound b);
ConstBound bound_of(DType dtype);  // of a narrow or unsigned dtype; none for the others
/// Signed of 32 bits and more: arithmetic is assumed not to overflow.
inline bool is_index_like(DType dtype) { return dtype.is_int() && dtype.bits >= 32; }

/// Sets a flag for as long as it lives, exceptions included.
class Restore {
 public:
  Restore(bool& flag, bool value) : flag_(flag), before_(std::exchange(flag, value)) {}
  ~Restore() { flag_ = before_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  bool& flag_;
  bool before_;
};

enum class AtomKind : uint8_t { kVar, kFloorDiv, kFloorMod, kMin, kMax, kOther };

struct Atom {
  AtomKind kind;
  Expr expr;  // of kVar and kOther; of the others made when asked for
  DType dtype;
  Poly a, b;  // operands of the others
  std::vector<std::pair<DType, Expr>> emitted;
  std::string key;  // for ordering; made when asked for
};

/// What is known of a variable.
struct VarInfo {
  ConstBound bound;
  bool has_range = false;
  Poly low, high;  // inclusive
  Expr value;      // null: none
};

struct Analyzer::Impl {
  Impl();

  // ---- atoms and products (polynomial.cpp)
  AtomId atom(const Expr& leaf);  // of a Var, or of what nothing is known about
  AtomId atom(AtomKind kind, const Poly& a, const Poly& b);
  MonoId mono_of(AtomId atom) const { return atom_mono_[atom]; }
  const Atom* single(MonoId mono) const;  // the atom where the product is one atom
  const std::vector<AtomId>& factors(MonoId mono) const { return monos_[mono]; }
  MonoId multiply(MonoId a, MonoId b);
  std::optional<MonoId> divide(MonoId a, MonoId b);
  Poly multiply(const Poly& a, const Poly& b);
  Poly multiply_mono(const Poly& a, MonoId mono, int64_t factor);
  /// The atom as a polynomial: its value where that is known.
  Poly value_of(AtomId atom);
  /// Where p has term = k * rest * (x % c) and k * rest * (x // c) * c, k * rest * x in their place.
  bool join_remainder(Poly& p, const Term& term, AtomId remainder, MonoId rest);
  bool join_remainder_of_rows(Poly& p, const Term& term);
  Poly recombine(Poly p);
  Poly sum(const Poly& a, const Poly& b, int64_t factor = 1) {
    return recombine(add(a, b, factor));
  }

  // ---- quotients and remainders (quotient.cpp)
  Poly floordiv(const Poly& p, int64_t c);
  Poly floormod(const Poly& p, int64_t c);
  Poly floordiv(const Poly& p, const Poly& d);
  Poly floormod(const Poly& p, const Poly& d);
  struct Split;
  std::optional<Split> split_low(const Poly& r, int64_t c);
  bool divide_exact(const Poly& p, const Poly& d, Poly& quotient, Poly& rest);
  void cancel_content(Poly& p, Poly& d, MonoId& common, int64_t& content);
  std::optional<Poly> resolve_quotient(const Poly& p, const Poly& d, Poly& q, Poly& r);
  Poly minimum(const Poly& a, const Poly& b);
  Poly maximum(const Poly& a, const Poly& b);
  Poly extremum(AtomKind kind, const Poly& a, const Poly& b);

  // ---- bounds and proofs (bounds.cpp)
  ConstBound bound(const Poly& p, int depth = 2);
  ConstBound bound(MonoId mono);
  ConstBound bound_of_atom(AtomId atom);
  ConstBound compute_bound(AtomId atom);
  Modular modular(const Poly& p);
  Modular modular(MonoId mono);
  bool nonnegative(const Poly& p, int budget = 24);
  bool prove(const Poly& p, int& budget, int depth);
  bool prove_by_facts(const Poly& p, int& budget, int depth);
  bool try_fact(const Poly& p, const Term& term, const Poly& fact, int& budget, int depth);
  bool equal_zero(const Poly& p);
  Poly expand_remainders(const Poly& p);
  bool mentions(MonoId mono, const std::vector<AtomId>& ids);
  Poly replace_mono(const Poly& p, MonoId mono, const Poly& value);

  // ---- from and to expressions (simplify.cpp)
  Poly poly(const Expr& expr);
  Poly compute_poly(const Expr& expr);
  Poly arithmetic(const Binary& op);
  Poly opaque(const Expr& expr);
  Expr emit(const Poly& p, DType dtype);
  Expr emit(AtomId atom, DType dtype);
  Expr emit_exact(const Poly& p, DType dtype);
  Expr emit_mono(MonoId mono, DType dtype);
  const std::string& key(AtomId atom);
  bool mono_before(MonoId a, MonoId b);
  bool poly_before(const Poly& a, const Poly& b);
  Expr simplify(const Expr& expr);
  Expr compute_simplified(const Expr& expr);
  Expr simplify_members(const Expr& expr);
  Expr simplify_let(const Let& let, const Expr& original);
  // (condition.cpp)
  Expr simplify_condition(const Expr& expr);
  Expr compare(const Binary& op, const Expr& original);
  void drop_rest_below_factor(Poly& p);
  Expr choose(const Expr& condition, const Expr& a, const Expr& b, const Expr& original);
  Expr connect(const Binary& op, const Expr& original);
  Expr simplify_case(const Expr& expr, const Expr& condition, bool holds);
  Expr negation(const Expr& condition);
  Expr known_truth(const Expr& condition);
  bool proves(const Expr& condition);
  std::optional<bool> decide_comparison(BinaryOp op, const Poly& difference, int budget);
  void assume(const Expr& condition, bool holds);
  void assume_nonnegative(const Poly& p);
  // (vector.cpp)
  Expr simplify_vector(const Expr& expr);
  Expr vector_binary(const Binary& op, const Expr& original);

  // ---- state
  std::vector<Atom> atoms_;
  std::vector<MonoId> atom_mono_;
  std::vector<std::vector<AtomId>> monos_;  // each sorted
  std::unordered_map<const Node*, AtomId> atom_of_leaf_;
  std::unordered_multimap<uint64_t, AtomId> atom_of_hash_;
  std::unordered_map<uint64_t, MonoId> products_;
  std::unordered_multimap<uint64_t, MonoId> mono_of_hash_;
  std::unordered_map<const Node*, std::pair<Expr, uint64_t>> leaf_hash_;
  uint64_t hash_leaf(const NodePtr& node);

  std::unordered_map<AtomId, VarInfo> vars_;
  std::unordered_map<MonoId, ConstBound> assumed_;  // of products, from assumptions
  std::unordered_map<AtomId, bool> truths_;         // of conditions that are no comparison
  std::vector<Poly> facts_;                         // each >= 0

  struct Saved {
    uint64_t epoch;
    size_t facts;
    std::vector<std::pair<AtomId, std::optional<VarInfo>>> vars;
    std::vector<std::pair<MonoId, std::optional<ConstBound>>> assumed;
    std::vector<std::pair<AtomId, std::optional<bool>>> truths;
  };
  std::vector<Saved> scopes_;
  void enter_scope();
  void leave_scope();
  void changed();
  VarInfo& edit(const Ref<Var>& var);

  struct Memo {
    uint64_t epoch = 0;
    size_t depth = 0;
    std::unordered_map<const Node*, std::pair<Expr, Poly>> polys;
    std::unordered_map<const Node*, std::pair<Expr, Expr>> simplified;
  };
  std::vector<Memo> memos_;
  Memo& memo();
  uint64_t epoch_ = 1, last_epoch_ = 1;  // names what is known: equal epochs, equal knowledge
  struct BoundEntry {
    uint64_t epoch = 0;
    bool busy = false;
    ConstBound bound;
  };
  std::vector<BoundEntry> bounds_;  // of each atom
  int case_depth_ = 0;              // conditions entered by simplify() itself
  /// Comparisons in such conditions since the analyzer was asked: a hundred conditions joined by
  /// `and` would be looked at under one another a million times.
  int case_work_ = 0;
  bool may_enter_case() const;
  bool merging_ = false;      // no sums drawn into minima inside the work on one
  bool asks_checks_ = false;  // what a checked index says is being worked out
  bool proving_ = false;      // no proofs inside proofs
};

/// A scope that simplify() itself opens; ends with its block, exceptions included.
class LocalScope {
 public:
  explicit LocalScope(Analyzer::Impl& impl) : impl_(impl) { impl_.enter_scope(); }
  ~LocalScope() { impl_.leave_scope(); }
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

 private:
  Analyzer::Impl& impl_;
};

/// Equality of structure, quick where the nodes are the same.
bool same(const Expr& a, const Expr& b);
/// Evaluating it is safe whatever its variables are: no division by a variable, no load, no call.
bool cannot_fail(const Expr& expr);
/// A call that may do something or give another value the next time: each is an atom of its own.
bool has_effect(const Expr& expr);
/// Nodes of `expr` as a tree, counted up to `limit`.
int count_nodes(const Expr& expr, int limit);
/// `a` has more nodes than `b`, which is not a large expression.
bool longer(const Expr& a, const Expr& b);

}  // namespace tenon::arith
