// SPDX-License-Identifier: Apache-2.0
// Finds the PrimFunc that Tenon itself would use for a call of an operator.
#pragma once

#include <optional>
#include <string>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"

namespace tenon::plugin {

/// As a module of TVMScript; nothing where the call is no operator's that becomes one PrimFunc.
/// \param index  among the calls of operators in `function`, in order.
std::optional<std::string> chosen_kernel(const IRModule& module, const graph::Function& function,
                                         int32_t index);
/// \param variable  that the call is bound to.
std::optional<std::string> chosen_kernel(const IRModule& module, const graph::Function& function,
                                         const std::string& variable);

}  // namespace tenon::plugin
