// SPDX-License-Identifier: Apache-2.0
// The body of a PrimFunc in the place of a call of it.
#pragma once

#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Whether the argument is all of a buffer, whose pointer is that of the parameter then.
bool is_whole_buffer(const NodePtr& arg);

/// A copy of the callee's body on `args`, those of a CallTir: regions in the place of its buffers,
/// values in the place of its scalars, and for its dimensions what follows from these. A region that
/// is no whole buffer stands for loads, stores and regions of its parameter, not for the pointer.
Stmt body_in_place(const Ref<PrimFunc>& callee, const std::vector<NodePtr>& args);

}  // namespace tenon::tir
