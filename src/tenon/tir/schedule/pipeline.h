// SPDX-License-Identifier: Apache-2.0
// The schedule primitive that makes a software pipeline of a loop.
#pragma once

#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// Marks a loop as a software pipeline: statement i of its body is of stage stages[i], and stages
/// run at the same time on iterations one after the other (InjectSoftwarePipeline makes it so).
/// Buffers between stages get at least `versions` versions. Calls do what the blocks around them
/// state. The marks are annotations, so the trace replays them.
/// \throws CompileError (kScheduleIllegal) where the loop cannot be one.
void software_pipeline(Schedule& schedule, const LoopRV& loop, const std::vector<int64_t>& stages,
                       int64_t versions = 2);

}  // namespace tenon::tir
