// SPDX-License-Identifier: Apache-2.0
// Random integer expressions and their exact evaluation, for tests that enumerate values.
#pragma once

#include <map>
#include <random>

#include "tenon/ir/expr.h"

namespace tenon::arith {

using Point = std::map<const Node*, int64_t>;

/// The value of `expr` at `point`; nothing where a division by zero is evaluated.
inline std::optional<int64_t> evaluate(const Expr& expr, const Point& point) {
  if (const auto* value = expr.as<IntImm>()) return value->value;
  if (const auto* var = expr.as<Var>()) return point.at(var);
  if (const auto* op = expr.as<Binary>()) {
    const auto a = evaluate(op->lhs, point), b = evaluate(op->rhs, point);
    if (!a || !b) return std::nullopt;
    return fold_int(op->op, op->lhs->dtype, *a, *b);
  }
  if (const auto* op = expr.as<Not>()) {
    const auto a = evaluate(op->value, point);
    return a ? std::optional<int64_t>(!*a) : std::nullopt;
  }
  if (const auto* op = expr.as<Cast>()) {
    const auto a = evaluate(op->value, point);
    return a ? as_int(cast(op->dtype, imm(op->value->dtype, *a))) : std::nullopt;
  }
  if (const auto* op = expr.as<Select>()) {
    const auto c = evaluate(op->condition, point);
    const auto a = evaluate(op->true_value, point), b = evaluate(op->false_value, point);
    if (!c || !a || !b) return std::nullopt;
    return *c ? a : b;
  }
  if (const auto* op = expr.as<Call>()) {
    if (op->is(IntrinsicId::kLikely)) return evaluate(op->arg(0), point);
    if (op->is(IntrinsicId::kAbs) || op->is(IntrinsicId::kBitwiseAnd) ||
        op->is(IntrinsicId::kShiftRight)) {
      const auto a = evaluate(op->arg(0), point);
      const auto b = op->args.size() > 1 ? evaluate(op->arg(1), point) : std::optional<int64_t>(0);
      if (!a || !b) return std::nullopt;
      // The smallest value has no absolute value: it wraps to itself.
      if (op->is(IntrinsicId::kAbs)) return as_int(cast(op->dtype, int64(std::abs(*a))));
      return op->is(IntrinsicId::kBitwiseAnd) ? (*a & *b) : (*a >> *b);
    }
    check(op->is(IntrinsicId::kIfThenElse), "a call that the tests do not evaluate");
    const auto c = evaluate(op->arg(0), point);
    if (!c) return std::nullopt;
    return evaluate(op->arg(*c ? 1 : 2), point);
  }
  check(false, "an expression that the tests do not evaluate");
  return std::nullopt;
}

/// Builds random expressions of `dtype` over `vars`. Nodes are made directly, so that nothing is
/// folded on the way.
class RandomExprs {
 public:
  RandomExprs(std::vector<Ref<Var>> vars, DType dtype, uint64_t seed)
      : vars_(std::move(vars)), dtype_(dtype), random_(seed) {}

  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Expr constant() {
    static constexpr int64_t kUsual[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32};
    int64_t value = kUsual[number(0, 11)];
    if (!dtype_.is_uint() && number(0, 3) == 0) value = -value;
    return imm(dtype_, value);
  }

  Expr integer(int depth) {
    if (depth == 0 || number(0, 9) == 0)
      return number(0, 3) == 0 ? constant() : Expr(vars_[number(0, vars_.size() - 1)]);
    const auto node = [&](BinaryOp op, const Expr& b) -> Expr {
      return make<Binary>(op, integer(depth - 1), b);
    };
    switch (number(0, 20)) {
      case 0:
      case 1:
      case 2: return node(BinaryOp::kAdd, integer(depth - 1));
      case 3:
      case 4: return node(BinaryOp::kSub, integer(depth - 1));
      case 5:
      case 6: return node(BinaryOp::kMul, constant());
      case 7: return node(BinaryOp::kMul, integer(depth - 1));
      case 8:
      case 9: return node(BinaryOp::kFloorDiv, constant());
      case 10:
      case 11: return node(BinaryOp::kFloorMod, constant());
      case 12:
        return node(number(0, 1) ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod, integer(depth - 1));
      case 13: return node(number(0, 1) ? BinaryOp::kDiv : BinaryOp::kMod, constant());
      case 14: return node(BinaryOp::kMin, integer(depth - 1));
      case 15: return node(BinaryOp::kMax, integer(depth - 1));
      case 16: return make<Select>(boolean(depth - 1), integer(depth - 1), integer(depth - 1));
      case 17: return call(IntrinsicId::kAbs, {integer(depth - 1)});
      case 18: return call(IntrinsicId::kBitwiseAnd, {integer(depth - 1), integer(depth - 1)});
      case 19:
        return call(IntrinsicId::kShiftRight, {integer(depth - 1), imm(dtype_, number(0, 6))});
      default:
        return make<Call>(
            IntrinsicId::kIfThenElse,
            std::vector<NodePtr>{boolean(depth - 1), integer(depth - 1), integer(depth - 1)});
    }
  }

  Expr boolean(int depth) {
    if (depth > 0 && number(0, 2) == 0) {
      switch (number(0, 2)) {
        case 0: return make<Binary>(BinaryOp::kAnd, boolean(depth - 1), boolean(depth - 1));
        case 1: return make<Binary>(BinaryOp::kOr, boolean(depth - 1), boolean(depth - 1));
        default: return make<Not>(boolean(depth - 1));
      }
    }
    const auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::kEQ) + number(0, 5));
    return make<Binary>(op, integer(depth), number(0, 1) ? constant() : integer(depth));
  }

 private:
  static Expr call(IntrinsicId id, std::vector<NodePtr> args) {
    return make<Call>(id, std::move(args));
  }

  std::vector<Ref<Var>> vars_;
  DType dtype_;
  std::mt19937_64 random_;
};

}  // namespace tenon::arith
