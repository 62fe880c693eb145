// Symbolic dimensions of graph functions while they are interpreted.
#pragma once

#include <unordered_map>
#include <vector>

#include "tenon/ir/expr.h"
#include "tenon/ir/visit.h"

namespace tenon::interp {

/// Values of the symbolic dimensions in one call of a graph function.
using Dims = std::unordered_map<const Node*, int64_t>;

Substitution substitution_of(const Dims& dims);

/// \throws CompileError (kUndefined) where a variable has no value.
int64_t evaluate(const Expr& expr, const Dims& dims);
std::vector<int64_t> evaluate(const std::vector<Expr>& exprs, const Dims& dims);

}  // namespace tenon::interp
