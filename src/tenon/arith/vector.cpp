// SPDX-License-Identifier: Apache-2.0
// Vectors: keeps Ramp and Broadcast in canonical form.
#include "tenon/arith/polynomial.h"

namespace tenon::arith {

namespace {

// base + lane * stride
struct Lanes {
  Expr base, stride;
};

std::optional<Lanes> lanes_of(const Expr& expr) {
  if (const auto* ramp = expr.as<Ramp>()) return Lanes{ramp->base, ramp->stride};
  if (const auto* splat = expr.as<Broadcast>())
    return Lanes{splat->value, imm(splat->value->dtype, int64_t{0})};
  return std::nullopt;
}

Expr vector_of(const Expr& base, const Expr& stride, int lanes) {
  if (is_int(stride, 0)) return make<Broadcast>(base, lanes);
  return make<Ramp>(base, stride, lanes);
}

}  // namespace

Expr Analyzer::Impl::vector_binary(const Binary& op, const Expr& original) {
  const Expr a = simplify(op.lhs), b = simplify(op.rhs);
  const auto* x = a.as<Broadcast>();
  const auto* y = b.as<Broadcast>();
  const int lanes = original->dtype.lanes;
  if (x && y)
    return make<Broadcast>(simplify(binary(op.op, x->value, y->value, original->origin)), lanes);
  const auto rebuilt = [&] {
    if (a.same_as(op.lhs) && b.same_as(op.rhs)) return original;
    return binary(op.op, a, b, original->origin);
  };
  const auto left = lanes_of(a), right = lanes_of(b);
  const DType dtype = op.lhs->dtype.element();
  if (!left || !right || !is_index_like(dtype)) return rebuilt();
  switch (op.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return vector_of(simplify(binary(op.op, left->base, right->base)),
                       simplify(binary(op.op, left->stride, right->stride)), lanes);
    case BinaryOp::kMul:
      if (!x && !y) break;
      if (x)
        return vector_of(simplify(x->value * right->base), simplify(x->value * right->stride),
                         lanes);
      return vector_of(simplify(left->base * y->value), simplify(left->stride * y->value), lanes);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      const auto c = as_int(b);
      const auto stride = as_int(left->stride);
      if (!c || *c <= 0 || !stride) break;
      const bool quotient = op.op == BinaryOp::kFloorDiv;
      const Expr divisor = imm(dtype, *c);
      if (*stride % *c == 0) {
        if (quotient)
          return vector_of(simplify(tenon::floordiv(left->base, divisor)), imm(dtype, *stride / *c),
                           lanes);
        return make<Broadcast>(simplify(tenon::floormod(left->base, divisor)), lanes);
      }
      // No lane carries into the next quotient.
      const Expr rest = simplify(tenon::floormod(left->base, divisor));
      const ConstBound first = bound(poly(rest));
      const ConstBound last = bound_add(first, {*stride * (lanes - 1), *stride * (lanes - 1)});
      if (first.min < 0 || last.min < 0 || first.max >= *c || last.max >= *c) break;
      if (quotient) return make<Broadcast>(simplify(tenon::floordiv(left->base, divisor)), lanes);
      return make<Ramp>(rest, left->stride, lanes);
    }
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
    case BinaryOp::kLT:
    case BinaryOp::kLE:
    case BinaryOp::kGT:
    case BinaryOp::kGE: {
      // One answer for all lanes: at both ends for an order, everywhere between them then too.
      try {
        const Poly first = sum(poly(left->base), poly(right->base), -1);
        const Poly step = sum(poly(left->stride), poly(right->stride), -1);
        if ((op.op == BinaryOp::kEQ || op.op == BinaryOp::kNE) && !step.is(0)) break;
        const Poly last = recombine(add(first, step, lanes - 1));
        const auto p = decide_comparison(op.op, first, 12), q = decide_comparison(op.op, last, 12);
        if (p && q && *p == *q) return imm(kBool.with_lanes(lanes), int64_t{*p});
      } catch (const Overflow&) {
      }
      break;
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      try {
        const Poly first = sum(poly(left->base), poly(right->base), -1);
        const Poly last =
            recombine(add(first, sub(poly(left->stride), poly(right->stride)), lanes - 1));
        const bool is_min = op.op == BinaryOp::kMin;
        if (nonnegative(first, 12) && nonnegative(last, 12)) return is_min ? b : a;
        if (nonnegative(negate(first), 12) && nonnegative(negate(last), 12)) return is_min ? a : b;
      } catch (const Overflow&) {
      }
      break;
    }
    default: break;
  }
  return rebuilt();
}

Expr Analyzer::Impl::simplify_vector(const Expr& expr) {
  const int lanes = expr->dtype.lanes;
  if (const auto* op = expr.as<Binary>()) {
    const Expr out = vector_binary(*op, expr);
    const auto* rest = out.as<Binary>();
    if (!rest || !is_logical(rest->op)) return out;
    // A splat of True or False decides, as binary() folds it for scalars.
    const auto a = as_int(rest->lhs), b = as_int(rest->rhs);
    const bool is_and = rest->op == BinaryOp::kAnd;
    if (a) return (*a != 0) == is_and ? rest->rhs : rest->lhs;
    if (b) return (*b != 0) == is_and ? rest->lhs : rest->rhs;
    return out;
  }
  if (const auto* ramp = expr.as<Ramp>()) {
    const Expr base = simplify(ramp->base), stride = simplify(ramp->stride);
    if (is_int(stride, 0)) return make<Broadcast>(base, lanes);
    if (base.same_as(ramp->base) && stride.same_as(ramp->stride)) return expr;
    return make<Ramp>(base, stride, lanes, expr->origin);
  }
  if (const auto* op = expr.as<Cast>()) {
    const Expr value = simplify(op->value);
    if (const auto* splat = value.as<Broadcast>())
      return make<Broadcast>(simplify(tenon::cast(op->dtype.element(), splat->value)), lanes);
    if (const auto* ramp = value.as<Ramp>(); ramp && is_index_like(op->dtype.element()) &&
                                             is_index_like(value->dtype.element()) &&
                                             op->dtype.bits >= value->dtype.bits)
      return make<Ramp>(simplify(tenon::cast(op->dtype.element(), ramp->base)),
                        simplify(tenon::cast(op->dtype.element(), ramp->stride)), lanes);
    return value.same_as(op->value) ? expr : tenon::cast(op->dtype, value);
  }
  const Expr out = simplify_members(expr);
  if (const auto* op = out.as<Select>()) {
    if (const auto value = as_int(op->condition)) return *value ? op->true_value : op->false_value;
    if (same(op->true_value, op->false_value)) return op->true_value;
  }
  if (const auto* op = out.as<Not>()) {
    if (const auto value = as_int(op->value))
      return imm(kBool.with_lanes(lanes), int64_t{*value == 0});
  }
  return out;
}

}  // namespace tenon::arith
