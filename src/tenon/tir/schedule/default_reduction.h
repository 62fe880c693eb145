// SPDX-License-Identifier: Apache-2.0
// Schedules of windows (pooling) in planar layouts, and of the padding that windows read. Internal
// to the default schedule.
#pragma once

#include "tenon/support/target.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// A reduction whose results are consecutive, read at a small stride: vectors along the results,
/// the taps of a small window unrolled.
/// \throws CompileError (kScheduleIllegal) where it does not suit, as all of these; `schedule` may
/// then be changed.
void schedule_window(Schedule& schedule, const BlockRV& block, const Target& target);

/// Whether the block is a guarded copy into an intermediate that one reduction reads: the padding
/// of a window.
bool is_padding(const Schedule& schedule, const BlockRV& block);

/// Computes the padding a few rows at a time where the (scheduled) reduction reads them, so that
/// they stay in the nearest cache; not where much of it would be computed again and again.
void place_padding(Schedule& schedule, const BlockRV& padding, const Target& target);

}  // namespace tenon::tir
