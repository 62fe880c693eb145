// SPDX-License-Identifier: Apache-2.0
// Checks a plan by a sweep over time that compares live neighbours in order of address.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "tenon/memory/plan.h"

namespace tenon::memory {

static std::optional<std::string> check_placement(const Problem& problem, const Plan& plan,
                                                  size_t i) {
  const Allocation& b = problem.buffers[i];
  const int64_t offset = plan.offsets[i];
  if (offset < 0) return fmt::format("buffer `{}` is at negative offset {}", b.name, offset);
  if (offset % b.alignment != 0)
    return fmt::format("buffer `{}` is at offset {}, which is no multiple of its alignment {}",
                       b.name, offset, b.alignment);
  int64_t end = 0;
  if (__builtin_add_overflow(offset, b.bytes, &end))
    return fmt::format("buffer `{}` is at offset {}, and its end overflows", b.name, offset);
  if (b.bytes == 0) return std::nullopt;
  const int64_t peak = plan.pools[b.pool].peak;
  if (end > peak)
    return fmt::format("buffer `{}` ends at {}, above the stated peak {} of pool `{}`", b.name, end,
                       peak, problem.pools[b.pool].name);
  return std::nullopt;
}

static std::optional<std::string> check_pool(const Problem& problem, const Plan& plan, int pool) {
  std::vector<size_t> starts, ends;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].pool == pool && problem.buffers[i].bytes > 0) starts.push_back(i);
  ends = starts;
  const auto& buffers = problem.buffers;
  std::sort(starts.begin(), starts.end(),
            [&](size_t a, size_t b) { return buffers[a].lower < buffers[b].lower; });
  std::sort(ends.begin(), ends.end(),
            [&](size_t a, size_t b) { return buffers[a].upper < buffers[b].upper; });

  std::map<int64_t, size_t> alive;  // by offset; disjoint, or we would have returned
  const auto overlap = [&](size_t a, size_t b) {
    const auto range = [&](size_t i) {
      return fmt::format("[{}, {})", plan.offsets[i], plan.offsets[i] + buffers[i].bytes);
    };
    return fmt::format("buffers `{}` at {} and `{}` at {} overlap, and both are alive at step {}",
                       buffers[a].name, range(a), buffers[b].name, range(b),
                       std::max(buffers[a].lower, buffers[b].lower));
  };
  size_t next_end = 0;
  for (const size_t i : starts) {
    for (; buffers[ends[next_end]].upper <= buffers[i].lower; ++next_end)
      alive.erase(plan.offsets[ends[next_end]]);
    const auto above = alive.lower_bound(plan.offsets[i]);
    if (above != alive.end() && above->first < plan.offsets[i] + buffers[i].bytes)
      return overlap(above->second, i);
    if (above != alive.begin()) {
      const auto [offset, below] = *std::prev(above);
      if (offset + buffers[below].bytes > plan.offsets[i]) return overlap(below, i);
    }
    alive.emplace_hint(above, plan.offsets[i], i);
  }
  return std::nullopt;
}

std::optional<std::string> check_plan(const Problem& problem, const Plan& plan) {
  if (plan.offsets.size() != problem.buffers.size())
    return fmt::format("{} offsets for {} buffers", plan.offsets.size(), problem.buffers.size());
  if (plan.pools.size() != problem.pools.size())
    return fmt::format("{} pools planned of {}", plan.pools.size(), problem.pools.size());
  for (size_t i = 0; i < plan.offsets.size(); ++i)
    if (auto fault = check_placement(problem, plan, i)) return fault;
  for (size_t p = 0; p < problem.pools.size(); ++p) {
    const Pool& pool = problem.pools[p];
    if (pool.capacity && plan.pools[p].peak > *pool.capacity)
      return fmt::format("pool `{}` is used up to {}, above its capacity {}", pool.name,
                         plan.pools[p].peak, *pool.capacity);
    if (auto fault = check_pool(problem, plan, static_cast<int>(p))) return fault;
  }
  return std::nullopt;
}

}  // namespace tenon::memory
