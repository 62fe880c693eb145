// SPDX-License-Identifier: Apache-2.0
// The portfolio: every greedy packing in turn, then local search from the best of them.
#include "tenon/memory/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "tenon/memory/bounds.h"
#include "tenon/memory/improve.h"
#include "tenon/memory/orders.h"
#include "tenon/support/check.h"
#include "tenon/support/diagnostics.h"

namespace tenon::memory {

static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

namespace {
/// The buffers of one pool that take any bytes, as the packings see them.
struct PoolItems {
  std::vector<size_t> buffers;  // index in the problem of each item
  std::vector<Item> items;
};
}  // namespace

static PoolItems items_of(const Problem& problem, int pool) {
  PoolItems result;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Allocation& b = problem.buffers[i];
    if (b.pool != pool || b.bytes == 0) continue;
    result.buffers.push_back(i);
    steps.push_back(b.lower);
    steps.push_back(b.upper);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  const auto rank = [&](int64_t step) {
    return static_cast<int32_t>(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin());
  };
  for (const size_t i : result.buffers) {
    const Allocation& b = problem.buffers[i];
    result.items.push_back({b.bytes, b.alignment, rank(b.lower), rank(b.upper)});
  }
  return result;
}

/// The same items with time running backwards.
static std::vector<Item> mirrored(std::span<const Item> items) {
  int32_t last = 0;
  for (const Item& item : items) last = std::max(last, item.upper);
  std::vector<Item> result(items.begin(), items.end());
  for (Item& item : result) {
    const int32_t lower = item.lower;
    item.lower = last - item.upper;
    item.upper = last - lower;
  }
  return result;
}

/// The best packing of `items`; `target` is a peak that need not be improved.
static Packing pack(std::span<const Item> items, int64_t target, Work& work, std::string& method) {
  Packing best;
  best.peak = kNoLimit;
  std::vector<int64_t> offsets;
  const auto offer = [&](int64_t peak, std::string name) {
    if (peak >= best.peak) return;
    best.peak = peak;
    best.offsets = offsets;
    best.order.clear();
    best.choice = GapChoice::kLowest;
    method = std::move(name);
  };
  int64_t peak = best_fit_in_time_order(items, work, offsets);
  offer(peak, "best fit in order of time");
  if (best.peak > target) {
    peak = best_fit_in_time_order(mirrored(items), work, offsets);
    offer(peak, "best fit in reverse order of time");
  }
  if (best.peak <= target || !work.is_left()) return best;

  GapPacking packer(items, work);
  const std::vector<ItemRank> ranks = rank_items(items);
  // A search from another start may get further than from the best one.
  constexpr size_t kStarts = 4;
  std::vector<Packing> starts;
  const auto keep = [&](Packing start) {
    const auto at =
        std::upper_bound(starts.begin(), starts.end(), start.peak,
                         [](int64_t found, const Packing& other) { return found < other.peak; });
    starts.insert(at, std::move(start));
    if (starts.size() > kStarts) starts.pop_back();
  };
  if (best.order.empty()) best.order = order_of(best.offsets, items);
  keep(best);
  const int64_t few = (work.limit - work.used) / 8;
  for (const GapChoice choice : {GapChoice::kLowest, GapChoice::kSmallest}) {
    for (const Order& order : all_orders()) {
      if (best.peak <= target || !work.is_left()) return best;
      std::vector<int32_t> sorted = sorted_by(order, ranks);
      const int64_t limit = work.used < few ? best.peak + best.peak / 4 : best.peak - 1;
      const auto found = packer.run(sorted, choice, limit, work, offsets);
      if (!found) continue;
      const bool is_best = *found < best.peak;
      offer(*found,
            fmt::format("{} by {}", choice == GapChoice::kLowest ? "first fit" : "smallest gap",
                        order.name));
      keep({sorted, choice, *found, offsets});
      if (!is_best) continue;
      best.order = std::move(sorted);
      best.choice = choice;
    }
  }
  const int64_t before = best.peak;
  // Three eighths of the work by windows: on MiniMalloc's problems better than none (by 5 % in the
  // middle), a half or seven eighths.
  const int64_t share = (work.limit - work.used) * 3 / (8 * static_cast<int64_t>(kStarts));
  for (Packing& start : starts) {
    if (best.peak <= target || !work.is_left()) break;
    Work part{work.used, work.used + share};
    improve_by_windows(items, packer, target, part, start);
    work.used = part.used;
    if (start.peak < best.peak) best = std::move(start);
  }
  improve(items, packer, target, work, best);
  if (best.peak < before) method += ", improved by local search";
  return best;
}

std::vector<const Allocation*> largest_alive(const Problem& problem, int pool, int64_t step,
                                             size_t count) {
  std::vector<const Allocation*> alive;
  for (const Allocation& b : problem.buffers)
    if (b.pool == pool && b.lower <= step && step < b.upper) alive.push_back(&b);
  count = std::min(count, alive.size());
  std::partial_sort(alive.begin(), alive.begin() + static_cast<std::ptrdiff_t>(count), alive.end(),
                    [](const Allocation* a, const Allocation* b) {
                      return std::pair(-a->bytes, a) < std::pair(-b->bytes, b);
                    });
  alive.resize(count);
  return alive;
}

/// ``most bytes are alive at step 7: 128, the largest `a` (64 bytes), `b` (32 bytes)``.
static std::string most_alive(const Problem& problem, int pool, Load bound) {
  constexpr size_t kMostNamed = 5;
  std::string text =
      fmt::format("most bytes are alive at step {}: {}, the largest ", bound.step, bound.bytes);
  const auto all =
      std::count_if(problem.buffers.begin(), problem.buffers.end(), [&](const Allocation& b) {
        return b.pool == pool && b.lower <= bound.step && bound.step < b.upper;
      });
  const std::vector<const Allocation*> named = largest_alive(problem, pool, bound.step, kMostNamed);
  for (size_t i = 0; i < named.size(); ++i)
    text += fmt::format("{}`{}` ({} bytes)", i > 0 ? ", " : "", named[i]->name, named[i]->bytes);
  const auto more = static_cast<size_t>(all) - named.size();
  return more > 0 ? text + fmt::format(" and {} more", more) : text;
}

void require_fit(const Problem& problem, const Plan& plan, std::string_view otherwise) {
  for (size_t p = 0; p < problem.pools.size(); ++p) {
    const Pool& pool = problem.pools[p];
    const PoolPlan& planned = plan.pools[p];
    if (!pool.capacity || planned.peak <= *pool.capacity) continue;
    const auto index = static_cast<int>(p);
    const Load bound = lower_bound(problem, index);
    const bool is_impossible = bound.bytes > *pool.capacity;
    constexpr size_t kMostNotes = 3;
    const auto largest = largest_alive(problem, index, bound.step, kMostNotes);
    CompileError error(kDoesNotFit, largest.empty() ? Origin() : largest[0]->origin,
                       "pool `{}` has {} bytes, and {}{}; {}", pool.name, *pool.capacity,
                       is_impossible ? fmt::format("no plan needs less than {}", bound.bytes)
                                     : fmt::format("the best plan found needs {}", planned.peak),
                       otherwise, most_alive(problem, index, bound));
    for (const Allocation* buffer : largest)
      if (buffer->origin)
        error.note(buffer->origin, "`{}`, {} bytes, is of this", buffer->name, buffer->bytes);
    throw error;
  }
}

Plan plan(const Problem& problem, const PlanOptions& options) {
  Plan result = plan_without_limits(problem, options);
  require_fit(problem, result);
  const auto fault = check_plan(problem, result);
  check(!fault, fault ? "the memory planner made an illegal plan: " + *fault : "");
  return result;
}

Plan plan_without_limits(const Problem& problem, const PlanOptions& options) {
  validate(problem);
  Plan result;
  result.offsets.assign(problem.buffers.size(), 0);
  Work work{0, options.work_limit};
  for (size_t p = 0; p < problem.pools.size(); ++p) {
    const auto index = static_cast<int>(p);
    const PoolItems pool = items_of(problem, index);
    const Load bound = lower_bound(problem, index);
    PoolPlan& planned = result.pools.emplace_back();
    planned.lower_bound = bound.bytes;
    if (pool.items.empty()) continue;
    const int64_t before = work.used;
    const Packing packing = pack(pool.items, bound.bytes, work, planned.method);
    planned.work = work.used - before;
    planned.peak = packing.peak;
    for (size_t i = 0; i < pool.items.size(); ++i)
      result.offsets[pool.buffers[i]] = packing.offsets[i];
  }
  return result;
}

}  // namespace tenon::memory
