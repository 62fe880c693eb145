// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/improve.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "tenon/support/random.h"

namespace tenon::memory {

/// What one move may lose, as a share of what the peak is above the target. Measured on
/// MiniMalloc's problems: 0.03 to 0.1 are alike, 0 and 0.25 are worse.
static constexpr double kGreatestSlack = 0.05;

/// Moves for each buffer without a better peak after which the search ends: a small problem whose
/// lower bound cannot be reached should not use up the work.
static constexpr int64_t kPatience = 500;

static void move_element(std::vector<int32_t>& order, int64_t from, int64_t to) {
  const auto begin = order.begin();
  if (from < to) {
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  } else {
    std::rotate(begin + to, begin + from, begin + from + 1);
  }
}

void improve(std::span<const Item> items, GapPacking& packer, int64_t target, Work& work,
             Packing& best) {
  const auto n = static_cast<int64_t>(items.size());
  if (n < 3) return;
  Random random{0x7e5};
  Packing current = best;
  std::vector<int32_t> order;
  std::vector<int64_t> offsets;
  const int64_t start = work.used, span = std::max<int64_t>(1, work.limit - start);
  int64_t rounds_left = n * kPatience;
  while (work.is_left() && best.peak > target && rounds_left-- > 0) {
    work.used += n / 8 + 32;
    order = current.order;
    if (random.below(2) == 0) {
      // A buffer at the top goes earlier.
      int64_t seen = 0, chosen = 0;
      for (int64_t k = 0; k < n; ++k) {
        const int32_t i = order[k];
        if (current.offsets[i] + items[i].bytes == current.peak && random.below(++seen) == 0)
          chosen = k;
      }
      move_element(order, chosen, random.below(chosen + 1));
    } else if (random.below(2) == 0) {
      move_element(order, random.below(n), random.below(n));
    } else {
      std::swap(order[random.below(n)], order[random.below(n)]);
    }
    // What may be lost on the way shrinks as the work is used up: a threshold in place of a
    // temperature, so that most bad orders are given up before they are packed to the end.
    const double left = 1.0 - static_cast<double>(work.used - start) / static_cast<double>(span);
    const double share = std::max(0.0, left) * static_cast<double>(random.below(1024)) / 1024.0;
    const auto slack =
        static_cast<int64_t>(static_cast<double>(current.peak - target) * kGreatestSlack * share);
    const auto peak = packer.run(order, current.choice, current.peak + slack, work, offsets);
    if (!peak) continue;
    std::swap(current.order, order);
    std::swap(current.offsets, offsets);
    current.peak = *peak;
    if (current.peak >= best.peak) continue;
    best = current;
    rounds_left = n * kPatience;
  }
}

static void sort_by_offset(std::vector<int32_t>& order, const std::vector<int64_t>& offsets,
                           std::span<const Item> items) {
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple(offsets[a], items[a].lower, a) < std::tuple(offsets[b], items[b].lower, b);
  });
}

std::vector<int32_t> order_of(const std::vector<int64_t>& offsets, std::span<const Item> items) {
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  sort_by_offset(order, offsets, items);
  return order;
}

namespace {

class Windows {
 public:
  Windows(std::span<const Item> items, Random& random) : items_(items), random_(random) {
    by_start_.resize(items.size());
    std::iota(by_start_.begin(), by_start_.end(), 0);
    std::sort(by_start_.begin(), by_start_.end(), [&](int32_t a, int32_t b) {
      return std::pair(items[a].lower, a) < std::pair(items[b].lower, b);
    });
    rank_.resize(items.size());
    for (size_t k = 0; k < by_start_.size(); ++k) rank_[by_start_[k]] = static_cast<int64_t>(k);
  }

  /// `centre` and others that start near it; mostly without those that live on much longer.
  std::vector<int32_t> around(int32_t centre) {
    const auto n = static_cast<int64_t>(items_.size());
    const int64_t reach = 1 + random_.below(kReach);
    const int64_t first = std::max<int64_t>(0, rank_[centre] - reach);
    const int64_t last = std::min(n - 1, rank_[centre] + reach);
    const int32_t end = items_[by_start_[last]].upper;
    const bool takes_all = random_.below(4) == 0;
    std::vector<int32_t> window;
    for (int64_t k = first; k <= last; ++k) {
      const int32_t i = by_start_[k];
      if (takes_all || i == centre || items_[i].upper <= end) window.push_back(i);
    }
    return window;
  }

  /// The window in an order to place it in, `centre` not later than where its offset has it.
  void arrange(std::vector<int32_t>& window, int32_t centre, const std::vector<int64_t>& offsets) {
    const auto n = static_cast<int64_t>(window.size());
    sort_by_offset(window, offsets, items_);
    switch (random_.below(4)) {
      case 0:
        for (int64_t k = n - 1; k > 0; --k) std::swap(window[k], window[random_.below(k + 1)]);
        return;
      case 1:
        std::sort(window.begin(), window.end(), [&](int32_t a, int32_t b) {
          return std::tuple(-items_[a].bytes, items_[a].lower, a) <
                 std::tuple(-items_[b].bytes, items_[b].lower, b);
        });
        break;
      default: break;
    }
    const auto at = std::find(window.begin(), window.end(), centre) - window.begin();
    move_element(window, at, random_.below(at + 1));
    for (int64_t k = random_.below(4); k > 0; --k)
      move_element(window, random_.below(n), random_.below(n));
  }

 private:
  static constexpr int64_t kReach = 32;  // buffers that start before and after

  std::span<const Item> items_;
  Random& random_;
  std::vector<int32_t> by_start_;
  std::vector<int64_t> rank_;  // in by_start_
};

}  // namespace

void improve_by_windows(std::span<const Item> items, GapPacking& packer, int64_t target, Work& work,
                        Packing& packing) {
  const auto n = static_cast<int64_t>(items.size());
  if (n < 3) return;
  Random random{0x7e5};
  Windows windows(items, random);
  std::vector<int64_t>& offsets = packing.offsets;
  std::vector<int64_t> before;
  int64_t rounds_left = n * kPatience;
  while (work.is_left() && packing.peak > target && rounds_left-- > 0) {
    work.used += n / 8 + 32;
    int64_t seen = 0;
    int32_t centre = 0;
    for (int32_t i = 0; i < n; ++i)
      if (offsets[i] + items[i].bytes == packing.peak && random.below(++seen) == 0) centre = i;
    std::vector<int32_t> window = windows.around(centre);
    work.used += static_cast<int64_t>(window.size()) * 8;
    windows.arrange(window, centre, offsets);
    before.clear();
    for (const int32_t i : window) before.push_back(offsets[i]);
    for (const int32_t i : window) offsets[i] = -1;
    // As high as before may open a way.
    const int64_t limit = packing.peak - random.below(2);
    const GapChoice choice = random.below(2) == 0 ? GapChoice::kLowest : GapChoice::kSmallest;
    if (!packer.repack(window, choice, limit, work, offsets)) {
      for (size_t k = 0; k < window.size(); ++k) offsets[window[k]] = before[k];
      continue;
    }
    int64_t peak = 0, count = 0;
    for (int32_t i = 0; i < n; ++i) {
      const int64_t end = offsets[i] + items[i].bytes;
      count = end > peak ? 1 : count + (end == peak);
      peak = std::max(peak, end);
    }
    if (peak < packing.peak || count < seen) rounds_left = n * kPatience;
    packing.peak = peak;
  }
  packing.order = order_of(offsets, items);
  packing.choice = GapChoice::kLowest;
}

}  // namespace tenon::memory
