// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/dims.h"

#include "tenon/support/diagnostics.h"

namespace tenon::interp {

static Expr fold(const Expr& expr, const AskLibrary& ask) {
  return rewrite(expr, [&](const NodePtr& node) -> std::optional<NodePtr> {
    if (const auto* op = node.as<Binary>()) return binary(op->op, op->lhs, op->rhs);
    if (const auto* op = node.as<Cast>()) return tenon::cast(op->dtype, op->value);
    if (const auto* op = node.as<Select>())
      return select(op->condition, op->true_value, op->false_value);
    if (const auto* op = node.as<Not>()) return logical_not(op->value);
    if (const auto* op = node.as<tenon::Call>(); op && op->is(IntrinsicId::kIfThenElse))
      return if_then_else(op->arg(0), op->arg(1), op->arg(2));
    if (const auto* op = node.as<tenon::Call>(); op && ask && op->is(IntrinsicId::kCallPureExtern))
      return imm(op->dtype, ask(*op));
    return std::nullopt;
  });
}

Substitution substitution_of(const Dims& dims) {
  Substitution values;
  for (const auto& [var, value] : dims)
    values.emplace(var, imm(static_cast<const Var*>(var)->dtype, value));
  return values;
}

std::optional<int64_t> value_of(const Expr& expr, const Dims& dims, const AskLibrary& ask) {
  if (const auto value = as_int(expr)) return value;
  return as_int(fold(substitute(expr, substitution_of(dims)), ask));
}

int64_t evaluate(const Expr& expr, const Dims& dims, const AskLibrary& ask) {
  const auto value = value_of(expr, dims, ask);
  if (!value)
    throw CompileError(kUndefined, expr->origin, "`{}` has no value here", tenon::str(expr));
  return *value;
}

std::vector<int64_t> evaluate(const std::vector<Expr>& exprs, const Dims& dims) {
  std::vector<int64_t> out;
  for (const Expr& expr : exprs) out.push_back(evaluate(expr, dims));
  return out;
}

}  // namespace tenon::interp
