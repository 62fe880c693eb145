// SPDX-License-Identifier: Apache-2.0
// What the default schedule chose for a block, as data: the algorithm, the plans of its tiles, and
// why what was tried before did not suit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tenon/tir/schedule/default_winograd.h"
#include "tenon/tir/schedule/tile_plan.h"

namespace tenon::tir {

struct BlockPlan {
  enum class Algorithm : uint8_t {
    kWinograd,      // a convolution by products of transformed tiles, which are contractions
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
  std::vector<TilePlan> tiles;  // of kTiles: one for each nest; of kWinograd: of the products
  std::vector<std::pair<Algorithm, std::string>> refused;  // what was tried before, and why not
  std::optional<WinogradChoice> winograd = {};             // of kWinograd
  bool is_serial =
      false;           // of a kernel's first: without the tasks that its blocks would be cut into
  int64_t chunks = 1;  // that the reduction was cut into, of which this is the first
};

const char* name_of(BlockPlan::Algorithm algorithm);

/// "`matmul`: contraction: M i[197], ...; no transpose: ..."; one line.
std::string str(const BlockPlan& plan);

/// The one form in which plans are printed and read (plan_file.h): `{"kernel", "hash" (of the kernel's
/// structure before it is scheduled), "block", "algorithm", "nests": [{"algorithm", "batch": [{"axis",
/// "extent" (or null)}], "m", "n", "k", "lane", "joins_rows", "packed" (or null), "lanes",
/// "vectors_along", "tile": {"rows", "columns", "vectors"}, "unrolled_fmas", "tasks": {"of", "count",
/// "outside"} (or null), "prefetches", "predicted_us" (or null), "assumes_lengths", "runner_up": {"tile",
/// "predicted_us"} (or null)}], "refused": [{"algorithm", "reason"}]}`, and where they are so "winograd",
/// "serial" and "chunks" (docs/plans.md). What the model says of a plan,
/// from `predicted_us` on and `refused`, is not read.
nlohmann::ordered_json json_of(const BlockPlan& plan, const std::string& kernel,
                               const std::string& hash);
nlohmann::ordered_json json_of(const TilePlan& plan);

}  // namespace tenon::tir
