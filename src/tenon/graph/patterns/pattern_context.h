// SPDX-License-Identifier: Apache-2.0
// What `with PatternContext() as ctx:` holds besides constraints: the calls that are written in it.
#pragma once

#include <vector>

#include "tenon/graph/patterns/dataflow_pattern.h"

namespace tenon::graph {

/// Adds those of `made` that have calls and stand in none of the others.
void add_outermost(PatternContext& context, const std::vector<DFPattern>& made);

}  // namespace tenon::graph
