// SPDX-License-Identifier: Apache-2.0
// Makes blocks use loop variables through their axes only, as schedules require.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// `function` where each block below the root that names a loop around it gets an opaque axis for
/// it, and where domains of axes that depend on other loops are the least constant ones that hold
/// them. Null where a block stays open: a reduction over a part of a loop that others decide, an
/// extent that is loaded, a name that is bound outside of the block.
Ref<PrimFunc> with_closed_blocks(const Ref<PrimFunc>& function);

}  // namespace tenon::tir
