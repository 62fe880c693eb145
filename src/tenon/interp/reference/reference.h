// SPDX-License-Identifier: Apache-2.0
// Direct references of basic operators: the value of a call on constants, computed natively instead
// of by running the operator's lowering. They exist for the bulk work on weights (packing,
// transposing, scaling by a folded batch norm), which must go at memory speed, and equal the
// lowered meaning bit for bit.
#pragma once

#include "tenon/graph/expr.h"

namespace tenon::interp {

/// The value of `call`; null where an argument is no constant, the result's shape is symbolic, or
/// the operator (or this form of it) has no direct reference. A splat stays a splat where the
/// operator keeps it one.
Ref<TensorData> reference_value(const graph::Call& call);

}  // namespace tenon::interp
