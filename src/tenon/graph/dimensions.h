// SPDX-License-Identifier: Apache-2.0
// Finds the definition of each symbolic dimension of a graph function.
#pragma once

#include <functional>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// Calls `visit` for each dimension, number of a shape and scalar that a type states.
void each_dimension(const Type& type, const std::function<void(const Expr&)>& visit);

/// Whether every symbolic variable that the function names is a dimension of a parameter, or
/// defined inside: what callers can find out.
bool defines_dimensions(const Function& function);
/// Why a function that does not cannot be taken out of another one.
inline constexpr char kOpenDimension[] = "a dimension in it is that of no input";

/// `function` with a variable of its own for each dimension of a parameter that is an expression
/// (n * m) whose variables no parameter has as a dimension; the expression is that variable
/// throughout. For functions that are taken out of another one, where n and m are known.
Ref<Function> with_own_dimensions(Ref<Function> function);

}  // namespace tenon::graph
