#include "tenon/memory/improve.h"

#include <algorithm>

namespace tenon::memory {

/// What one move may lose, as a share of what the peak is above the target. Measured on
/// MiniMalloc's problems: 0.03 to 0.1 are alike, 0 and 0.25 are worse.
static constexpr double kGreatestSlack = 0.05;

/// Moves for each buffer without a better peak after which the search ends: a small problem whose
/// lower bound cannot be reached should not use up the work.
static constexpr int64_t kPatience = 500;

namespace {
/// SplitMix64: std's distributions differ between libraries, a plan must not.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
};
}  // namespace

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

}  // namespace tenon::memory
