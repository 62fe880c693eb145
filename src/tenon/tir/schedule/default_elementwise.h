// SPDX-License-Identifier: Apache-2.0
// Schedules of blocks that move elements to other places: transposes and changes of layout.
// Internal to the default schedule.
#pragma once

#include <optional>

#include "tenon/support/target.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

struct TransposeOptions {
  /// Neighbouring axes become one first; of symbolic extents it hides that accesses are linear.
  bool joins = true;
  /// This loop and what is around it stay as they are; no tasks are made.
  std::optional<LoopRV> inside = {};
};

/// A spatial block that reads along one axis and writes along another: squares of a vector's lanes
/// go through registers, so that memory is read and written in vectors.
/// \throws CompileError (kScheduleIllegal) where the block is none; `schedule` may then be changed.
void schedule_transpose(Schedule& schedule, const BlockRV& block, const Target& target,
                        const TransposeOptions& options = {});

/// Whether elements that lie next to each other in the result of a block do not in `buffer`, of which it
/// reads others that do.
bool transposes(const Block& block, const Ref<Buffer>& buffer);

}  // namespace tenon::tir
