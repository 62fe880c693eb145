// SPDX-License-Identifier: Apache-2.0
// Greedy packings of the buffers of one pool. Internal to the planner; see plan.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::memory {

/// A buffer as the packings see it; steps are ranks of the problem's steps.
struct Item {
  int64_t bytes, alignment;
  int32_t lower, upper;
};

/// Work done and allowed; see PlanOptions.
struct Work {
  int64_t used = 0, limit = 0;
  bool is_left() const { return used < limit; }
};

enum class GapChoice : uint8_t { kLowest, kSmallest };

/// Places items one after another in a gap between those already placed that live at the same time.
class GapPacking {
 public:
  GapPacking(std::span<const Item> items, Work& work);

  /// Places the items in `order`, and writes their offsets. Gives the peak; nothing where an item
  /// would end above `limit`, or no work is left.
  std::optional<int64_t> run(std::span<const int32_t> order, GapChoice choice, int64_t limit,
                             Work& work, std::vector<int64_t>& offsets);

  /// The same for items that leave a packing: those of `order` have offset -1, the others stay
  /// where they are. Gives the greatest end of those that it places.
  std::optional<int64_t> repack(std::span<const int32_t> order, GapChoice choice, int64_t limit,
                                Work& work, std::vector<int64_t>& offsets);

 private:
  /// What is placed, in runs of rising offset, each with a summary by which most are passed over.
  struct Chunk {
    static constexpr int kSize = 128;
    int count;
    int32_t first_lower, last_upper;  // of all items in it
    int64_t greatest_end;
    int32_t lower[kSize], upper[kSize];
    int64_t offset[kSize], end[kSize];
  };
  struct Placed {
    int64_t offset, end;
  };

  void find_neighbours(int64_t pairs);
  int64_t find_by_scan(const Item& item, GapChoice choice, Work& work) const;
  int64_t find_by_neighbours(int32_t i, GapChoice choice, Work& work,
                             const std::vector<int64_t>& offsets);
  void insert(const Item& item, int64_t offset);

  std::span<const Item> items_;
  // Few conflicts: the items that each item conflicts with. Many: the chunks.
  bool by_neighbours_ = false;
  std::vector<int64_t> first_neighbour_;
  std::vector<int32_t> neighbours_;
  std::vector<Placed> found_;
  std::vector<Chunk> chunks_;
  std::vector<int32_t> chunk_order_;  // by offset
  size_t chunks_used_ = 0;
};

/// Allocates and frees in the order of time, in the smallest gap that is free at that moment; items
/// that start at one step go largest first. O(n log n). Gives the peak.
int64_t best_fit_in_time_order(std::span<const Item> items, Work& work,
                               std::vector<int64_t>& offsets);

}  // namespace tenon::memory
