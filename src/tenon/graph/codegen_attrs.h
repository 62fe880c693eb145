// SPDX-License-Identifier: Apache-2.0
// The attributes that mark a function for a back end: Composite, Compiler, Codegen.
#pragma once

#include <string>

#include "tenon/ir/module.h"

namespace tenon::graph {

/// The part of attr `Composite` (or all of attr `Compiler` or `Codegen`) that names a back end, and
/// of a composite the rest; empty where the function has no such attr.
std::string backend_of(const FunctionNode& function);
std::string composite_name(const FunctionNode& function);

}  // namespace tenon::graph
