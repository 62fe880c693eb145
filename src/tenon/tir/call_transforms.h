// SPDX-License-Identifier: Apache-2.0
// The passes over calls between PrimFuncs, each IRModule -> IRModule.
#pragma once

#include "tenon/tir/transforms.h"

namespace tenon::tir {

/// A call of a PrimFunc becomes its body, with the regions of the arguments in the place of the
/// parameters: of callees with attribute `tir.inline`, calls annotated {"inline": True}, or (`all`)
/// every call that has such a form; {"inline": False} keeps one. A call inside an expression is
/// inlined where the callee is one `return`. Private functions that nobody calls any more go.
/// Any form.
IRModule inline_calls(IRModule module, bool all = false);

/// A PrimFunc with symbolic dimensions that a call gives constants is copied for these. Any form.
IRModule specialize_calls(IRModule module);

/// Calls without effects but on buffers that nobody reads go, and these buffers. Any form.
IRModule remove_dead_calls(IRModule module);

/// A call with the same inputs as one before it, which nothing changed in between, goes; where only
/// its outputs differ and nobody else writes them, they become those of the first. Any form.
IRModule eliminate_common_calls(IRModule module);

/// A loop annotated as a software pipeline runs its statements as stages, each on an iteration of
/// its own at the same time (docs/kernel-calls.md). Buffers between stages get a version for each
/// iteration that is under way. Any form in which the statements of the loop are still told apart.
/// \throws CompileError (kScheduleIllegal) where stages depend on one another in a way that this
/// would change.
IRModule inject_software_pipeline(IRModule module);

}  // namespace tenon::tir
