// SPDX-License-Identifier: Apache-2.0
// Divisions that no run can do.
#pragma once

#include "tenon/ir/expr.h"

namespace tenon {

/// Whether `node` divides integers by a constant zero, or takes the remainder.
inline bool divides_by_zero(const NodePtr& node) {
  const auto* op = node.as<Binary>();
  return op && op->op >= BinaryOp::kDiv && op->op <= BinaryOp::kFloorMod && is_int(op->rhs, 0);
}

}  // namespace tenon
