// SPDX-License-Identifier: Apache-2.0
// Finds the assignments of a kernel that define a mutable variable.
#pragma once

#include <unordered_set>

#include "tenon/script/ast.h"

namespace tenon::script {

/// The assignments and declarations whose name is assigned again inside of a loop, branch or block
/// below them: `total = 0.0` before a loop with `total = total + A[i]`. Such a name is memory. Any
/// other is a value, and a second assignment beside the first makes a new one.
std::unordered_set<const ast::Stmt*> mutable_definitions(const ast::Stmt& function);

}  // namespace tenon::script
