// SPDX-License-Identifier: Apache-2.0
// Orders in which the portfolio packs buffers. Internal to the planner; see plan.h.
#pragma once

#include <string_view>

#include "tenon/memory/packing.h"

namespace tenon::memory {

/// What a greedy packing ranks buffers by; the greatest comes first.
struct ItemRank {
  const Item& item;
  int64_t life;      // in steps
  int64_t max_load;  // the most bytes alive at a step of its life
};

struct Order {
  std::string_view name;
  double (*key)(const ItemRank&);
  double (*tie)(const ItemRank&);
};

/// The orders, the one that most often is best first.
std::span<const Order> all_orders();

/// Ranks of all items; `max_load` is found with a segment tree over the steps: O(n log n).
std::vector<ItemRank> rank_items(std::span<const Item> items);

std::vector<int32_t> sorted_by(const Order& order, std::span<const ItemRank> ranks);

}  // namespace tenon::memory
