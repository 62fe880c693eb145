// SPDX-License-Identifier: Apache-2.0
// Finds two iterations of a parallel loop that touch one element. Internal to the race check of
// parallel loops.
#pragma once

#include "tenon/tir/analysis/parallel_accesses.h"

namespace tenon::tir {

enum class RaceAnswer : uint8_t { kNone, kRace, kOpen };

/// What is shown of a race.
struct Meeting {
  const ParallelAccess* first = nullptr;
  const ParallelAccess* second = nullptr;
  std::string element, first_iteration, second_iteration;
};

/// Looks at every element that the accesses of one memory touch in `loop`, where there are few and
/// their places are numbers.
RaceAnswer look_at_elements(const ParallelLoop& loop,
                            const std::vector<const ParallelAccess*>& accesses, Meeting& meeting);

/// Whether the first iteration and the one after it meet, whatever the sizes.
bool meet_at_corner(const ParallelAccess& a, const ParallelAccess& b, const ParallelLoop& loop,
                    const std::vector<Ref<Var>>& symbols, Meeting& meeting);

/// Of memory that is each iteration's own: kNone where an iteration reads only what it has written,
/// kRace where the read `at` has no write before it.
RaceAnswer look_at_scratch(const ParallelLoop& loop,
                           const std::vector<const ParallelAccess*>& accesses,
                           const std::vector<Ref<Var>>& symbols, size_t& at);

}  // namespace tenon::tir
