// SPDX-License-Identifier: Apache-2.0
// Infers types of values that depend on the functions of their module.
#pragma once

#include "tenon/graph/expr.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

/// type_of(value); a call of a graph function of the module has the function's result type in the
/// caller's dimensions.
Type type_of(const Value& value, const IRModule& module);

/// What a function of these parameters and this declared result gives for `args`, as the caller
/// sees it: a dimension that follows from no argument is not known.
Type result_type(const std::vector<Type>& params, const Type& result,
                 const std::vector<Value>& args);

/// Binds the bare variables in `declared` (the type of a parameter) to the dimensions that `given`
/// has in their places. A variable that is bound already stays.
void unify(const Type& declared, const Type& given, Substitution& bound);

/// Every value of type `precise` is one of type `general`: the same, with nothing more known.
/// Dimensions must be proved equal.
bool is_subtype(const Type& precise, const Type& general);

}  // namespace tenon::graph
