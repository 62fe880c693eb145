// SPDX-License-Identifier: Apache-2.0
// Memory planning of a whole program: every allocation of the entry function becomes an offset in
// one workspace.
#pragma once

#include <string>
#include <vector>

#include "tenon/memory/symbolic.h"
#include "tenon/tir/stmt.h"

namespace tenon::memory {

/// The allocations of `function` (buffers of AllocBuffer statements, and what is a view of them)
/// with the steps, counted over its statements in order, between which each is alive.
struct ModuleProblem {
  struct Call {
    int64_t step;
    Ref<tir::CallTir> call;
  };
  std::vector<Ref<tir::Buffer>> buffers;
  std::vector<SymbolicAllocation> allocations;  // as many
  std::vector<Call> calls;                      // in the order of their steps
  int64_t steps = 0;
};
ModuleProblem extract_problem(const tir::PrimFunc& function);

/// Bytes that are alive at each step, and 0 at the end; nothing where a size is not constant.
std::vector<int64_t> alive_bytes(const ModuleProblem& problem);

/// Places the allocations of the entry function (attr `tenon.entry`) in a new last parameter
/// `workspace`, a buffer of uint8, and makes views of them. Attrs of the function then say
/// `tenon.workspace_bytes` (an integer, or an expression of the symbolic dimensions),
/// `tenon.planned_bytes` and `tenon.bound_bytes` (of the part of constant size). Records a remark
/// for each buffer.
///
/// Where the module's attribute `pools` states several (pools.h), they lie one after another in the
/// workspace, and attribute `tenon.pools` of the function says where: a list of [name, offset,
/// capacity or -1]; the last pool ends where the workspace does. \throws CompileError
/// (kDoesNotFit).
IRModule plan_memory(IRModule module, const PlanOptions& options = {});

}  // namespace tenon::memory
