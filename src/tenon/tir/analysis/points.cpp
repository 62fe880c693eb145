// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/points.h"

namespace tenon::tir {

static std::optional<int64_t> binary_at(const Binary& op, const Point& point) {
  const auto a = value_at(op.lhs, point);
  if (op.op == BinaryOp::kAnd || op.op == BinaryOp::kOr) {
    const bool decides = op.op == BinaryOp::kOr;
    if (a && (*a != 0) == decides) return decides;
    const auto b = value_at(op.rhs, point);
    if (b && (*b != 0) == decides) return decides;
    return a && b ? std::optional<int64_t>(!decides) : std::nullopt;
  }
  const auto b = a ? value_at(op.rhs, point) : std::nullopt;
  if (!b) return std::nullopt;
  if (is_comparison(op.op) || op.op == BinaryOp::kMin || op.op == BinaryOp::kMax)
    return fold_int(op.op, op.lhs->dtype, *a, *b);
  int64_t exact = 0;
  if (op.op == BinaryOp::kAdd && __builtin_add_overflow(*a, *b, &exact)) return std::nullopt;
  if (op.op == BinaryOp::kSub && __builtin_sub_overflow(*a, *b, &exact)) return std::nullopt;
  if (op.op == BinaryOp::kMul && __builtin_mul_overflow(*a, *b, &exact)) return std::nullopt;
  return fold_int(op.op, op.lhs->dtype, *a, *b);
}

std::optional<int64_t> value_at(const Expr& expr, const Point& point) {
  if (!expr->dtype.is_scalar() || !(expr->dtype.is_integer() || expr->dtype.is_bool()))
    return std::nullopt;
  if (const auto* value = expr.as<IntImm>()) return value->value;
  if (const auto* var = expr.as<Var>()) {
    const auto known = point.find(var);
    return known == point.end() ? std::nullopt : std::optional(known->second);
  }
  if (const auto* op = expr.as<Binary>())
    return op->lhs->dtype.is_float() ? std::nullopt : binary_at(*op, point);
  if (const auto* op = expr.as<Not>()) {
    const auto value = value_at(op->value, point);
    return value ? std::optional<int64_t>(*value == 0) : std::nullopt;
  }
  if (const auto* op = expr.as<Cast>()) {
    const auto value = value_at(op->value, point);
    if (!value) return std::nullopt;
    if (expr->dtype.is_bool()) return *value != 0;
    // Addition of 0 wraps to the width.
    return fold_int(BinaryOp::kAdd, expr->dtype, *value, 0);
  }
  const auto choose = [&](const Expr& condition, const Expr& a, const Expr& b) {
    const auto holds = value_at(condition, point);
    return holds ? value_at(*holds ? a : b, point) : std::nullopt;
  };
  if (const auto* op = expr.as<Select>())
    return choose(op->condition, op->true_value, op->false_value);
  if (const auto* op = expr.as<Call>()) {
    if (op->is(IntrinsicId::kIfThenElse)) return choose(op->arg(0), op->arg(1), op->arg(2));
    if (op->is(IntrinsicId::kLikely)) return value_at(op->arg(0), point);
    const bool bits = op->is(IntrinsicId::kBitwiseAnd) || op->is(IntrinsicId::kBitwiseOr) ||
                      op->is(IntrinsicId::kBitwiseXor);
    const bool shift = op->is(IntrinsicId::kShiftLeft) || op->is(IntrinsicId::kShiftRight);
    if (!bits && !shift) return std::nullopt;
    const auto a = value_at(op->arg(0), point), b = value_at(op->arg(1), point);
    if (!a || !b) return std::nullopt;
    if (op->is(IntrinsicId::kBitwiseAnd)) return *a & *b;
    if (op->is(IntrinsicId::kBitwiseOr)) return *a | *b;
    if (op->is(IntrinsicId::kBitwiseXor)) return *a ^ *b;
    if (*b < 0 || *b >= expr->dtype.bits || *a < 0) return std::nullopt;
    if (op->is(IntrinsicId::kShiftRight)) return *a >> *b;
    return *b < 32 && *a < (int64_t{1} << 31)
               ? fold_int(BinaryOp::kMul, expr->dtype, *a, int64_t{1} << *b)
               : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tenon::tir
