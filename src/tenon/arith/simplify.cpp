// SPDX-License-Identifier: Apache-2.0
// Converts expressions to polynomials and back.
#include <algorithm>
#include <cmath>

#include "tenon/arith/polynomial.h"
#include "tenon/ir/visit.h"

namespace tenon::arith {

// A tree may hold one node many times: `steps` bounds the plain walk.
static bool same_within(const Expr& a, const Expr& b, int& steps) {
  if (a.same_as(b)) return true;
  if (&a->type() != &b->type() || a->dtype != b->dtype || a->height() != b->height()) return false;
  if (a.as<Var>()) return false;
  if (const auto* x = a.as<IntImm>()) return x->value == b.as<IntImm>()->value;
  if (const auto* x = a.as<Binary>(); x && --steps > 0) {
    const auto* y = b.as<Binary>();
    return x->op == y->op && same_within(x->lhs, y->lhs, steps) &&
           same_within(x->rhs, y->rhs, steps);
  }
  return structural_equal(a, b);
}
bool same(const Expr& a, const Expr& b) {
  int steps = 1000;
  return same_within(a, b, steps);
}

static void count_into(const Expr& expr, int limit, int& count) {
  if (++count >= limit) return;
  if (const auto* op = expr.as<Binary>()) {
    count_into(op->lhs, limit, count);
    if (count < limit) count_into(op->rhs, limit, count);
  } else if (const auto* op = expr.as<Select>()) {
    for (const Expr* part : {&op->condition, &op->true_value, &op->false_value})
      if (count < limit) count_into(*part, limit, count);
  } else if (expr->height() > 1) {
    each_member(expr, [&](const NodePtr& member, FieldRole) {
      if (count >= limit) return;
      if (const auto inner = tenon::cast<ExprNode>(member)) count_into(inner, limit, count);
    });
  }
}
int count_nodes(const Expr& expr, int limit) {
  int count = 0;
  count_into(expr, limit, count);
  return count;
}

static bool cannot_fail_within(const Expr& expr, int& steps) {
  if (--steps < 0) return false;  // large: not looked through
  if (const auto* op = expr.as<Binary>()) {
    const bool divides = op->op >= BinaryOp::kDiv && op->op <= BinaryOp::kFloorMod;
    if (divides && op->lhs->dtype.is_integer() && !as_int(op->rhs)) return false;
    return cannot_fail_within(op->lhs, steps) && cannot_fail_within(op->rhs, steps);
  }
  if (const auto* op = expr.as<Not>()) return cannot_fail_within(op->value, steps);
  if (const auto* op = expr.as<Cast>()) return cannot_fail_within(op->value, steps);
  if (const auto* op = expr.as<Broadcast>()) return cannot_fail_within(op->value, steps);
  if (const auto* op = expr.as<Ramp>())
    return cannot_fail_within(op->base, steps) && cannot_fail_within(op->stride, steps);
  if (const auto* op = expr.as<Select>())
    return cannot_fail_within(op->condition, steps) && cannot_fail_within(op->true_value, steps) &&
           cannot_fail_within(op->false_value, steps);
  return expr->height() == 1 && !expr.as<Call>();
}
bool longer(const Expr& a, const Expr& b) {
  constexpr int kLimit = 300;
  if (a->height() == 1) return false;
  const int size = count_nodes(b, kLimit);
  return size < kLimit && count_nodes(a, size + 1) > size;
}

bool cannot_fail(const Expr& expr) {
  int steps = 256;
  return cannot_fail_within(expr, steps);
}

// ---- to polynomials

Analyzer::Impl::Memo& Analyzer::Impl::memo() {
  if (memos_.back().epoch == epoch_) return memos_.back();
  if (memos_.back().depth < scopes_.size()) memos_.emplace_back();
  Memo& top = memos_.back();
  top.polys.clear();
  top.simplified.clear();
  top.epoch = epoch_;
  top.depth = scopes_.size();
  return top;
}

Poly Analyzer::Impl::poly(const Expr& expr) {
  if (const auto* value = expr.as<IntImm>())
    if (value->value >= 0 || !value->dtype.is_uint()) return value->value;
  if (const auto* var = expr.as<Var>()) {
    const AtomId id = atom(ref_to(var));
    const auto known = vars_.find(id);
    if (known == vars_.end() || !known->second.value) return value_of(id);
  }
  {
    const auto& polys = memo().polys;
    const auto known = polys.find(expr.get());
    if (known != polys.end()) return known->second.second;
  }
  Poly out;
  try {
    out = compute_poly(expr);
  } catch (const Overflow&) {
    out = opaque(expr);
  }
  if (has_effect(expr)) return out;
  Memo& top = memo();
  if (top.polys.size() > 200000) top.polys.clear();
  top.polys.emplace(expr.get(), std::pair(expr, out));
  return out;
}

static bool fits(ConstBound value, DType dtype) {
  ConstBound range = bound_of(dtype);
  if (dtype == kInt32)
    range = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  return value.min >= range.min && value.max <= range.max;
}

Poly Analyzer::Impl::opaque(const Expr& expr) {
  const Expr rebuilt = expr.as<Var>() ? expr : simplify_members(expr);
  if (const auto* value = rebuilt.as<IntImm>())
    if (value->value >= 0 || !value->dtype.is_uint()) return value->value;
  return value_of(atom(rebuilt));
}

Poly Analyzer::Impl::compute_poly(const Expr& expr) {
  const DType dtype = expr->dtype;
  if (!dtype.is_scalar() || !dtype.is_integer() || dtype == kUInt64) return opaque(expr);
  if (const auto* op = expr.as<Binary>()) {
    Poly out = arithmetic(*op);
    // What a narrow dtype would wrap is not the sum of its parts.
    if (!is_index_like(dtype) && !fits(bound(out), dtype)) return opaque(expr);
    return out;
  }
  if (expr.as<Var>()) return poly(vars_.at(atom(expr)).value);
  if (const auto* op = expr.as<Cast>()) {
    const DType from = op->value->dtype;
    if (!from.is_integer() || from == kUInt64) return opaque(expr);
    Poly out = poly(op->value);
    // What was widened before fits again.
    const Atom* inner = out.is_mono() ? single(out.terms[0].mono) : nullptr;
    if (inner && inner->dtype == dtype) return out;
    const bool widens =
        is_index_like(dtype) && (from.is_int() ? from.bits <= dtype.bits : from.bits < dtype.bits);
    return widens || fits(bound(out), dtype) ? out : opaque(expr);
  }
  const Expr chosen = [&]() -> Expr {
    if (const auto* op = expr.as<Select>())
      return choose(op->condition, op->true_value, op->false_value, expr);
    if (const auto* op = expr.as<Call>(); op && op->is(IntrinsicId::kIfThenElse))
      return choose(op->arg(0), op->arg(1), op->arg(2), expr);
    if (const auto* op = expr.as<Let>()) return simplify_let(*op, expr);
    return {};
  }();
  if (!chosen) return opaque(expr);
  if (&chosen->type() == &expr->type()) return value_of(atom(chosen));
  return poly(chosen);
}

Poly Analyzer::Impl::arithmetic(const Binary& op) {
  const Poly a = poly(op.lhs), b = poly(op.rhs);
  switch (op.op) {
    case BinaryOp::kAdd: return sum(a, b);
    case BinaryOp::kSub: return sum(a, b, -1);
    case BinaryOp::kMul: return recombine(multiply(a, b));
    case BinaryOp::kFloorDiv:
      if (b.is(0)) break;
      return floordiv(a, b);
    case BinaryOp::kFloorMod:
      if (b.is(0)) break;
      return floormod(a, b);
    case BinaryOp::kDiv:
    case BinaryOp::kMod: {
      if (b.is(0)) break;
      const bool quotient = op.op == BinaryOp::kDiv;
      if (b.is_constant()) {  // exact, whatever the sign
        const int64_t c = b.constant;
        if (c != -1 && a.constant % c == 0 &&
            std::all_of(a.terms.begin(), a.terms.end(),
                        [&](const Term& t) { return t.coeff % c == 0; })) {
          if (!quotient) return {};
          Poly out(a.constant / c);
          for (const Term& t : a.terms) out.terms.push_back({t.coeff / c, t.mono});
          return out;
        }
      }
      if (!nonnegative(a, 4) || !nonnegative(b, 4)) break;
      return quotient ? floordiv(a, b) : floormod(a, b);
    }
    case BinaryOp::kMin: return minimum(a, b);
    case BinaryOp::kMax: return maximum(a, b);
    default: break;
  }
  throw Overflow{};  // no polynomial: kept as it is
}

// ---- back to expressions

const std::string& Analyzer::Impl::key(AtomId id) {
  if (atoms_[id].key.empty()) {
    std::string text;
    if (const auto* var = atoms_[id].kind == AtomKind::kVar ? atoms_[id].expr.as<Var>() : nullptr) {
      text = var->name;
    } else {
      text = "~";  // after the variables
      const Expr expr = atoms_[id].expr ? atoms_[id].expr : emit(id, kInt64);
      // What is too long to be read is told apart by when it was first seen.
      if (count_nodes(expr, 400) < 400) text += str(expr);
    }
    atoms_[id].key = std::move(text);
  }
  return atoms_[id].key;
}

bool Analyzer::Impl::mono_before(MonoId a, MonoId b) {
  if (a == b) return false;
  const std::vector<AtomId> x = monos_[a], y = monos_[b];
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i] == y[i]) continue;
    const int order = key(x[i]).compare(key(y[i]));
    return order ? order < 0 : x[i] < y[i];
  }
  return x.size() < y.size();
}

bool Analyzer::Impl::poly_before(const Poly& a, const Poly& b) {
  if (a.terms.size() != b.terms.size()) return a.terms.size() > b.terms.size();
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (a.terms[i].mono != b.terms[i].mono) return mono_before(a.terms[i].mono, b.terms[i].mono);
    if (a.terms[i].coeff != b.terms[i].coeff) return a.terms[i].coeff > b.terms[i].coeff;
  }
  return a.constant > b.constant;
}

static Expr constant(DType dtype, int64_t value) {
  if (!fits({value, value}, dtype)) throw Overflow{};
  return imm(dtype, value);
}

Expr Analyzer::Impl::emit(AtomId id, DType dtype) {
  for (const auto& [known, expr] : atoms_[id].emitted)
    if (known == dtype) return expr;
  const Atom atom = atoms_[id];
  Expr out;
  switch (atom.kind) {
    case AtomKind::kVar:
    case AtomKind::kOther:
      if (atom.dtype == dtype) return atom.expr;
      // A wider value must fit as it stands, not only in the sum.
      if (!fits(bound_of_atom(id), dtype) &&
          !(is_index_like(dtype) && atom.dtype.is_int() && atom.dtype.bits <= dtype.bits) &&
          !(dtype == kInt64 && atom.dtype.is_uint() && atom.dtype.bits < 64))
        throw Overflow{};
      out = tenon::cast(dtype, atom.expr);
      return out;  // depends on what is known: not kept
    default: {
      const Expr a = emit_exact(atom.a, dtype), b = emit_exact(atom.b, dtype);
      static constexpr BinaryOp kOps[] = {BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kMin,
                                          BinaryOp::kMax};
      out = binary(kOps[static_cast<int>(atom.kind) - static_cast<int>(AtomKind::kFloorDiv)], a, b);
    }
  }
  if (is_index_like(dtype)) atoms_[id].emitted.emplace_back(dtype, out);
  return out;
}

// Where it matters that the value does not wrap in a narrow dtype; in a sum it does not.
Expr Analyzer::Impl::emit_exact(const Poly& p, DType dtype) {
  if (!is_index_like(dtype) && !fits(bound(p), dtype)) throw Overflow{};
  return emit(p, dtype);
}

Expr Analyzer::Impl::emit_mono(MonoId mono, DType dtype) {
  std::vector<AtomId> factors = monos_[mono];
  if (factors.size() > 1)
    std::sort(factors.begin(), factors.end(), [&](AtomId a, AtomId b) {
      const int order = key(a).compare(key(b));
      return order ? order < 0 : a < b;
    });
  Expr out;
  for (const AtomId id : factors) out = out ? out * emit(id, dtype) : emit(id, dtype);
  return out;
}

Expr Analyzer::Impl::emit(const Poly& p, DType dtype) {
  if (p.is_constant()) return constant(dtype, p.constant);
  std::vector<Term> terms = p.terms;
  if (terms.size() > 1) {
    std::sort(terms.begin(), terms.end(), [&](const Term& a, const Term& b) {
      if ((a.coeff > 0) != (b.coeff > 0)) return a.coeff > 0;
      const size_t x = monos_[a.mono].size(), y = monos_[b.mono].size();
      if (x != y) return x > y;
      if (a.coeff != b.coeff) return a.coeff > 0 ? a.coeff > b.coeff : a.coeff < b.coeff;
      return mono_before(a.mono, b.mono);
    });
  }
  Expr out;
  int64_t rest = p.constant;
  if (terms[0].coeff < 0 && rest > 0) {
    out = constant(dtype, rest);
    rest = 0;
  }
  for (const Term& term : terms) {
    const bool subtract = out && term.coeff < 0;
    const Expr product = emit_mono(term.mono, dtype);
    const int64_t coeff = subtract ? checked_mul(term.coeff, -1) : term.coeff;
    const Expr scaled = coeff == 1 ? product : product * constant(dtype, coeff);
    out = !out ? scaled : subtract ? out - scaled : out + scaled;
  }
  if (rest > 0) out = out + constant(dtype, rest);
  if (rest < 0) out = out - constant(dtype, checked_mul(rest, -1));
  return out;
}

// ---- simplifying

namespace {

// Simplifies the members of a node of any kind, loads and calls included.
class MemberSimplifier final : public Rewriter {
 public:
  explicit MemberSimplifier(Analyzer::Impl& impl) : impl_(impl) {}
  NodePtr members(const NodePtr& node) { return rewrite_members(node); }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto expr = tenon::cast<ExprNode>(node)) return impl_.simplify(expr);
    return rewrite_members(node);
  }
  NodePtr rewrite_use(const NodePtr& node) override {
    if (node.as<Var>()) return impl_.simplify(downcast<ExprNode>(node));
    return node;
  }
  NodePtr rewrite_definition(const NodePtr& node) override { return node; }

 private:
  Analyzer::Impl& impl_;
};

}  // namespace

Expr Analyzer::Impl::simplify_members(const Expr& expr) {
  if (const auto* op = expr.as<Binary>()) {
    const Expr a = simplify(op->lhs), b = simplify(op->rhs);
    // Folds what the simplified sides now allow; as binary() is exact, floats too.
    Expr out = binary(op->op, a, b, expr->origin);
    const auto* same_op = out.as<Binary>();
    const bool unchanged = same_op && a.same_as(op->lhs) && b.same_as(op->rhs);
    return unchanged ? expr : out;
  }
  if (const auto* op = expr.as<Cast>()) {
    const Expr value = simplify(op->value);
    if (value.same_as(op->value) && !as_int(value) && !as_float(value)) return expr;
    return tenon::cast(op->dtype, value);
  }
  if (const auto* op = expr.as<Let>()) return simplify_let(*op, expr);
  if (expr->height() == 1 || expr.as<Var>()) return expr;
  MemberSimplifier members(*this);
  return downcast<ExprNode>(members.members(expr));
}

Expr Analyzer::Impl::simplify_let(const Let& let, const Expr& original) {
  const Expr value = simplify(let.value);
  const bool trivial = value.as<Var>() || value.as<IntImm>() || value.as<FloatImm>();
  const bool is_index = value->dtype.is_scalar() && value->dtype.is_integer();
  const ConstBound range = is_index ? bound(poly(value)) : ConstBound{};
  const LocalScope scope(*this);
  VarInfo& info = edit(let.var);
  info = {};
  info.bound = range;
  if (trivial) info.value = value;
  changed();
  const Expr body = simplify(let.body);
  if (trivial) return body;
  if (value.same_as(let.value) && body.same_as(let.body)) return original;
  return make<Let>(let.var, value, body, original->origin);
}

Expr Analyzer::Impl::simplify(const Expr& expr) {
  if (expr->height() == 1 && !expr.as<Var>() && !expr.as<Call>()) return expr;
  {
    const auto& simplified = memo().simplified;
    const auto known = simplified.find(expr.get());
    if (known != simplified.end()) return known->second.second;
  }
  Expr out = compute_simplified(expr);
  if (!out.same_as(expr) && same(out, expr)) out = expr;
  Memo& top = memo();
  if (top.simplified.size() > 200000) top.simplified.clear();
  top.simplified.emplace(expr.get(), std::pair(expr, out));
  return out;
}

Expr Analyzer::Impl::compute_simplified(const Expr& expr) {
  const DType dtype = expr->dtype;
  if (dtype.is_vector()) return simplify_vector(expr);
  if (dtype.is_bool()) return simplify_condition(expr);
  if (dtype.is_integer()) {
    Expr out;
    try {
      out = emit(poly(expr), dtype);
    } catch (const Overflow&) {
      return simplify_members(expr);
    }
    // The sum of products may be longer than the product of sums that was written.
    return longer(out, expr) && expr->height() > 1 ? simplify_members(expr) : out;
  }
  if (const auto* op = expr.as<Select>())
    return choose(op->condition, op->true_value, op->false_value, expr);
  if (const auto* op = expr.as<Call>(); op && op->is(IntrinsicId::kIfThenElse))
    return choose(op->arg(0), op->arg(1), op->arg(2), expr);
  if (const auto* var = expr.as<Var>()) {
    const auto known = vars_.find(atom(ref_to(var)));
    return known == vars_.end() || !known->second.value ? expr : known->second.value;
  }
  const Expr out = simplify_members(expr);
  if (const auto* op = out.as<Binary>(); op && dtype.is_float()) {
    const auto b = as_float(op->rhs);
    switch (op->op) {
      case BinaryOp::kMul:
        if (b == 1.0) return op->lhs;
        if (as_float(op->lhs) == 1.0) return op->rhs;
        break;
      case BinaryOp::kDiv:
        if (b == 1.0) return op->lhs;
        break;
      case BinaryOp::kSub:  // x - 0 is x for -0 too; x - (-0) is not
        if (b == 0.0 && !std::signbit(*b)) return op->lhs;
        break;
      case BinaryOp::kAdd:  // x + (-0) is x for +0 too; x + 0 is not
        if (b == 0.0 && std::signbit(*b)) return op->lhs;
        break;
      case BinaryOp::kMin:
      case BinaryOp::kMax:
        if (same(op->lhs, op->rhs)) return op->lhs;
        break;
      default: break;
    }
  }
  return out;
}

}  // namespace tenon::arith
