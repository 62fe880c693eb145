// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/facts.h"

#include <cmath>

namespace tenon::backend {

bool SignFacts::is_nonnegative(const Expr& expr) const {
  if (const auto number = as_int(expr)) return *number >= 0;
  if (expr->dtype.is_uint() || expr->dtype.is_bool()) return true;
  if (const auto* node = expr.as<Var>()) return node->is_size || has(node);
  if (const auto* node = expr.as<Cast>())
    return node->value->dtype.is_integer() && node->value->dtype.bits <= expr->dtype.bits &&
           is_nonnegative(node->value);
  if (const auto* node = expr.as<Broadcast>()) return is_nonnegative(node->value);
  if (const auto* node = expr.as<Ramp>())
    return is_nonnegative(node->base) && is_nonnegative(node->stride);
  const auto* node = expr.as<Binary>();
  if (!node) return false;
  switch (node->op) {
    case BinaryOp::kMax: return is_nonnegative(node->lhs) || is_nonnegative(node->rhs);
    case BinaryOp::kFloorMod: return is_nonnegative(node->rhs);
    case BinaryOp::kMod: return is_nonnegative(node->lhs);
    case BinaryOp::kAdd:
    case BinaryOp::kMul:  // of index arithmetic, which does not wrap
      if (expr->dtype.bits < 64) return false;
      [[fallthrough]];
    case BinaryOp::kMin:
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv: return is_nonnegative(node->lhs) && is_nonnegative(node->rhs);
    default: return false;
  }
}

bool SignFacts::is_positive(const Expr& expr) const {
  if (const auto number = as_int(expr)) return *number > 0;
  const auto* node = expr.as<Binary>();
  if (!node) return false;
  if (node->op == BinaryOp::kMax) return is_positive(node->lhs) || is_positive(node->rhs);
  if (node->op == BinaryOp::kMul || node->op == BinaryOp::kMin)
    return is_positive(node->lhs) && is_positive(node->rhs);
  if (node->op == BinaryOp::kAdd)
    return (is_positive(node->lhs) && is_nonnegative(node->rhs)) ||
           (is_nonnegative(node->lhs) && is_positive(node->rhs));
  return false;
}

bool never_nan(const Expr& expr) {
  if (const auto number = as_float(expr)) return !std::isnan(*number);
  if (const auto* node = expr.as<Cast>()) return !node->value->dtype.is_float();
  if (const auto* node = expr.as<Call>())
    return node->is(IntrinsicId::kMinValue) || node->is(IntrinsicId::kMaxValue) ||
           node->is(IntrinsicId::kInfinity);
  if (const auto* node = expr.as<Broadcast>()) return never_nan(node->value);
  if (const auto* node = expr.as<Binary>())
    return (node->op == BinaryOp::kMin || node->op == BinaryOp::kMax) && never_nan(node->lhs) &&
           never_nan(node->rhs);
  return false;
}

bool needs_guard(const Expr& expr) {
  bool reads = false;
  walk(expr, [&](const NodePtr& node) {
    if (node.as<tir::BufferLoad>()) reads = true;
    if (const auto* call = node.as<Call>())
      reads |= !call->op || call->op->effect != Effect::kPure || call->is(IntrinsicId::kCheckIndex);
    if (const auto* op = node.as<Binary>())  // may stop the program
      reads |= (op->op >= BinaryOp::kDiv && op->op <= BinaryOp::kFloorMod &&
                op->lhs->dtype.is_integer() && !as_int(op->rhs));
  });
  return reads;
}

bool is_plain_index(const Expr& expr) {
  if (!expr->dtype.is_int() || expr->dtype.bits < 32) return false;
  if (expr.as<Var>() || expr.as<IntImm>()) return true;
  if (const auto* node = expr.as<Ramp>())
    return is_plain_index(node->base) && is_plain_index(node->stride);
  if (const auto* node = expr.as<Broadcast>()) return is_plain_index(node->value);
  if (const auto* node = expr.as<Cast>()) return is_plain_index(node->value);
  const auto* node = expr.as<Binary>();
  return node && !is_comparison(node->op) && !is_logical(node->op) && is_plain_index(node->lhs) &&
         is_plain_index(node->rhs);
}

int64_t allocated_elements(const tir::AllocBuffer& alloc, const std::string& function) {
  const tir::Buffer& buffer = *alloc.buffer;
  const std::vector<Expr> strides =
      buffer.is_compact() ? tir::compact_strides(buffer.shape) : buffer.strides;
  int64_t count = 1;  // the last element's place, plus one
  for (size_t i = 0; i < buffer.shape.size(); ++i) {
    const auto extent = as_int(buffer.shape[i]), stride = as_int(strides[i]);
    if (!extent || !stride)
      throw CompileError(kUnsupported, alloc.origin,
                         "buffer `{}` of shape {} is allocated inside PrimFunc `{}`; only constant "
                         "shapes can be, before memory planning",
                         buffer.name, str(buffer.shape), function);
    if (*extent == 0) count = 0;
    if (count > 0) count += (*extent - 1) * *stride;
    if (count > (int64_t{1} << 40)) break;
  }
  return count;
}

}  // namespace tenon::backend
