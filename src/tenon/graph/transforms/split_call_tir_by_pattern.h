// Patterns over TensorIR in the calls of a graph.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"

namespace tenon::graph {

struct SplitOptions {
  /// Those with a PrimFunc count. None at all: the module's own, its PrimFuncs with attr `Pattern`
  /// (the composite's name), which it takes out of the module.
  std::vector<FusionPattern> patterns = {};
  /// Whether a match may get copies that put dimensions of its buffers in the pattern's order.
  bool copy_layouts = true;
  /// Nodes of the model that stay where they are: kernels that compute one are not divided.
  std::set<std::string> keep = {};
};

/// Where a graph function calls a PrimFunc (R.call_tir) in which blocks match a pattern, it calls
/// up to three in its place: what runs before the match, the match as a PrimFunc of its own with
/// attr `Composite`, and what runs after it, which are divided in their turn. What patterns are:
/// docs/tir-patterns.md. Patterns are tried by priority, then the larger first. Records a remark
/// for each pattern, and for each match (verdict "placed", reason: the pattern, detail "whole"
/// where it is all of the kernel). Requires: legalised. Re-associating.
/// \throws CompileError (kBadPattern).
IRModule split_call_tir_by_pattern(IRModule module, const SplitOptions& options);

/// What split_call_tir_by_pattern made of patterns of `backend`, as composites of graph functions:
/// each call of a PrimFunc with attr `Composite` becomes a call of a private function with the
/// PrimFunc's attributes that calls it, which is what back ends take. Calls with scalar arguments
/// (symbols of the caller) stay as they are; a remark says so.
IRModule composites_of_kernels(IRModule module, const std::string& backend);

}  // namespace tenon::graph
