// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/block_plan.h"

#include <fmt/core.h>

#include "tenon/support/check.h"

namespace tenon::tir {

const char* name_of(BlockPlan::Algorithm algorithm) {
  using Algorithm = BlockPlan::Algorithm;
  switch (algorithm) {
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
  for (size_t i = 0; i < plan.tiles.size(); ++i)
    text += (i == 0 ? ": " : "; then ") + str(plan.tiles[i]);
  for (const auto& [algorithm, why] : plan.refused)
    text += fmt::format("; no {}: {}", name_of(algorithm), why);
  return text;
}

}  // namespace tenon::tir
