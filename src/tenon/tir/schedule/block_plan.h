// SPDX-License-Identifier: Apache-2.0
// What the default schedule chose for a block, as data: the algorithm, the plans of its tiles, and
// why what was tried before did not suit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/tir/schedule/tile_plan.h"

namespace tenon::tir {

struct BlockPlan {
  enum class Algorithm : uint8_t {
    kTiles,         // accumulators in registers: contractions, windows, sums over outer axes
    kRows,          // reductions and what is made of them, row by row
    kRowReduction,  // lanes hold partial results
    kPlanarWindow,  // vectors along the results, taps unrolled
    kPadding,       // computed a few rows at a time where it is read
    kTranspose,     // squares through registers
    kElementwise,
    kScan,
    kLoops,  // as it came, outer loops in parallel at most
  };
  std::string block;
  Algorithm algorithm = Algorithm::kLoops;
  std::vector<TilePlan> tiles;                             // of kTiles: one for each nest
  std::vector<std::pair<Algorithm, std::string>> refused;  // what was tried before, and why not
};

const char* name_of(BlockPlan::Algorithm algorithm);

/// "`matmul`: contraction: M i[197], ...; no transpose: ..."; one line.
std::string str(const BlockPlan& plan);

}  // namespace tenon::tir
