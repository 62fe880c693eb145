// SPDX-License-Identifier: Apache-2.0
// Proves that two accesses of a parallel loop never touch one element in different iterations.
// Internal to the race check of parallel loops.
#pragma once

#include "tenon/tir/analysis/parallel_accesses.h"

namespace tenon::tir {

/// Whether no element that `a` touches in an iteration of `loop` is one that `b` touches in a later
/// one. Both are known, and of one memory.
bool proves_apart(const ParallelAccess& a, const ParallelAccess& b, const ParallelLoop& loop,
                  const std::vector<Ref<Var>>& symbols);

}  // namespace tenon::tir
