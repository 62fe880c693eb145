// SPDX-License-Identifier: Apache-2.0
// The reduction steps of both levels.
#pragma once

#include <vector>

#include "tenon/reduce/reduce.h"

namespace tenon::reduce {

/// Functions, bindings, results, branches, types and constants of graph functions.
std::vector<Step> graph_steps();
/// Statements, loops, blocks, expressions and parameters of PrimFuncs.
std::vector<Step> tir_steps();

}  // namespace tenon::reduce
