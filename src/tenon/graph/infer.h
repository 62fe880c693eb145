// SPDX-License-Identifier: Apache-2.0
// Infers types of values that depend on the functions of their module.
#pragma once

#include "tenon/graph/expr.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

/// type_of(value); a call of a graph function of the module has the function's result type in the
/// caller's dimensions.
Type type_of(const Value& value, const IRModule& module);

/// Binds the bare variables in `declared` (the type of a parameter) to the dimensions that `given`
/// has in their places. A variable that is bound already stays.
void unify(const Type& declared, const Type& given, Substitution& bound);

/// Every value of type `precise` is one of type `general`: the same, with nothing more known.
/// Dimensions must be proved equal.
bool is_subtype(const Type& precise, const Type& general);

}  // namespace tenon::graph
