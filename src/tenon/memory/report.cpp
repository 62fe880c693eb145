// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tenon/memory/bounds.h"

namespace tenon::memory {

double peak_ratio(const PoolPlan& pool) {
  if (pool.lower_bound == 0) return 1.0;
  return static_cast<double>(pool.peak) / static_cast<double>(pool.lower_bound);
}

static std::vector<Load> highest_use(const Problem& problem, int pool, size_t count) {
  std::vector<Load> loads = load_profile(problem, pool);
  std::erase_if(loads, [](const Load& l) { return l.bytes == 0; });
  count = std::min(count, loads.size());
  std::partial_sort(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(count), loads.end(),
                    [](const Load& a, const Load& b) {
                      return std::pair(-a.bytes, a.step) < std::pair(-b.bytes, b.step);
                    });
  loads.resize(count);
  return loads;
}

/// The buffers of the pool for which `keep` holds, largest first, at most `count`.
template <typename F>
static std::vector<size_t> largest(const Problem& problem, int pool, size_t count, const F& keep) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Allocation& b = problem.buffers[i];
    if (b.pool == pool && b.bytes > 0 && keep(b)) indices.push_back(i);
  }
  count = std::min(count, indices.size());
  std::partial_sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count),
                    indices.end(), [&](size_t a, size_t b) {
                      return std::pair(-problem.buffers[a].bytes, a) <
                             std::pair(-problem.buffers[b].bytes, b);
                    });
  indices.resize(count);
  return indices;
}

namespace {

/// Time cut into columns of equal length, the last of which may be shorter.
struct Timeline {
  int64_t first, last;  // steps; last is the first one at which all is dead
  int columns;

  Timeline(const std::vector<Load>& profile, int wanted)
      : first(profile.front().step), last(profile.back().step) {
    const int64_t steps = last - first;
    columns = static_cast<int>(std::min<int64_t>(std::max(wanted, 1), steps));
  }
  /// The first step of a column. Steps are below 2^63: multiplied by columns they need more.
  int64_t begin(int column) const {
    const int64_t steps = last - first;
    return first + steps / columns * column + steps % columns * column / columns;
  }
};

}  // namespace

static std::string use_row(const Timeline& time, const std::vector<Load>& profile, int64_t peak) {
  static constexpr std::string_view kLevels = " .:-=+*%#";
  std::string row;
  size_t at = 0;  // the entry that holds at the first step of the column
  for (int c = 0; c < time.columns; ++c) {
    while (at + 1 < profile.size() && profile[at + 1].step <= time.begin(c)) ++at;
    int64_t bytes = profile[at].bytes;
    for (size_t i = at + 1; i < profile.size() && profile[i].step < time.begin(c + 1); ++i)
      bytes = std::max(bytes, profile[i].bytes);
    const double share =
        static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, peak));
    const auto top = static_cast<double>(kLevels.size() - 1);
    const size_t level = bytes == 0 ? 0 : std::max<size_t>(1, static_cast<size_t>(share * top));
    row += kLevels[std::min(level, kLevels.size() - 1)];
  }
  return row;
}

static std::string life_row(const Timeline& time, const Allocation& b) {
  std::string row;
  for (int c = 0; c < time.columns; ++c)
    row += b.lower < time.begin(c + 1) && time.begin(c) < b.upper ? '#' : ' ';
  return row;
}

static std::string fitted(const std::string& name, size_t width) {
  if (name.size() <= width) return name + std::string(width - name.size(), ' ');
  return name.substr(0, width - 2) + "..";
}

static std::string chart(const Problem& problem, const Plan& plan, int pool,
                         const ReportOptions& options) {
  const std::vector<Load> profile = load_profile(problem, pool);
  const Timeline time(profile, options.columns);
  constexpr size_t kNameWidth = 20;
  std::string text =
      fmt::format("  {} {:>14} {:>14}  steps {} to {}\n", fitted("buffer", kNameWidth), "offset",
                  "bytes", time.first, time.last - 1);
  text += fmt::format("  {} {:>14} {:>14} |{}|\n", fitted("(use, of the peak)", kNameWidth), "",
                      plan.pools[pool].peak, use_row(time, profile, plan.pools[pool].peak));
  std::vector<size_t> rows =
      largest(problem, pool, options.max_rows, [](const Allocation&) { return true; });
  std::sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
    return std::tuple(plan.offsets[a], problem.buffers[a].lower, a) <
           std::tuple(plan.offsets[b], problem.buffers[b].lower, b);
  });
  for (const size_t i : rows) {
    const Allocation& b = problem.buffers[i];
    text += fmt::format("  {} {:>14} {:>14} |{}|\n", fitted(b.name, kNameWidth), plan.offsets[i],
                        b.bytes, life_row(time, b));
  }
  const auto all = static_cast<size_t>(
      std::count_if(problem.buffers.begin(), problem.buffers.end(),
                    [&](const Allocation& b) { return b.pool == pool && b.bytes > 0; }));
  if (rows.size() < all) text += fmt::format("  and {} smaller buffers\n", all - rows.size());
  return text;
}

std::string plan_report(const Problem& problem, const Plan& plan, const ReportOptions& options) {
  std::string text;
  for (size_t p = 0; p < problem.pools.size(); ++p) {
    const auto pool = static_cast<int>(p);
    const PoolPlan& planned = plan.pools[p];
    const auto capacity = problem.pools[p].capacity;
    text +=
        fmt::format("pool {}: peak {} bytes, lower bound {} bytes (ratio {:.4f}){}\n",
                    problem.pools[p].name, planned.peak, planned.lower_bound, peak_ratio(planned),
                    capacity ? fmt::format(", capacity {} bytes", *capacity) : "");
    const std::vector<Load> steps = highest_use(problem, pool, options.max_steps);
    if (steps.empty()) continue;
    text += fmt::format("found by {}\n", planned.method);
    text += "steps of highest use:\n";
    for (const Load& load : steps) {
      text += fmt::format("  step {}: {} bytes:", load.step, load.bytes);
      const auto alive = largest(problem, pool, 4, [&](const Allocation& b) {
        return b.lower <= load.step && load.step < b.upper;
      });
      for (const size_t i : alive)
        text += fmt::format(" {} ({})", problem.buffers[i].name, problem.buffers[i].bytes);
      text += "\n";
    }
    text += chart(problem, plan, pool, options);
  }
  return text;
}

nlohmann::ordered_json plan_json(const Problem& problem, const Plan& plan,
                                 const ReportOptions& options) {
  using Json = nlohmann::ordered_json;
  Json pools = Json::array(), buffers = Json::array();
  for (size_t p = 0; p < problem.pools.size(); ++p) {
    const PoolPlan& planned = plan.pools[p];
    const auto capacity = problem.pools[p].capacity;
    Json steps = Json::array();
    for (const Load& load : highest_use(problem, static_cast<int>(p), options.max_steps))
      steps.push_back({{"step", load.step}, {"bytes", load.bytes}});
    pools.push_back({{"name", problem.pools[p].name},
                     {"capacity", capacity ? Json(*capacity) : Json()},
                     {"peak", planned.peak},
                     {"lower_bound", planned.lower_bound},
                     {"ratio", peak_ratio(planned)},
                     {"method", planned.method},
                     {"highest_use", std::move(steps)}});
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Allocation& b = problem.buffers[i];
    buffers.push_back({{"id", b.name},
                       {"pool", problem.pools[b.pool].name},
                       {"lower", b.lower},
                       {"upper", b.upper},
                       {"size", b.bytes},
                       {"alignment", b.alignment},
                       {"offset", plan.offsets[i]}});
  }
  return {{"pools", std::move(pools)}, {"buffers", std::move(buffers)}};
}

}  // namespace tenon::memory
