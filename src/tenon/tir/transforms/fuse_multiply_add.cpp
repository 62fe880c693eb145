// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/target.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

static const Binary* product(const Expr& expr) {
  const auto* op = expr.as<Binary>();
  return op && op->op == BinaryOp::kMul ? op : nullptr;
}

// -x, exactly: 0 - x would turn 0 into 0 and not into -0.
static Expr negated(const Expr& x) { return make<Binary>(BinaryOp::kSub, imm(x->dtype, -0.0), x); }

static Expr fma(const Expr& a, const Expr& b, const Expr& c, const Origin& origin) {
  return call(IntrinsicId::kFma, {a, b, c}, kVoid, origin);
}

// Whether `other` has the product too, rounded there: a * b - a * b is 0, and what the rounding of
// one of them leaves out where they are joined.
static bool has_rounded(const Expr& other, const Binary& wanted) {
  bool found = false;
  walk<Binary>(other, [&](const Binary& op) {
    if (found || op.op != BinaryOp::kMul || op.dtype != wanted.dtype) return;
    found = (structural_equal(op.lhs, wanted.lhs) && structural_equal(op.rhs, wanted.rhs)) ||
            (structural_equal(op.lhs, wanted.rhs) && structural_equal(op.rhs, wanted.lhs));
  });
  return found;
}

// What rounding an operand may change by a whole step: a number half-way between two steps goes
// to one by each sum's own rounding, and to the other where a product was joined with it.
static bool is_step(const NodePtr& node) {
  if (const auto* cast = node.as<Cast>())
    return cast->dtype.is_integer() && cast->value->dtype.is_float();
  const auto* call = node.as<Call>();
  return call && (call->is(IntrinsicId::kRound) || call->is(IntrinsicId::kNearbyint) ||
                  call->is(IntrinsicId::kFloor) || call->is(IntrinsicId::kCeil) ||
                  call->is(IntrinsicId::kTrunc));
}

namespace {

class Joiner final : public Rewriter {
 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (is_step(node)) return node;
    NodePtr now = rewrite_members(node);
    const auto* op = now.as<Binary>();
    return op ? joined(*op).value_or(now) : now;
  }

 private:
  static std::optional<NodePtr> joined(const Binary& op) {
    const bool adds = op.op == BinaryOp::kAdd;
    if (!adds && op.op != BinaryOp::kSub) return std::nullopt;
    const DType element = op.dtype.element();
    if (element != kFloat32 && element != kFloat64) return std::nullopt;
    if (const Binary* left = product(op.lhs); left && !has_rounded(op.rhs, *left))
      return fma(left->lhs, left->rhs, adds ? op.rhs : negated(op.rhs), op.origin);
    if (const Binary* right = product(op.rhs); right && !has_rounded(op.lhs, *right))
      return fma(adds ? right->lhs : negated(right->lhs), right->rhs, op.lhs, op.origin);
    return std::nullopt;
  }
};

}  // namespace

IRModule fuse_multiply_add(IRModule module) {
  if (const auto target = module.attrs.get<std::string>("target"))
    if (!parse_target(*target).has_fma) return module;
  return map_kernels(std::move(module),
                     [](const Ref<PrimFunc>& function) { return Joiner()(function); });
}

}  // namespace tenon::tir
