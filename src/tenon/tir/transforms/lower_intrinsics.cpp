// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/target.h"
#include "tenon/tir/elementary.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

IRModule lower_intrinsics(IRModule module) {
  ElementaryOptions options;
  if (const auto target = module.attrs.get<std::string>("target"))
    options.fma = parse_target(*target).has_fma;
  return map_kernels(std::move(module), [&](const Ref<PrimFunc>& function) {
    return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      if (const auto* op = node.as<Binary>(); op && op->dtype.is_float()) {
        if (op->op == BinaryOp::kMod)
          return elementary(IntrinsicId::kFmod, {op->lhs, op->rhs}, options);
        if (op->op == BinaryOp::kFloorMod) return elementary_floormod(op->lhs, op->rhs, options);
      }
      const auto* call = node.as<Call>();
      if (!call || !call->op || !call->dtype.is_float()) return std::nullopt;
      if (!is_elementary(call->op->id)) return std::nullopt;
      std::vector<Expr> args;
      for (size_t i = 0; i < call->args.size(); ++i) args.push_back(call->arg(i));
      return elementary(call->op->id, args, options);
    });
  });
}

}  // namespace tenon::tir
