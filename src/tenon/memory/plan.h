// SPDX-License-Identifier: Apache-2.0
// Static memory planning: an offset for each buffer, so that buffers alive at once never overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/memory/problem.h"

namespace tenon::memory {

/// What a plan makes of one pool.
struct PoolPlan {
  int64_t peak = 0;         // bytes used: the greatest end of a buffer
  int64_t lower_bound = 0;  // bytes that no plan can go below (bounds.h)
  std::string method;       // what found it: "first fit by size", ...
  int64_t work = 0;         // units spent on it
};

struct Plan {
  std::vector<int64_t> offsets;  // bytes, for each buffer of the problem
  std::vector<PoolPlan> pools;   // for each pool of the problem
};

/// Units of work that a processor of 2020 does in about a second: how a limit in seconds becomes
/// one that gives the same plan on every machine.
inline constexpr int64_t kWorkPerSecond = 1'000'000'000;

struct PlanOptions {
  /// For all pools together. One unit is about one placed buffer looked at. Allocation in order of
  /// time is always tried, whatever the limit.
  int64_t work_limit = kWorkPerSecond / 2;
};

/// Places every buffer: a portfolio of greedy packings over offsets with gaps (first fit and
/// smallest gap by several orders, best fit in order of time), then the best order improved by
/// local search while work is left and the lower bound is not reached. The same problem and options
/// give the same plan everywhere. The result has passed check_plan.
///
/// \throws CompileError kBadProblem (see validate); kDoesNotFit where a pool's capacity is less
/// than the peak: it names the step at which most bytes are alive and the largest buffers there.
/// Source of the greedy packings: Pisarchyk and Lee, arXiv:2001.03288.
Plan plan(const Problem& problem, const PlanOptions& options = {});

/// plan(), whatever the capacities of the pools.
Plan plan_without_limits(const Problem& problem, const PlanOptions& options = {});
/// \throws CompileError (kDoesNotFit) where a pool's peak is above its capacity; `otherwise` goes
/// on with what it needs: " or 4096 in all".
void require_fit(const Problem& problem, const Plan& plan, std::string_view otherwise = {});
/// The buffers of a pool that are alive at a step, at most `count`, largest first.
std::vector<const Allocation*> largest_alive(const Problem& problem, int pool, int64_t step,
                                             size_t count);

/// What is wrong with the plan, the first thing only, naming the buffers and the step: two that
/// live at once overlap, an offset is negative or not aligned, a buffer ends beyond its pool's
/// stated peak or capacity, a number of offsets that is not the number of buffers. Nothing where
/// the plan is legal. Shares no code with the planner. The problem must be valid. O(n log n).
std::optional<std::string> check_plan(const Problem& problem, const Plan& plan);

}  // namespace tenon::memory
