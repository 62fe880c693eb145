// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/block_plan.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tenon/support/check.h"

namespace tenon::tir {

const char* name_of(BlockPlan::Algorithm algorithm) {
  using Algorithm = BlockPlan::Algorithm;
  switch (algorithm) {
    case Algorithm::kWinograd: return "winograd";
    case Algorithm::kTiles: return "tiles";
    case Algorithm::kRows: return "rows";
    case Algorithm::kRowReduction: return "row-reduction";
    case Algorithm::kPlanarWindow: return "planar-window";
    case Algorithm::kPadding: return "padding";
    case Algorithm::kTranspose: return "transpose";
    case Algorithm::kElementwise: return "elementwise";
    case Algorithm::kScan: return "scan";
    case Algorithm::kLoops: return "loops";
  }
  unreachable("an algorithm");
}

std::string str(const BlockPlan& plan) {
  std::string text = fmt::format("`{}`", plan.block);
  if (const auto& form = plan.winograd)
    text += fmt::format(
        " by F({0}x{0}, 3x3), {1} tiles at a time{2}; predicted {3:.4g} us, direct {4:.4g} us",
        form->tile, form->block_tiles,
        form->tasks > 1 ? fmt::format(" in {} tasks", form->tasks) : "", form->seconds * 1e6,
        form->direct_seconds * 1e6);
  for (size_t i = 0; i < plan.tiles.size(); ++i)
    text += (i == 0 ? ": " : "; then ") + str(plan.tiles[i]);
  if (plan.chunks > 1) text += fmt::format("; the first of {} chunks", plan.chunks);
  if (plan.is_serial) text += "; the kernel on one thread";
  for (const auto& [algorithm, why] : plan.refused)
    text += fmt::format("; no {}: {}", name_of(algorithm), why);
  return text;
}

using Json = nlohmann::ordered_json;

static Json json_of(const TilePlan::Axis& axis) {
  Json json = {{"axis", axis.name}, {"extent", nullptr}};
  if (axis.extent > 0) json["extent"] = axis.extent;
  return json;
}

static Json json_of(const std::vector<TilePlan::Axis>& axes) {
  Json json = Json::array();
  for (const TilePlan::Axis& axis : axes) json.push_back(json_of(axis));
  return json;
}

static Json json_of(const Tile& tile) {
  return {{"rows", tile.rows}, {"columns", tile.cols}, {"vectors", tile.vectors}};
}

// To the nanosecond.
static Json microseconds(double seconds) {
  return seconds > 0 ? Json(std::round(seconds * 1e9) / 1e3) : Json();
}

Json json_of(const TilePlan& plan) {
  Json tasks, runner_up;
  if (plan.tasks_of != TilePlan::Tasks::kNone)
    tasks = {{"of", plan.tasks_of == TilePlan::Tasks::kRows ? "rows" : "columns"},
             {"count", plan.tasks},
             {"outside", plan.tasks_outside}};
  if (plan.next_seconds > 0)
    runner_up = {{"tile", json_of(plan.choice.next)},
                 {"predicted_us", microseconds(plan.next_seconds)}};
  return {{"algorithm", name_of(plan.algorithm)},
          {"batch", json_of(plan.batch)},
          {"m", json_of(plan.m)},
          {"n", json_of(plan.n)},
          {"k", json_of(plan.k)},
          {"lane", json_of(plan.lane)},
          {"joins_rows", plan.flat},
          {"packed", plan.packed.empty() ? Json() : Json(plan.packed)},
          {"lanes", plan.lanes},
          {"vectors_along", plan.vectors_along_lane ? "lane" : "n"},
          {"tile", json_of(plan.tile())},
          {"unrolled_fmas", plan.unrolled_fmas},
          {"tasks", tasks},
          {"prefetches", plan.prefetches},
          {"predicted_us", microseconds(plan.seconds)},
          {"assumes_lengths", plan.assumes_lengths},
          {"runner_up", runner_up}};
}

Json json_of(const BlockPlan& plan, const std::string& kernel, const std::string& hash) {
  Json nests = Json::array(), refused = Json::array();
  for (const TilePlan& nest : plan.tiles) nests.push_back(json_of(nest));
  for (const auto& [algorithm, why] : plan.refused)
    refused.push_back({{"algorithm", name_of(algorithm)}, {"reason", why}});
  Json json = {{"kernel", kernel},
               {"hash", hash},
               {"block", plan.block},
               {"algorithm", name_of(plan.algorithm)}};
  if (const auto& form = plan.winograd)
    json["winograd"] = {
        {"tile", form->tile}, {"block_tiles", form->block_tiles}, {"tasks", form->tasks}};
  if (plan.is_serial) json["serial"] = true;
  if (plan.chunks > 1) json["chunks"] = plan.chunks;
  json["nests"] = nests;
  json["refused"] = refused;
  return json;
}

}  // namespace tenon::tir
