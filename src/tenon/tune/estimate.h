// SPDX-License-Identifier: Apache-2.0
// What Tenon's own code takes for a part of a graph, roughly: against this, costs that back ends
// declare are weighed.
#pragma once

#include <string>

#include "tenon/graph/expr.h"
#include "tenon/support/target.h"
#include "tenon/tir/stmt.h"

namespace tenon::tune {

/// Seconds on one thread for the calls of `function`, as one kernel: its arithmetic at a share of
/// the peak of a core with the target's vectors, or its inputs and outputs through memory,
/// whichever takes longer. Made of numbers that are the same on every host. Symbolic dimensions
/// count as 1.
double estimated_seconds(const graph::Function& function, const Target& target);

/// The same of a kernel, by its blocks; buffers of parameters go through memory.
double estimated_seconds(const tir::PrimFunc& kernel, const Target& target);

/// A declared cost that is more than this times the estimate is refused: the estimate is rough, and
/// who asks for a back end wants it unless it clearly loses.
inline constexpr double kClearlyDearer = 2;

/// Why a match with this declared cost is refused; empty where it is not.
std::string cost_refusal(double declared, double own);

}  // namespace tenon::tune
