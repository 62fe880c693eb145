// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/orders.h"

#include <algorithm>
#include <numeric>

namespace tenon::memory {

static double by_size(const ItemRank& r) { return static_cast<double>(r.item.bytes); }
static double by_life(const ItemRank& r) { return static_cast<double>(r.life); }
static double by_area(const ItemRank& r) { return by_size(r) * by_life(r); }
static double by_load(const ItemRank& r) { return static_cast<double>(r.max_load); }
static double by_load_and_size(const ItemRank& r) { return by_load(r) * by_size(r); }
static double by_load_and_area(const ItemRank& r) { return by_load(r) * by_area(r); }
static double by_first_start(const ItemRank& r) { return -static_cast<double>(r.item.lower); }
static double by_last_end(const ItemRank& r) { return static_cast<double>(r.item.upper); }

static constexpr Order kOrders[] = {
    {"size", by_size, by_life},
    {"size x life", by_area, by_size},
    {"contention", by_load, by_size},
    {"contention, then size x life", by_load, by_area},
    {"contention x size", by_load_and_size, by_life},
    {"contention x size x life", by_load_and_area, by_size},
    {"life", by_life, by_size},
    {"first start", by_first_start, by_size},
    {"first start, then life", by_first_start, by_life},
    {"last end", by_last_end, by_size},
};

std::span<const Order> all_orders() { return kOrders; }

std::vector<ItemRank> rank_items(std::span<const Item> items) {
  int32_t steps = 0;
  for (const Item& item : items) steps = std::max(steps, item.upper);
  // Leaves [steps, 2 steps) hold the load of each step, an inner node the greatest of its leaves.
  std::vector<int64_t> tree(2 * static_cast<size_t>(steps) + 1, 0);
  for (const Item& item : items) {
    tree[steps + item.lower] += item.bytes;
    if (item.upper < steps) tree[steps + item.upper] -= item.bytes;
  }
  for (int32_t t = 1; t < steps; ++t) tree[steps + t] += tree[steps + t - 1];
  for (int32_t node = steps - 1; node > 0; --node)
    tree[node] = std::max(tree[2 * node], tree[2 * node + 1]);

  std::vector<ItemRank> ranks;
  ranks.reserve(items.size());
  for (const Item& item : items) {
    int64_t greatest = 0;
    for (int32_t l = item.lower + steps, r = item.upper + steps; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) greatest = std::max(greatest, tree[l++]);
      if (r % 2 == 1) greatest = std::max(greatest, tree[--r]);
    }
    ranks.push_back({item, item.upper - item.lower, greatest});
  }
  return ranks;
}

std::vector<int32_t> sorted_by(const Order& order, std::span<const ItemRank> ranks) {
  struct Keyed {
    double key, tie;
    int32_t index;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(ranks.size());
  for (const ItemRank& rank : ranks)
    keyed.push_back({order.key(rank), order.tie(rank), static_cast<int32_t>(keyed.size())});
  std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return a.key > b.key;
    if (a.tie != b.tie) return a.tie > b.tie;
    return a.index < b.index;
  });
  std::vector<int32_t> indices;
  indices.reserve(keyed.size());
  for (const Keyed& k : keyed) indices.push_back(k.index);
  return indices;
}

}  // namespace tenon::memory
