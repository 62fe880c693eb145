// SPDX-License-Identifier: Apache-2.0
// Patterns over TensorIR in the calls of a graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"

namespace tenon::graph {

/// What a match costs, and whether that is too much.
struct KernelWeight {
  double seconds = 0;
  Verdict verdict = {};
};

struct SplitOptions {
  /// Those with a PrimFunc count. None at all: the module's own, its PrimFuncs with attr `Pattern`
  /// (the composite's name), which it takes out of the module.
  std::vector<FusionPattern> patterns = {};
  /// Whether a match may get copies that put dimensions of its buffers in the pattern's order.
  bool copy_layouts = true;
  /// The providers that the user chose, by placement_name: a back end, a pattern, or "none":
  /// kernels that compute such an operator are not divided.
  std::map<std::string, std::string> user_placement = {};
  /// Back ends whose patterns serve only where `user_placement` names them.
  std::set<std::string> on_request_only = {};
  /// Weighs a match against own code, given the kernel that it would be, the copies that it needs,
  /// and the seconds that its back end declares. Empty: cost does not count.
  std::function<KernelWeight(const tir::PrimFunc& kernel,
                             const std::vector<Ref<tir::PrimFunc>>& copies,
                             std::optional<double> declared)>
      weigh = {};
};

/// Where a graph function calls a PrimFunc (R.call_tir) in which blocks match a pattern, it calls
/// up to three in its place: what runs before the match, the match as a PrimFunc of its own with
/// attr `Composite`, and what runs after it, which are divided in their turn. What patterns are:
/// docs/tir-patterns.md. Of matches in one kernel goes first: user placement; the back end's priority; the
/// pattern's; more blocks; more arithmetic; the lower cost; the order of `patterns`. Records a
/// remark for each pattern, for each match that is refused, and those of KernelOperators::report.
/// Requires: legalised. Re-associating.
/// \throws CompileError (kBadPattern), (kBadPlacement) where no match does what `user_placement` says.
IRModule split_call_tir_by_pattern(IRModule module, const SplitOptions& options);

/// The module's own patterns over TensorIR, its PrimFuncs with attr `Pattern`, which are no part of
/// the program: takes them out of it.
std::vector<FusionPattern> take_kernel_patterns(IRModule& module);

/// The attributes of the graph function as which a back end sees a kernel.
Attrs attrs_of_composite(const tir::PrimFunc& kernel);

/// What split_call_tir_by_pattern made of patterns of `backend`, as composites of graph functions:
/// each call of a PrimFunc with attr `Composite` becomes a call of a private function with the
/// PrimFunc's attributes that calls it, which is what back ends take. Calls with scalar arguments
/// (symbols of the caller) stay as they are; a remark says so.
IRModule composites_of_kernels(IRModule module, const std::string& backend);

}  // namespace tenon::graph
