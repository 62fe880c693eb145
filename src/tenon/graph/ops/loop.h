// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/graph/op.h"

namespace tenon::graph {

/// The call primitive `loop`, one of call_ops().
OpDef loop_op();

}  // namespace tenon::graph
