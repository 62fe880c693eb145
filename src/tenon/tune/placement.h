// SPDX-License-Identifier: Apache-2.0
// Placement: which operators of a graph run in which back end. Deciding and doing are two passes:
// AnnotatePlacement writes its decisions into attributes of the functions, DispatchPlacement makes
// composites of what is annotated there, whoever wrote it. docs/placement.md is the guide.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/user_placement.h"
#include "tenon/tune/placement_search.h"

namespace tenon::tune {

/// A provider that is no back end: what the module calls by itself (R.call_dps_packed and the
/// like). The other is graph::kKernels.
inline constexpr const char* kExtern = "extern";

/// The code of operators that own code computes though nobody refused them: no pattern matched. The
/// other is graph::kUserPlacement.
inline constexpr const char* kNoPattern = "no-pattern";

/// Chooses matches of the back ends' patterns and writes them into attr `placement` of each graph
/// function: {"lv3": "dnnl.conv2d_relu"}, by the variable that the match's result is bound to.
/// What is there already was written by the user and wins: a pattern, a back end, or "none". So
/// does `user.nodes`, which the module has no more afterwards; SelectKernels has read what it says
/// of kernels ("kernels", "kernels.f"), and here it is an error where none took the node. What
/// patterns over TensorIR are to heed of it ("none", and back ends whose patterns over graphs did
/// not take the node) stays in the module as UserPlacement::kernels. Kernels that took nothing are
/// removed.
///
/// Of matches that overlap: user placement; the back end's priority; the pattern's; the larger; the
/// one with more arithmetic; the lower declared cost; the order of back ends and of registration. A
/// match whose declared cost is more than twice the estimate for Tenon's own code is refused, unless
/// `user.measured` says that it is faster; one that was measured and is not faster is refused, as is
/// what its back end has for less of the same operators.
///
/// Records a remark for each operator of a module that has any other provider than own code:
/// verdict "placed" (reason: the pattern), "refused" (the code of the first refusal) or "kept"
/// ("no-pattern", "by-hand"), numbers `flop` and `seconds` (the estimate), all reasons as detail;
/// for each foreign call "placed" ("extern.SYMBOL"); and for each pattern of the user's "matched"
/// or "unmatched" (with what came nearest).
///
/// \param user  its back ends are those to choose from.
/// \throws CompileError (kBadPlacement) where user placement names what is not there or cannot be.
IRModule annotate_placement(IRModule module, const graph::UserPlacement& user);

/// The matches that attr `placement` of the function names, in the order of its bindings.
/// \throws CompileError (kBadPlacement) where there is no such match, or two overlap.
std::vector<Found> placed_matches(const IRModule& module, const Ref<graph::Function>& function);

/// Makes a composite of each, and takes the attribute out. \throws as placed_matches.
IRModule dispatch_placement(IRModule module);

/// The back ends that may be used: the user's, and the libraries called by name that are
/// registered. \throws CompileError (kBadOption) at an unknown back end.
std::vector<std::string> libs_of(const IRModule& module);

}  // namespace tenon::tune
