// SPDX-License-Identifier: Apache-2.0
// The kernels of which a pass sees every call.
#pragma once

#include <string>
#include <unordered_set>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// R.call_tir or R.call_tir_inplace.
bool is_call_tir(const Call& call);

/// The private kernels of a module that nothing but calls of graph functions uses.
std::unordered_set<std::string> kernels_of_graphs(const IRModule& module);

}  // namespace tenon::graph
