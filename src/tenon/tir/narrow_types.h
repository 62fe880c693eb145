// SPDX-License-Identifier: Apache-2.0
// Arithmetic of narrow types (support/dtype.h) in terms of types that machines have. Afterwards they
// occur where elements are moved only: in loads, stores, selections, lanes and `T.reinterpret`.
//
// A minifloat is computed with in float32, and every result is rounded once more; integers of less
// than 8 bits in 8 bits, and every result wraps.
#pragma once

#include <optional>

#include "tenon/ir/expr.h"

namespace tenon::tir {

/// The same value without arithmetic of narrow types, where the node itself computes with one (its
/// operands are as they are). Nothing for every other node. Also a conversion of float64 to float16
/// becomes one that goes through float32 and rounds once.
std::optional<Expr> without_narrow_arithmetic(const Expr& expr);

}  // namespace tenon::tir
