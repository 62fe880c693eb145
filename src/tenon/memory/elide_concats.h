// SPDX-License-Identifier: Apache-2.0
// Concatenation without copies.
#pragma once

#include "tenon/ir/module.h"

namespace tenon::memory {

/// Calls of kernels that join tensors (attribute tir::kConcatAxis) go from the entry function where it
/// allocates the tensors: what computes one writes it where it lies in the result (tir::concat_parts).
/// Nothing may use a tensor after the call, or the result before it; their sizes are constant. A call stays
/// where the peak might rise without it: more would be alive at some moment than is at any now. Nothing
/// changes where the module states pools (attribute `pools`), as each has a peak of its own.
IRModule elide_concats(IRModule module);

}  // namespace tenon::memory
