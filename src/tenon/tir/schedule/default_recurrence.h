// SPDX-License-Identifier: Apache-2.0
// Schedules of blocks with an axis that runs in order: scans, and the steps of recurrent layers.
// Internal to the default schedule.
#pragma once

#include "tenon/support/target.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// Vectors along an axis of consecutive elements, inside the loop that runs in order. A product of
/// a step walks its weights as they lie in memory, with the accumulators in the nearest cache, four
/// rows of weights at a time.
/// \throws CompileError (kScheduleIllegal) where the block does not suit; `schedule` may then be
/// changed.
void schedule_scan(Schedule& schedule, const BlockRV& block, const Target& target);

}  // namespace tenon::tir
