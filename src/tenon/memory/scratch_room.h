// SPDX-License-Identifier: Apache-2.0
// How much memory of their own kernels may take before the program needs more.
#pragma once

#include "tenon/ir/module.h"

namespace tenon::memory {

/// Gives each kernel that may be computed by other forms (attribute tir::kLayoutFreeBuffers) the
/// attribute tir::kScratchRoom: the bytes between what is alive at its calls and the most that is
/// alive anywhere. No kernel gets it where a size is known only at run time, or where the module's
/// attribute tir::kFloatingPoint settles which forms are taken.
IRModule annotate_scratch_room(IRModule module);

}  // namespace tenon::memory
