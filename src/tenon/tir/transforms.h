// SPDX-License-Identifier: Apache-2.0
// Every pass of the TensorIR level with its contract, in the order of kernel lowering: from
// scheduled blocks to flat vector code. Each is IRModule -> IRModule, touches PrimFuncs only, and
// leaves functions alone that are past its form.
#pragma once

#include "tenon/ir/module.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// `f` on every PrimFunc of `module`, on several at a time (support/parallel.h says what `f` must
/// keep to); one that comes back as it was stays the same node.
IRModule map_prim_funcs(IRModule module,
                        const std::function<Ref<PrimFunc>(const Ref<PrimFunc>&)>& f);

/// The same without functions that are no more than a list of calls over fixed memory (a program's
/// entry, which may be very long): for passes on loops, blocks and arithmetic.
IRModule map_kernels(IRModule module, const std::function<Ref<PrimFunc>(const Ref<PrimFunc>&)>& f);

/// The module's target generates C, where parallel loops run one task after another.
bool is_c_target(const IRModule& module);

struct BoundCheckOptions {
  bool unchecked = false;  // what is not proved is listed, and runs as it is
};
/// Each access that is not proved to lie inside of its buffer is checked when it runs: an index by
/// `T.check_index`, a region of a call or view by an assertion. What is proved stays as it is. Each
/// check is a remark; divisors that are not proved to differ from 0, which code generators check,
/// too. Any form.
/// \throws CompileError (kOutOfBounds, kDivisionByZero, kShiftOutOfRange) for what is proved to
/// fail.
IRModule instrument_bound_checkers(IRModule module, const BoundCheckOptions& options = {});

/// The init of a reduction block becomes an `if` on its first iteration in front of the body.
IRModule lower_init_block(IRModule module);

/// A buffer that a block allocates moves to the innermost loop that holds all its uses, as an
/// AllocBuffer there; one without uses is dropped. It stays outside of a loop that may hand its
/// values from one iteration to a later one (a reduction's output, a row of the iteration before).
/// Requires: no block inits.
IRModule plan_and_update_buffer_allocation_location(IRModule module);

/// Axes of blocks become the values that they are bound to; blocks keep no axes.
/// Requires: no block inits.
IRModule convert_blocks_to_opaque(IRModule module);

/// A local buffer shrinks to the box that is accessed in one run of the statements after its
/// AllocBuffer; where that depends on the outer loops, to a constant that holds it always. Buffers
/// whose address escapes, or with strides of their own, keep their shape.
/// Requires: no block axes.
IRModule compact_buffer_allocation(IRModule module);

/// Views that blocks declare (`T.match_buffer` of a region) become accesses to what they view.
/// Requires: no block axes.
IRModule lower_match_buffer(IRModule module);

/// Blocks are gone: their allocations become AllocBuffer statements, predicates become `if`s.
/// Loops of one iteration go too. Requires: no block axes, no views.
IRModule lower_opaque_block(IRModule module);

/// Indices, bounds and conditions in canonical form; branches that are never taken go.
/// Any form.
IRModule simplify(IRModule module);
Ref<PrimFunc> simplified(const Ref<PrimFunc>& function);

/// A sum into local memory whose terms share a factor, acc + a * ((w - z) * s) with s and z the same
/// in all terms of a loop, is taken without it in registers beside acc, and multiplied once; so is z
/// taken off once, times the sum of a, where that is the same for several vectors. Where acc is not
/// finite afterwards, which an infinite a makes it, the sum is taken again as it was written; where
/// terms would overflow by s alone, their sum may be finite. Only where the registers of the target
/// hold both sums, and a factor is read from memory.
/// Requires: no blocks.
IRModule hoist_factors(IRModule module);

/// Parallel loops that follow each other become one of all their iterations, and what follows one
/// becomes an iteration of it, where neither touches what the other writes. Only functions whose
/// parameters are different memory (`tir.noalias`), sizes that are known, and parts whose own memory
/// is registers. Not for targets that generate C.
/// Requires: no blocks.
IRModule join_parallel_loops(IRModule module);

/// Allocations of kernels that do not fit the stack (scope "global" and more than 4 KiB, or more
/// than 32 KiB in one kernel) become parameters `scratch*` at the end, allocated by the caller in
/// front of the call; in a parallel loop each iteration has a slot of its own (for a C target, which
/// runs iterations in order, the loop becomes serial and they share one).
/// Requires: no blocks.
IRModule lift_scratch(IRModule module);

/// An entry function (attr `tenon.entry`) of more than `most_statements` statements is cut into
/// private functions of so many, which it calls in order with its own parameters. Views and
/// constants are declared again where they are used. Requires: no allocations left in it
/// (PlanMemory). For a C target nothing is cut.
IRModule outline_main(IRModule module, int64_t most_statements = 1024);

/// Every access has one index, into a flat view of its buffer; parameters and what calls see keep
/// their shapes. Requires: no blocks.
IRModule flatten_buffer(IRModule module);

/// Loops marked vectorized become vector statements: Ramps, Broadcasts, masked loads and stores
/// under a condition on the lane. What has no vector form (stores to one element, calls, gathers
/// under a condition) stays a serial loop. Requires: one index per access.
IRModule vectorize_loop(IRModule module);

/// Loops marked unrolled become serial beyond 4096 copies of a statement, and beyond the room there
/// is (a remark says `too-large`): 16,384 nodes for a function, 400,000 for the module, and 8 for
/// each node of theirs. Code generators copy the bodies of those that are left (unrolled): no pass
/// walks the copies.
IRModule bound_unrolling(IRModule module);

/// What BoundUnrolling leaves as loops to unroll becomes copies of their bodies.
IRModule unroll_loop(IRModule module);

/// `function` with a copy of the body for each iteration of its loops marked unrolled, of whatever
/// number, and simplified: what code generators read.
Ref<PrimFunc> unrolled(const Ref<PrimFunc>& function);

/// The same for all kernels of a module, after bound_unrolling.
IRModule with_copies(IRModule module);

/// How many nodes unrolled() makes of `root`, before they are simplified.
int64_t unrolled_size(const NodePtr& root);

/// a * b + c, a * b - c and c - a * b on float32 and float64 become T.fma where the target has it
/// and c has no a * b of its own (x - x stays 0). Operands of roundings to whole numbers stay as
/// they are, so that what is quantised has the same steps on every target. The only place where
/// products and sums are joined.
IRModule fuse_multiply_add(IRModule module);

/// exp, log, tanh, erf, ... become arithmetic (elementary.h), on scalars and vectors. Nothing calls
/// a mathematical library.
IRModule lower_intrinsics(IRModule module);

/// A loop whose body runs only while its variable is below a symbolic bound (the pieces that a
/// schedule cuts a symbolic axis into) ends at the bound; the condition goes.
IRModule bound_loops(IRModule module);

/// Drops loops, branches and sequences that do nothing.
IRModule remove_no_op(IRModule module);
Ref<PrimFunc> without_no_ops(const Ref<PrimFunc>& function);

}  // namespace tenon::tir
