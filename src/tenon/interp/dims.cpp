// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/dims.h"

#include "tenon/interp/scalar.h"
#include "tenon/support/diagnostics.h"

namespace tenon::interp {

namespace {

// Numbers of expressions, each node once. What a condition leaves out need have no value.
class Numbers {
 public:
  Numbers(const Dims& dims, const AskLibrary& ask) : dims_(dims), ask_(ask) {}

  std::optional<Slot> of(const Expr& expr) {
    const auto [it, is_new] = known_.try_emplace(expr.get());
    if (!is_new) return it->second;
    const std::optional<Slot> value = compute(expr);
    return known_[expr.get()] = value;
  }

 private:
  std::optional<Slot> compute(const Expr& expr) {
    if (const auto value = as_int(expr)) return Slot{.i = *value};
    if (const auto value = as_float(expr)) return Slot{.f = *value};
    if (expr.as<tenon::Var>()) {
      const auto found = dims_.find(expr.get());
      if (found == dims_.end()) return std::nullopt;
      return Slot{.i = wrap_int(expr->dtype, found->second)};
    }
    if (const auto* op = expr.as<Binary>()) return binary(*op);
    if (const auto* op = expr.as<Cast>()) {
      const auto value = of(op->value);
      if (!value) return std::nullopt;
      return apply_cast(op->dtype, op->value->dtype, *value);
    }
    if (const auto* op = expr.as<Select>())
      return chosen(op->condition, op->true_value, op->false_value);
    if (const auto* op = expr.as<Not>()) {
      const auto value = of(op->value);
      if (!value) return std::nullopt;
      return Slot{.i = value->i == 0};
    }
    if (const auto* op = expr.as<tenon::Call>()) return call(*op);
    return std::nullopt;
  }

  std::optional<Slot> chosen(const Expr& condition, const Expr& yes, const Expr& no) {
    const auto holds = of(condition);
    if (!holds) return std::nullopt;
    return of(holds->i ? yes : no);
  }

  std::optional<Slot> binary(const Binary& op) {
    const auto a = of(op.lhs);
    if (is_logical(op.op)) {
      const bool decides = op.op == BinaryOp::kOr;
      if (a && (a->i != 0) == decides) return Slot{.i = decides};
      const auto b = of(op.rhs);
      if (b && (b->i != 0) == decides) return Slot{.i = decides};
      if (!a || !b) return std::nullopt;
      return Slot{.i = !decides};
    }
    const auto b = of(op.rhs);
    if (!a || !b) return std::nullopt;
    const DType dtype = op.lhs->dtype;
    if (dtype.is_float()) return apply_binary(op.op, dtype, *a, *b, op.origin);
    const auto value = fold_int(op.op, dtype, a->i, b->i);
    if (!value) return std::nullopt;
    return Slot{.i = *value};
  }

  std::optional<Slot> call(const tenon::Call& call) {
    if (!call.op) return std::nullopt;
    if (call.is(IntrinsicId::kIfThenElse)) return chosen(call.arg(0), call.arg(1), call.arg(2));
    if (call.is(IntrinsicId::kCallPureExtern)) return asked(call);
    Slot values[3] = {};
    if (call.args.empty() || call.args.size() > std::size(values)) return std::nullopt;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto value = of(call.arg(i));
      if (!value) return std::nullopt;
      values[i] = *value;
    }
    return apply_intrinsic(call.op->id, call.dtype, call.arg(0)->dtype, values[0], values[1],
                           values[2], call.origin);
  }

  // Its arguments, but for the function's name, become numbers.
  std::optional<Slot> asked(const tenon::Call& call) {
    if (!ask_) return std::nullopt;
    std::vector<NodePtr> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Expr arg = call.arg(i);
      const auto value = arg.as<StringImm>() ? std::nullopt : of(arg);
      args.push_back(!value                  ? arg
                     : arg->dtype.is_float() ? imm(arg->dtype, value->f)
                                             : imm(arg->dtype, value->i));
    }
    return Slot{.i = ask_(*make<tenon::Call>(call.op, std::move(args), call.result, call.origin))};
  }

  const Dims& dims_;
  const AskLibrary& ask_;
  std::unordered_map<const Node*, std::optional<Slot>> known_;
};

}  // namespace

Substitution substitution_of(const Dims& dims) {
  Substitution values;
  for (const auto& [var, value] : dims)
    values.emplace(var, imm(static_cast<const Var*>(var)->dtype, value));
  return values;
}

std::optional<int64_t> value_of(const Expr& expr, const Dims& dims, const AskLibrary& ask) {
  if (const auto value = as_int(expr)) return value;
  const auto number = Numbers(dims, ask).of(expr);
  if (!number || expr->dtype.is_float()) return std::nullopt;
  return number->i;
}

Slot number_of(const Expr& expr, const Dims& dims) {
  const auto number = Numbers(dims, {}).of(expr);
  if (!number)
    throw CompileError(kUndefined, expr->origin, "`{}` has no value here", tenon::str(expr));
  return *number;
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
