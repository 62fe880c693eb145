// SPDX-License-Identifier: Apache-2.0
// Columns of a product that fill no vector, as dot products: vectors lie along the reduction. Internal to
// the default schedule.
#pragma once

#include <optional>

#include "tenon/tir/schedule/tile_plan.h"

namespace tenon::tir {

/// A product before a few of its columns became a nest of their own: along a single column nothing moves.
struct AllColumns {
  Ref<Block> block;
  BlockAccesses accesses;
  size_t lane;  // the axis of the columns
};

/// The nest of a few columns, `block`, and of what becomes of them element by element, `epilogue`; the two have
/// the same axes. The operand without columns must be consecutive along the reduction; the other one is
/// copied where it is not.
/// \returns the plan that was applied; nothing where the nest does not suit, or a sum in each lane takes
/// less time. The schedule is unchanged then.
std::optional<TilePlan> schedule_dots(Schedule& schedule, const BlockRV& block,
                                      const BlockRV& epilogue, const AllColumns& all,
                                      const Target& target, bool is_serial);

}  // namespace tenon::tir
