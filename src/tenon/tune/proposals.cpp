// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/proposals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tenon/support/interrupt.h"
#include "tenon/support/remarks.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tune/job.h"

namespace tenon::tune {

using Json = nlohmann::ordered_json;

namespace {

// Tiles that are scheduled to ask the model for their time, of those nearest to the one at hand.
constexpr size_t kNearestTiles = 32;
constexpr int64_t kMostAccumulators = 40, kMostColumns = 28, kMostRows = 8, kMostVectors = 8;

constexpr int64_t kUnrolled[] = {0, 16, 32, 64, 128, 256, 512};
constexpr int64_t kTaskCounts[] = {2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 28, 32};
constexpr int64_t kChunks[] = {1, 2, 3, 4, 6, 8};
constexpr int64_t kBlockTiles[] = {4, 8, 12, 16, 24, 32, 48, 64, 96};

int64_t last_extent(const Json& axes, size_t from_end = 1) {
  if (axes.size() < from_end) return 1;
  const Json& extent = axes[axes.size() - from_end]["extent"];
  return extent.is_null() ? 0 : extent.get<int64_t>();
}

struct Change {
  Move move;
  Json plan;
};

/// Changes of one nest of a plan; what the model follows with is left out.
class NestChanges {
 public:
  NestChanges(const Json& plan, size_t block, size_t nest, std::vector<Change>& out)
      : plan_(plan), block_(block), nest_(nest), out_(out) {}

  void all() {
    if (nest()["algorithm"] == "dots") return sums_in_lanes();
    tiles();
    for (const int64_t fmas : kUnrolled) set(Move::kUnrolling, "unrolled_fmas", fmas);
    tasks();
    set(Move::kPrefetches, "prefetches", !nest()["prefetches"].get<bool>());
    for (const char* role : {"n", "m", "batch", "k"}) orders(role);
    const int64_t lanes = nest()["lanes"].get<int64_t>();
    for (const int64_t fewer : {lanes / 2, lanes / 4})
      if (fewer >= 4) alone(Move::kLanes, "lanes", fewer);
    alone(Move::kRows, "joins_rows", !nest()["joins_rows"].get<bool>());
  }

 private:
  const Json& nest() const { return plan_[block_]["nests"][nest_]; }

  void set(Move move, const char* field, const Json& value) {
    if (nest()[field] == value) return;
    Json changed = plan_;
    changed[block_]["nests"][nest_][field] = value;
    out_.push_back({move, std::move(changed)});
  }
  // Other fields follow from it.
  void alone(Move move, const char* field, const Json& value) {
    Json changed = plan_;
    for (Json& each : changed[block_]["nests"]) each = Json::object();
    changed[block_]["nests"][nest_][field] = value;
    out_.push_back({move, std::move(changed)});
  }

  // Instead of dot products. Other columns than a power of two would be several nests.
  void sums_in_lanes() {
    const int64_t columns = nest()["lane"]["extent"].get<int64_t>();
    if (std::has_single_bit(static_cast<uint64_t>(columns)))
      alone(Move::kAlgorithm, "algorithm", "contraction");
  }

  void tiles() {
    const Json& m = nest()["m"];
    const Json& now = nest()["tile"];
    const auto of = [&](const char* name) { return now[name].get<int64_t>(); };
    const bool has_rows = m.size() >= 2 && !nest()["joins_rows"].get<bool>();
    const int64_t rows = has_rows ? std::min(last_extent(m, 2), kMostRows) : 1;
    const int64_t width = m.empty() ? 1 : last_extent(m);
    const int64_t columns = std::min(width == 0 ? kMostColumns : width, kMostColumns);
    struct Near {
      double distance;
      int64_t rows, columns, vectors;
      auto operator<=>(const Near&) const = default;
    };
    std::vector<Near> near;
    for (int64_t r = 1; r <= std::max<int64_t>(rows, 1); ++r)
      for (int64_t c = 1; c <= columns; ++c)
        for (int64_t v = 1; v <= kMostVectors; ++v) {
          if (r * c * v > kMostAccumulators || (width == 0 && c > 1 && c % 4 != 0)) continue;
          const auto far = [](int64_t a, int64_t b) {
            return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
          };
          near.push_back({far(r, of("rows")) + far(c, of("columns")) + far(v, of("vectors")) +
                              far(r * c * v, of("rows") * of("columns") * of("vectors")),
                          r, c, v});
        }
    std::sort(near.begin(), near.end());
    if (near.size() > kNearestTiles) near.resize(kNearestTiles);
    for (const Near& each : near) {
      const Json tile = {{"rows", each.rows}, {"columns", each.columns}, {"vectors", each.vectors}};
      if (tile == now) continue;
      Json changed = plan_;
      Json& nest = changed[block_]["nests"][nest_];
      nest["tile"] = tile;
      nest.erase("tasks");  // their number follows from the tile
      nest.erase("prefetches");
      out_.push_back({Move::kTile, std::move(changed)});
    }
  }

  void tasks() {
    set(Move::kTasks, "tasks", nullptr);
    for (const char* of : {"rows", "columns"})
      for (const int64_t count : kTaskCounts)
        for (const bool is_outside : {true, false})
          set(Move::kTasks, "tasks", {{"of", of}, {"count", count}, {"outside", is_outside}});
  }

  void orders(const char* role) {
    const Json& axes = nest()[role];
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      Json changed = axes;
      std::swap(changed[i], changed[i + 1]);
      set(Move::kOrder, role, changed);
    }
  }

  const Json& plan_;
  size_t block_, nest_;
  std::vector<Change>& out_;
};

void change_algorithm(const Json& plan, size_t block, std::vector<Change>& out) {
  using Algorithm = tir::BlockPlan::Algorithm;
  const auto set = [&](const std::string& name, const Json& form) {
    Json changed = plan;
    Json& entry = changed[block];
    entry = {{"block", entry["block"]}, {"algorithm", name}};
    if (!form.is_null()) entry["winograd"] = form;
    if (entry["algorithm"] == plan[block]["algorithm"] &&
        entry.value("winograd", Json()) == plan[block].value("winograd", Json()))
      return;
    // Whether a padding suits depends on the tiles that read it.
    Json kept = Json::array();
    for (const Json& each : changed)
      if (each["algorithm"] != "padding") kept.push_back(each);
    out.push_back({Move::kAlgorithm, std::move(kept)});
  };
  for (uint8_t i = 0; i <= static_cast<uint8_t>(Algorithm::kLoops); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const std::string name = tir::name_of(algorithm);
    if (algorithm != Algorithm::kWinograd) {
      set(name, nullptr);
      continue;
    }
    for (const int64_t tile : {6, 4, 2})
      for (const int64_t count : kBlockTiles)
        for (const int64_t tasks : {1, 2})
          set(name, {{"tile", tile}, {"block_tiles", count}, {"tasks", tasks}});
  }
}

// The model chooses the rest, as blocks of other chunks are others.
void change_chunks(const Json& plan, size_t block, std::vector<Change>& out) {
  if (plan[block]["algorithm"] != "tiles") return;
  for (const int64_t chunks : kChunks) {
    if (plan[block].value("chunks", int64_t{1}) == chunks) continue;
    Json entry = {{"block", plan[block]["block"]}, {"algorithm", "tiles"}};
    if (chunks > 1) entry["chunks"] = chunks;
    out.push_back({Move::kChunks, Json::array({std::move(entry)})});
  }
}

// The first block says it for the whole kernel.
void change_threads(const Json& plan, std::vector<Change>& out) {
  Json changed = plan;
  if (changed[0].contains("serial"))
    changed[0].erase("serial");
  else
    changed[0]["serial"] = true;
  out.push_back({Move::kSerial, std::move(changed)});
}

std::vector<Change> changes_of(const Json& plan, int64_t threads) {
  std::vector<Change> out;
  if (threads > 1) change_threads(plan, out);
  for (size_t block = 0; block < plan.size(); ++block) {
    for (size_t nest = 0; nest < plan[block]["nests"].size(); ++nest)
      NestChanges(plan, block, nest, out).all();
    change_algorithm(plan, block, out);
    change_chunks(plan, block, out);
  }
  return out;
}

}  // namespace

Proposer::Proposer(IRModule module, std::string hash, int64_t threads)
    : module_(std::move(module)), hash_(std::move(hash)), threads_(threads) {
  const auto scheduled = schedule("");
  default_ = scheduled ? scheduled->plan : "";
}

std::optional<Proposer::Scheduled> Proposer::schedule(const std::string& plan) {
  const auto [entry, is_new] = known_.emplace(plan, std::nullopt);
  if (!is_new) return entry->second;
  check_interrupt();
  tir::GivenPlans given;
  const RemarkScope scope;
  try {
    given.plans = plans_of(plan, hash_, "proposal");
    for (tir::GivenPlan& each : given.plans) each.is_tuned = false;
    tir::schedule_by_plans(module_, given);
  } catch (const CompileError& error) {
    if (error.first().code.id != kBadPlan.id) throw;
    return std::nullopt;
  }
  std::vector<std::string> choices;
  double predicted = 0;
  for (const Remark& remark : scope.remarks()) {
    if (remark.verdict == "unmatched") return std::nullopt;
    if (remark.choice.empty()) continue;
    choices.push_back(remark.choice);
    for (const Json& nest : Json::parse(remark.choice)["nests"])
      if (!nest["predicted_us"].is_null()) predicted += nest["predicted_us"].get<double>();
  }
  entry->second = Scheduled{canonical_plan(choices), predicted};
  return entry->second;
}

void Proposer::add(std::vector<Proposal>& out, Move move, const std::string& plan) {
  if (const auto scheduled = schedule(plan))
    out.push_back({move, scheduled->plan, scheduled->predicted_us});
}

std::vector<Proposal> Proposer::next_to(const std::string& plan) {
  if (plan.empty()) return {};
  std::vector<Proposal> all;
  for (const Change& change : changes_of(Json::parse(plan), threads_))
    add(all, change.move, change.plan.dump());
  std::map<Move, std::vector<Proposal>> kinds;
  for (Proposal& each : all) kinds[each.move].push_back(std::move(each));
  size_t most = 0;
  for (auto& [move, list] : kinds) {
    std::sort(list.begin(), list.end(), [](const Proposal& a, const Proposal& b) {
      return std::tie(a.predicted_us, a.plan) < std::tie(b.predicted_us, b.plan);
    });
    most = std::max(most, list.size());
  }
  std::vector<Proposal> out;
  std::set<std::string> seen = {plan};
  for (size_t i = 0; i < most; ++i)
    for (const auto& [move, list] : kinds)
      if (i < list.size() && seen.insert(list[i].plan).second) out.push_back(list[i]);
  return out;
}

}  // namespace tenon::tune
