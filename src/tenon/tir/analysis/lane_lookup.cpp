// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/lane_lookup.h"

namespace tenon::tir {

// The number that all lanes are.
static Expr lane_of(const Expr& expr) {
  const auto* many = expr.as<Broadcast>();
  return many ? many->value : expr;
}

std::optional<LaneLookup> lane_lookup(const Expr& expr) {
  if (expr->dtype.element() != kFloat32) return std::nullopt;
  if (const auto* op = expr.as<Binary>()) {
    const auto taken_off = as_float(lane_of(op->rhs));
    if (op->op != BinaryOp::kSub || !taken_off || !op->lhs.as<Cast>()) return std::nullopt;
    auto lookup = lane_lookup(op->lhs);
    if (!lookup) return std::nullopt;
    for (double& number : lookup->floats)
      number = static_cast<float>(number) - static_cast<float>(*taken_off);
    return lookup;
  }
  const auto* cast = expr.as<Cast>();
  const auto* masked = cast ? cast->value.as<Call>() : nullptr;
  if (!masked || !masked->is(IntrinsicId::kBitwiseAnd)) return std::nullopt;
  const DType from = masked->dtype.element();
  const auto mask = as_int(lane_of(masked->arg(1)));
  if ((from != kInt32 && from != kUInt32) || !mask || *mask < 0 || *mask > 15) return std::nullopt;
  LaneLookup lookup{masked->arg(0), {}};
  for (size_t i = 0; i < lookup.floats.size(); ++i)
    lookup.floats[i] = static_cast<double>(static_cast<int64_t>(i) & *mask);
  return lookup;
}

bool has_lane_lookup(const Target& target) {
  return target.kind == "llvm" && target.is_x86() && target.vector_bits >= 512;
}

}  // namespace tenon::tir
