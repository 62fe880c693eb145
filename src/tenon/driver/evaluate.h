// Computes constants at compile time: by direct references where these exist, else by the
// interpreter.
#pragma once

#include <optional>

#include "tenon/graph/expr.h"

namespace tenon {

/// The value of a pure call on constants; nothing where it cannot be computed now. For
/// graph::fold_constants.
std::optional<graph::Value> evaluate_constant(const IRModule& module, const Ref<graph::Call>& call);

}  // namespace tenon
