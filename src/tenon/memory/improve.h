// Local search over the order of a greedy packing. Inside the planner; the interface is plan.h.
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

}  // namespace tenon::memory
