// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/target.h"
#include "tenon/tir/elementary.h"
#include "tenon/tir/narrow_types.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

/// An integer power by squaring, modulo 2 to the bits of the type; a negative one is the reciprocal
/// towards zero.
static Expr integer_power(const Expr& base, const Expr& power) {
  const DType dtype = base->dtype;
  const DType wide = (dtype.bits > 32 ? kUInt64 : kUInt32).with_lanes(dtype.lanes);
  std::vector<std::pair<Ref<Var>, Expr>> lets;
  const auto let = [&](const Expr& value) -> Expr {
    return lets.emplace_back(var("t", value->dtype), value).first;
  };
  const Expr a = let(base), b = let(power), one = imm(wide, int64_t{1});
  Expr square = let(cast(wide, a)), result = one;
  for (int bit = 0; bit < dtype.bits - dtype.is_int(); ++bit) {
    if (bit > 0) square = let(square * square);
    const Expr shifted = call(IntrinsicId::kShiftRight, {b, imm(dtype, int64_t{bit})});
    const Expr last = call(IntrinsicId::kBitwiseAnd, {shifted, imm(dtype, int64_t{1})});
    result = let(result * select(ne(last, imm(dtype, int64_t{0})), square, one));
  }
  result = cast(dtype, result);
  if (dtype.is_int()) {
    const Expr is_unit = logical_or(eq(a, imm(dtype, int64_t{1})), eq(a, imm(dtype, int64_t{-1})));
    result =
        select(logical_or(b >= imm(dtype, int64_t{0}), is_unit), result, imm(dtype, int64_t{0}));
  }
  for (size_t i = lets.size(); i-- > 0;) result = make<Let>(lets[i].first, lets[i].second, result);
  return result;
}

/// Bytes are taken out by shifts: to the right, with the sign where the word has one.
static Expr dot_product(const Expr& left, const Expr& right) {
  const Ref<Var> a = var("a", left->dtype), b = var("b", right->dtype);
  const auto byte = [](const Expr& word, int i) {
    const DType dtype = word->dtype;
    const auto shift = [&](IntrinsicId id, const Expr& x, int bits) {
      return bits == 0 ? x : call(id, {x, imm(dtype, int64_t{bits})});
    };
    if (dtype.is_int())
      return shift(IntrinsicId::kShiftRight, shift(IntrinsicId::kShiftLeft, word, 24 - 8 * i), 24);
    return call(IntrinsicId::kBitwiseAnd,
                {shift(IntrinsicId::kShiftRight, word, 8 * i), imm(dtype, int64_t{255})});
  };
  Expr sum;
  for (int i = 0; i < 4; ++i) {
    const Expr product = cast(right->dtype, byte(a, i)) * byte(b, i);
    sum = i == 0 ? product : sum + product;
  }
  return make<Let>(a, left, make<Let>(b, right, sum));
}

static std::optional<Expr> lowered(const Expr& expr, const ElementaryOptions& options,
                                   bool has_dot_products) {
  if (const auto* op = expr.as<Binary>(); op && op->dtype.is_float()) {
    if (op->op == BinaryOp::kMod)
      return elementary(IntrinsicId::kFmod, {op->lhs, op->rhs}, options);
    if (op->op == BinaryOp::kFloorMod) return elementary_floormod(op->lhs, op->rhs, options);
  }
  const auto* call = expr.as<Call>();
  if (!call || !call->op) return std::nullopt;
  if (call->is(IntrinsicId::kPow) && call->dtype.is_integer())
    return integer_power(call->arg(0), call->arg(1));
  if (call->is(IntrinsicId::kDot4) && !has_dot_products)
    return dot_product(call->arg(0), call->arg(1));
  if (!call->dtype.is_float() || !is_elementary(call->op->id)) return std::nullopt;
  std::vector<Expr> args;
  for (size_t i = 0; i < call->args.size(); ++i) args.push_back(call->arg(i));
  return elementary(call->op->id, args, options);
}

IRModule lower_intrinsics(IRModule module) {
  ElementaryOptions options;
  bool has_dot_products = true;
  if (const auto text = module.attrs.get<std::string>("target")) {
    const Target target = parse_target(*text);
    options.fma = target.has_fma;
    has_dot_products = target.dot_products() != DotProducts::kNone;
  }
  return map_kernels(std::move(module), [&](const Ref<PrimFunc>& function) {
    const std::function<std::optional<NodePtr>(const NodePtr&)> lower =
        [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* expr = node.as<ExprNode>();
      if (!expr) return std::nullopt;
      // What it computes with wider types may be an elementary function of them.
      if (const auto wide = without_narrow_arithmetic(ref_to(expr))) return rewrite(*wide, lower);
      return lowered(ref_to(expr), options, has_dot_products);
    };
    return rewrite(function, lower);
  });
}

}  // namespace tenon::tir
