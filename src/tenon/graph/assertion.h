// SPDX-License-Identifier: Apache-2.0
// R.assert_op: a condition that the program checks while it runs.
#pragma once

#include <string>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// What a failure of `call`, an `assert_op`, says: its format, where it has one.
std::string assert_message(const Call& call);

/// `R.assert_op(condition, format=message)`, for a bool over symbolic variables.
Value assertion(const Expr& condition, const std::string& message, const Origin& origin);

}  // namespace tenon::graph
