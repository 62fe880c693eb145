// SPDX-License-Identifier: Apache-2.0
// Replaces matched operators by calls of composites.
#pragma once

#include <vector>

#include "tenon/graph/patterns/matcher.h"

namespace tenon::graph {

/// A match, and the function that is to be called in its place.
struct Replacement {
  Match match;
  Composite composite;
};

/// `function` with one call for each match; the composites become private functions of the module
/// (equal ones one function). The order of bindings changes only where a call needs it.
/// \throws CompileError (kCyclicPartition) where a call would depend on its own result.
/// Requires: no binding is in two matches, those of a match stand in one block, and what is used
/// outside of a match is among the outputs of its composite.
Ref<Function> with_composites(IRModule& module, const Ref<Function>& function,
                              const std::vector<Replacement>& replacements);

}  // namespace tenon::graph
