// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/bounds.h"

#include <algorithm>
#include <set>

namespace tenon::memory {

namespace {
struct Event {
  int64_t step;
  bool starts;
  int64_t bytes, padding;
};
}  // namespace

std::vector<Load> load_profile(const Problem& problem, int pool) {
  int64_t granularity = kMaxAlignment;
  for (const Allocation& b : problem.buffers)
    if (b.pool == pool && b.bytes > 0) granularity = std::min(granularity, b.alignment);

  std::vector<Event> events;
  for (const Allocation& b : problem.buffers) {
    if (b.pool != pool || b.bytes == 0) continue;
    const int64_t rounded = align_up(b.bytes, granularity);
    events.push_back({b.lower, true, rounded, rounded - b.bytes});
    events.push_back({b.upper, false, rounded, rounded - b.bytes});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.step < b.step; });

  std::vector<Load> profile;
  std::multiset<int64_t> paddings;  // of the buffers alive; only where there are any
  int64_t bytes = 0;
  for (size_t i = 0; i < events.size();) {
    const int64_t step = events[i].step;
    for (; i < events.size() && events[i].step == step; ++i) {
      const Event& e = events[i];
      bytes += e.starts ? e.bytes : -e.bytes;
      if (e.padding == 0) continue;
      if (e.starts) {
        paddings.insert(e.padding);
      } else if (const auto it = paddings.find(e.padding); it != paddings.end()) {
        paddings.erase(it);
      }
    }
    const int64_t top = paddings.empty() ? 0 : *paddings.rbegin();
    if (profile.empty() || profile.back().bytes != bytes - top)
      profile.push_back({step, bytes - top});
  }
  return profile;
}

Load lower_bound(const Problem& problem, int pool) {
  Load best;
  for (const Load& load : load_profile(problem, pool))
    if (load.bytes > best.bytes) best = load;
  return best;
}

}  // namespace tenon::memory
