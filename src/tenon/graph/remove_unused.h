// SPDX-License-Identifier: Apache-2.0
// Removes dead bindings of one graph function.
#pragma once

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// Removes bindings whose values nobody needs. Keeps impure ones, and match_casts, which check
/// something at run time.
Ref<Function> remove_unused(const Ref<Function>& function);

}  // namespace tenon::graph
