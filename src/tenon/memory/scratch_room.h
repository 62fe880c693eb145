// SPDX-License-Identifier: Apache-2.0
// How much memory of their own kernels may take before the program needs more.
#pragma once

#include "tenon/ir/module.h"

namespace tenon::memory {

/// Gives each kernel that may be computed by other forms (attribute tir::kLayoutFreeBuffers) the
/// attribute tir::kScratchRoom: the bytes between what is alive at its calls and the most that is
/// alive anywhere, and 0 where its results are rounded to integers, by itself or by a kernel that
/// reads them. Where a size is known only at run time kernels get no bytes but 0; none gets any where
/// the module's attribute tir::kFloatingPoint settles which forms are taken.
IRModule annotate_scratch_room(IRModule module);

/// Gives kernels that take such a form the attribute tir::kGrownRoom: the bytes below the peak that the
/// program has with the forms that were chosen by kScratchRoom, as passes since then have left it.
/// Blocks of tiles may grow to these bytes, and the peak stays. It does nothing where the module's
/// attribute tir::kFloatingPoint settles which forms are taken, and for targets that take none.
IRModule grow_scratch_room(IRModule module);

}  // namespace tenon::memory
