// SPDX-License-Identifier: Apache-2.0
// Collects the accesses of a function, through blocks, views and callees. Internal to the race
// check of parallel loops.
#pragma once

#include <string>
#include <vector>

#include "tenon/tir/analysis/witness.h"
#include "tenon/tir/call_effects.h"

namespace tenon::tir {

/// A load, a store, or an argument of a call that is not followed.
struct ParallelAccess {
  Ref<Buffer> memory;        // the buffer behind views and parameters
  std::vector<Range> box;    // of `memory`, in terms of `loops` and of dimensions
  bool is_flat = false;      // `box` is one range, of elements from the pointer of `memory` on
  bool is_known = true;      // false: it may touch anything of `memory`
  bool from_memory = false;  // an index is read from memory, so that `box` is wider than it
  bool is_certain = true;    // all of `box` is touched where all of `guards` hold
  bool writes = false;
  struct Guard {
    Expr condition;
    size_t depth = 0;  // loops around it
  };
  std::vector<Guard> guards;
  std::vector<Running> loops;    // around it, outermost first
  Origin origin;                 // in the function that is looked at: of a call, its argument
  Origin inner;                  // in the callee
  std::string callee;            // that makes the access; empty where there is no call
  const Block* block = nullptr;  // the innermost around it
};

/// Whether the box or the guards of an access depend on `var`.
bool uses_var(const ParallelAccess& access, const Var* var);

/// A loop whose iterations may run at once.
struct ParallelLoop {
  const For* loop = nullptr;
  size_t depth = 0;           // loops around it: in `loops` of an access inside, its position
  size_t begin = 0, end = 0;  // of the accesses inside
};

struct ParallelAccesses {
  std::vector<ParallelAccess> accesses;  // in program order
  std::vector<ParallelLoop> loops;
  std::vector<Ref<Var>> symbols;  // dimensions
  /// Where memory is allocated, in how many loops; parameters are not in it.
  struct Place {
    size_t depth = 0;
    const Block* block = nullptr;  // that allocates it; null: a statement does
  };
  std::unordered_map<const Node*, Place> allocated;
};
ParallelAccesses parallel_accesses(const PrimFunc& function, const IRModule& module,
                                   CallEffects& effects);

}  // namespace tenon::tir
