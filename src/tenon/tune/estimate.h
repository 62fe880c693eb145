// What Tenon's own code takes for a part of a graph, roughly: against this, costs that back ends
// declare are weighed.
#pragma once

#include "tenon/graph/expr.h"
#include "tenon/support/target.h"

namespace tenon::tune {

/// Seconds on one thread for the calls of `function`, as one kernel: its arithmetic at a share of
/// the peak of a core with the target's vectors, or its inputs and outputs through memory,
/// whichever takes longer. Made of numbers that are the same on every host. Symbolic dimensions
/// count as 1.
double estimated_seconds(const graph::Function& function, const Target& target);

}  // namespace tenon::tune
