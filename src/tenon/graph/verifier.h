// SPDX-License-Identifier: Apache-2.0
// Verifies graph functions.
#pragma once

#include "tenon/ir/module.h"
#include "tenon/support/diagnostics.h"

namespace tenon::graph {

/// Adds what is wrong with the module's graph functions:
///  - kNotNormal: an argument or result that is no leaf; an `if` or an impure call in a dataflow
///    block;
///  - kUndefined, kRedefined: variables (also symbolic ones, and those of a dataflow block outside
///    it) without a definition before the use, or with two;
///  - kTypeMismatch: a declared type that is neither the inferred one nor less precise;
///  - kUnknownCallee, kBadArgument, kRankMismatch, kDTypeMismatch, kShapeMismatch: call_tir against
///    the PrimFunc's buffers, with its symbolic dimensions unified; only what is proved to differ;
///  - what the operators' own rules find.
void verify(const IRModule& module, Diagnostics& diagnostics);

}  // namespace tenon::graph
