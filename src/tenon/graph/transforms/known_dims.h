// SPDX-License-Identifier: Apache-2.0
// Dimensions of a function by those of its inputs.
#pragma once

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// The dimensions of a tensor, or the numbers of a shape; null where they are not known.
const std::vector<Expr>* dims_of(const Type& type);

/// The function with what the match_casts in it define by the dimensions of its inputs: shapes of
/// results and places in memory are computed before anything runs.
Ref<Function> with_dims_of_inputs(const Function& function);

}  // namespace tenon::graph
