// SPDX-License-Identifier: Apache-2.0
// The analytic default: every kernel gets a schedule by its structure, never by its name.
#pragma once

#include "tenon/ir/pass.h"
#include "tenon/support/target.h"
#include "tenon/tir/schedule/block_plan.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// Schedules each PrimFunc with a root block for the module's target (attrs["target"], as
/// parse_target() reads it; a generic one where there is none) and sets its attribute
/// "tir.is_scheduled". Functions that have it already are left alone. A kernel whose structure is
/// not recognised keeps its plain loops.
IRModule default_schedule(IRModule module, const Attrs& options = {});

/// The schedule that the pass gives to one function, with its trace. `plans` gets what was chosen for
/// its blocks.
Schedule schedule_by_default(const Ref<PrimFunc>& function, const Target& target,
                             std::vector<BlockPlan>* plans = nullptr);

}  // namespace tenon::tir
