// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/visit.h"
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

/// x and c where `expr` is x * c or x / (1 / c), for a constant c above 0; otherwise `expr` and 1.
static std::pair<Expr, double> factor_of(const Expr& expr) {
  const auto* op = expr.as<Binary>();
  if (!op) return {expr, 1};
  const auto left = as_float(op->lhs), right = as_float(op->rhs);
  double factor = 0;
  if (op->op == BinaryOp::kDiv && right && *right > 0) factor = 1 / *right;
  if (op->op == BinaryOp::kMul && (left || right)) factor = left ? *left : *right;
  // Far from 1 the steps' constants would leave the type.
  if (!(factor > 1e-3 && factor < 1e3)) return {expr, 1};
  return {op->op == BinaryOp::kMul && left ? op->rhs : op->lhs, factor};
}

/// The argument of function `id` where `expr` is 1 + id(argument), else null.
static Expr one_plus(IntrinsicId id, const Expr& expr) {
  const auto* sum = expr.as<Binary>();
  if (!sum || sum->op != BinaryOp::kAdd) return {};
  const bool is_left = as_float(sum->lhs) == 1.0;
  if (!is_left && as_float(sum->rhs) != 1.0) return {};
  const auto* call = (is_left ? sum->rhs : sum->lhs).as<Call>();
  return call && call->op && call->is(id) ? call->arg(0) : Expr();
}

static Expr doubled(const Expr& expr) {
  const auto* op = expr.as<Binary>();
  const auto factor = op && op->op == BinaryOp::kMul ? as_float(op->rhs) : std::nullopt;
  if (!factor) return expr * imm(expr->dtype, 2.0);
  return *factor == 0.5 ? op->lhs : op->lhs * imm(expr->dtype, 2 * *factor);
}

/// 1 + erf(x), 1 + tanh(x), a * sigmoid(x), a * (1 + tanh(x)), of which GELU and SiLU consist, as one
/// function each. erf and tanh need a second polynomial for small arguments, where their results are
/// small; the sum with 1 rounds these digits away. A factor `a` is the numerator of a division that
/// is there anyway.
static std::optional<Expr> joined(const Expr& expr, const ElementaryOptions& options) {
  const auto* op = expr.as<Binary>();
  if (!op || op->dtype.element() != kFloat32) return std::nullopt;
  if (const Expr argument = one_plus(IntrinsicId::kErf, expr)) {
    const auto [x, scale] = factor_of(argument);
    return one_plus_erf(x, scale, options);
  }
  if (const Expr x = one_plus(IntrinsicId::kTanh, expr))
    return logistic(x, -2, imm(op->dtype, 2.0), options);
  if (op->op != BinaryOp::kMul) return std::nullopt;
  for (const auto& [a, function] : {std::pair(op->lhs, op->rhs), std::pair(op->rhs, op->lhs)}) {
    const auto* call = function.as<Call>();
    if (call && call->op && call->is(IntrinsicId::kSigmoid))
      return logistic(call->arg(0), -1, a, options);
    if (const Expr x = one_plus(IntrinsicId::kTanh, function))
      return logistic(x, -2, doubled(a), options);
  }
  return std::nullopt;
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

namespace {

class IntrinsicLowering final : public Rewriter {
 public:
  IntrinsicLowering(const ElementaryOptions& options, bool has_dot_products)
      : options_(options), has_dot_products_(has_dot_products) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    // Before the functions in it are arithmetic.
    if (node.as<Binary>())
      if (const auto both = joined(ref_to(node.as<ExprNode>()), options_))
        return rewrite_members(*both);
    NodePtr next = rewrite_members(node);
    const auto* expr = next ? next.as<ExprNode>() : nullptr;
    if (!expr) return next;
    // What it computes with wider types may be an elementary function of them.
    if (const auto wide = without_narrow_arithmetic(ref_to(expr))) return rewrite(*wide);
    const auto replacement = lowered(ref_to(expr), options_, has_dot_products_);
    return replacement ? NodePtr(*replacement) : next;
  }

 private:
  ElementaryOptions options_;
  bool has_dot_products_;
};

}  // namespace

IRModule lower_intrinsics(IRModule module) {
  ElementaryOptions options;
  bool has_dot_products = true;
  if (const auto text = module.attrs.get<std::string>("target")) {
    const Target target = parse_target(*text);
    options.fma = target.has_fma;
    has_dot_products = target.dot_products() != DotProducts::kNone;
  }
  return map_kernels(std::move(module), [&](const Ref<PrimFunc>& function) {
    return IntrinsicLowering(options, has_dot_products)(function);
  });
}

}  // namespace tenon::tir
