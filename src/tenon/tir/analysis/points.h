// SPDX-License-Identifier: Apache-2.0
// Evaluates integer expressions at single points: what proofs leave open is decided by enumeration
// where there are few iterations.
#pragma once

#include <optional>
#include <unordered_map>

#include "tenon/ir/expr.h"

namespace tenon::tir {

/// A value for each variable that runs.
using Point = std::unordered_map<const Var*, int64_t>;

/// The value of a scalar integer or bool expression where its variables have the values of `point`;
/// nothing where that depends on something else (memory, calls, other variables), divides by zero
/// or overflows 64 bits. A side that decides alone (`and`, `or`, a condition) is enough.
std::optional<int64_t> value_at(const Expr& expr, const Point& point);

}  // namespace tenon::tir
