// SPDX-License-Identifier: Apache-2.0
// Local search over the order of a greedy packing. Internal to the planner; see plan.h.
#pragma once

#include "tenon/memory/packing.h"

namespace tenon::memory {

/// A packing found: the order and the choice of gaps that give it, its peak and its offsets.
struct Packing {
  std::vector<int32_t> order;
  GapChoice choice = GapChoice::kLowest;
  int64_t peak = 0;
  std::vector<int64_t> offsets;
};

/// Moves buffers of the best order to other places while that does not raise the peak much, until
/// the peak is at most `target`, the work is used up, or nothing better is found for long. The same
/// input gives the same result.
void improve(std::span<const Item> items, GapPacking& packer, int64_t target, Work& work,
             Packing& best);

/// Takes the buffers of some window of time around one at the top out of a packing and places them
/// anew below the peak, window by window: what is done in one part of a long program stays when
/// another part is tried. `packing` keeps its choice of gaps; its order follows from its offsets.
void improve_by_windows(std::span<const Item> items, GapPacking& packer, int64_t target, Work& work,
                        Packing& packing);

/// The items by their offsets: packed in this order, each in the lowest gap, none goes higher.
std::vector<int32_t> order_of(const std::vector<int64_t>& offsets, std::span<const Item> items);

}  // namespace tenon::memory
