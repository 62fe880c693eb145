// SPDX-License-Identifier: Apache-2.0
// Native arithmetic of element-wise operators on constants. Private to interp/reference.
#pragma once

#include "tenon/graph/expr.h"

namespace tenon::interp {

/// Null where the operator, dtype or values have no native form here.
Ref<TensorData> elementwise_reference(const graph::Call& call);

}  // namespace tenon::interp
