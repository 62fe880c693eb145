// SPDX-License-Identifier: Apache-2.0
// Where reductions start: in their first iteration, or where a loop over them does not run.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// The condition under which a block runs its init: its reduce axes are where they begin.
Expr first_iteration(const Block& block);

/// A reduction over an axis that is empty at run time gives what its init stores. This does so
/// where `loop` does not run: the inits of the blocks inside that reduce over it, over the loops
/// that carry their other axes, under the condition that it has no iteration. Null where there
/// are none, or where `loop` is known to run.
Stmt start_where_empty(const For& loop);

}  // namespace tenon::tir
