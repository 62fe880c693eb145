// Patterns over TensorIR in the calls of a graph.
#pragma once

#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"

namespace tenon::graph {

struct SplitOptions {
  /// Those with a PrimFunc count. None at all: the module's own, its PrimFuncs with attr `Pattern`
  /// (the composite's name), which it takes out of the module.
  std::vector<FusionPattern> patterns = {};
  /// Whether a match may get copies that put dimensions of its buffers in the pattern's order.
  bool copy_layouts = true;
};

/// Where a graph function calls a PrimFunc (R.call_tir) in which blocks match a pattern, it calls
/// up to three in its place: what runs before the match, the match as a PrimFunc of its own with
/// attr `Composite`, and what runs after it, which are divided in their turn. What patterns are:
/// docs/tir-patterns.md. Patterns are tried by priority, then the larger first. Records a remark
/// for each pattern. Requires: legalised. Re-associating.
/// \throws CompileError (kBadPattern).
IRModule split_call_tir_by_pattern(IRModule module, const SplitOptions& options);

}  // namespace tenon::graph
