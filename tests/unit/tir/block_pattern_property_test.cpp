// SPDX-License-Identifier: Apache-2.0
// Patterns over TensorIR find what was planted in functions that were then transformed at random,
// and do not find what only looks like it. TENON_PATTERN_CASES: how many functions.
#include <gtest/gtest.h>

#include <cstdlib>

#include "planted.h"
#include "schedule_evaluate.h"
#include "tenon/tir/patterns/block_pattern.h"

namespace tenon::tir {
namespace {

using testing::Change;
using testing::kKinds;
using testing::pattern_of;
using testing::permuted;
using testing::plant;
using testing::Planted;
using testing::Random;
using testing::scheduled;
using testing::sizes;
using testing::swapped;
using testing::with_neighbours;

bool finds(const PrimFunc& pattern, const PrimFunc& target, const std::vector<std::string>& names,
           std::string& why) {
  for (const BlockMatch& match : match_blocks(pattern, target, &why)) {
    std::vector<std::string> found;
    for (const Ref<Block>& block : match.blocks) found.push_back(block->name);
    if (found == names) return true;
  }
  return false;
}

TEST(BlockPatternProperty, FindsWhatWasPlantedAndNothingElse) {
  const char* given = std::getenv("TENON_PATTERN_CASES");
  const int cases = given ? std::atoi(given) : 120;
  std::vector<Ref<PrimFunc>> patterns;
  for (int kind = 0; kind < kKinds; ++kind) patterns.push_back(pattern_of(kind));
  for (int n = 0; n < cases; ++n) {
    const int kind = n % kKinds;
    for (const Change change : {Change::kNone, Change::kIndex, Change::kOperation, Change::kInit}) {
      Random random(static_cast<uint32_t>(n) * 4 + static_cast<uint32_t>(change));
      const Planted planted = plant(kind, sizes(kind, random), change);
      Ref<PrimFunc> target = with_neighbours(planted, random);
      target = permuted(swapped(scheduled(target, random), random), random);
      std::string why;
      EXPECT_EQ(finds(*patterns[static_cast<size_t>(kind)], *target, planted.names, why),
                change == Change::kNone)
          << "case " << n << ", change " << static_cast<int>(change) << ": " << why << "\n"
          << testing::dump(*target);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tenon::tir
