// SPDX-License-Identifier: Apache-2.0
// Verifies PrimFuncs, with blocks or lowered.
#pragma once

#include <unordered_map>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/support/diagnostics.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_graph.h"

namespace tenon::tir {

/// What was well formed in an earlier version of a module: a function that is the same node, and
/// whose callees kept their parameters and effects, is not looked at again.
struct VerifierMemory {
  struct Callee {
    BaseFunc function;
    std::vector<ParamEffect> effects;
  };
  struct Record {
    BaseFunc function;  // keeps the key alive
    std::vector<CallSite> calls;
    std::vector<Callee> callees;  // of `calls`
  };
  std::unordered_map<const Node*, Record> records;
  std::unordered_map<const Node*, std::vector<ParamEffect>> effects;  // of functions in `records`
};

/// Adds what is wrong with the module's PrimFuncs:
///  - kUndefined, kRedefined: variables and buffers used where they are not defined, or defined
///    again inside of their scope;
///  - kIndexRank, kOutOfBounds: accesses with the wrong number of indices, or proved to lie outside
///    of the buffer in an iteration that happens (analysis/access_bounds.h); kDivisionByZero,
///    kShiftOutOfRange likewise;
///  - kBadBlock: an axis twice, a binding of another dtype, a buffer accessed that the block's reads
///    or writes do not have;
///  - calls (T.call_tir), each argument against the callee's parameter: kUnknownCallee,
///    kBadArgument (their number, a scalar for a buffer), kDTypeMismatch, kRegionMismatch (extents,
///    with the callee's symbolic dimensions unified), kOutOfBounds, kAliasing (a written region
///    that is not proved apart from another region of the same buffer), kRecursion.
/// Of extents and bounds only what is proved to be wrong is reported.
///
/// \param memory  between passes: what did not change is not looked at again, and accesses are not
///                judged (InstrumentBoundCheckers judges those that calls settle). May be null.
void verify(const IRModule& module, Diagnostics& diagnostics, VerifierMemory* memory = nullptr);

}  // namespace tenon::tir
