// SPDX-License-Identifier: Apache-2.0
// Values of symbolic dimensions while graph functions are interpreted.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tenon/interp/code.h"
#include "tenon/ir/expr.h"
#include "tenon/ir/visit.h"

namespace tenon::interp {

/// Values of the symbolic dimensions in one call of a graph function.
using Dims = std::unordered_map<const Node*, int64_t>;

Substitution substitution_of(const Dims& dims);

/// What a library says when it is asked for a size (T.call_pure_extern); the arguments are numbers.
using AskLibrary = std::function<int64_t(const tenon::Call& call)>;

/// \throws CompileError (kUndefined) where a variable has no value.
int64_t evaluate(const Expr& expr, const Dims& dims, const AskLibrary& ask = {});
/// The same; nothing where a variable has no value.
std::optional<int64_t> value_of(const Expr& expr, const Dims& dims, const AskLibrary& ask = {});
/// A number of any dtype. \throws CompileError (kUndefined) where a variable has no value.
Slot number_of(const Expr& expr, const Dims& dims);
std::vector<int64_t> evaluate(const std::vector<Expr>& exprs, const Dims& dims);

}  // namespace tenon::interp
