// SPDX-License-Identifier: Apache-2.0
// Every pass of the graph level with its contract: a table of contents. Each is one file of
// graph/transforms/.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/pass.h"
#include "tenon/support/target.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

/// Composites of what matches the module's own patterns; with options, of back ends' patterns, and
/// what follows in handing parts of a graph to back ends: graph/partition_passes.h.
IRModule fuse_ops_by_pattern(IRModule module);

/// Parameters of graph function `function`, by name, become constants; symbolic dimensions that
/// they alone define get the constants' sizes. Attributes `num_input` and `input_names` follow.
/// \throws CompileError kUndefined where it has no such function or parameter, kDTypeMismatch,
/// kShapeMismatch, kTypeMismatch where a value does not fit.
IRModule bind_params(IRModule module, const std::map<std::string, Ref<TensorData>>& params,
                     const std::string& function = "main");

/// Results of `main` lie in the memory of parameters: option `pairs` lists "INPUT=OUTPUT" by their
/// names, "past.*=present.*" for all that fit. Types have to be equal. A result that is a concat of
/// the parameter and new rows makes buffers of both, of a symbolic capacity, to which the rows are
/// added where they belong; how many the buffer holds follows from a dimension of another
/// parameter. A result of max(room, rows) rows has as many as the parameter, which must suffice.
/// Requires: as imported. \throws CompileError kUndefined at names that are not there, kShapeMismatch
/// where the two do not fit, kUnsupported where the number of rows follows from no parameter.
IRModule share_buffers(IRModule module, const Attrs& options);

/// Symbolic dimensions of parameters, by name, become numbers, in one function or in every public
/// one. \throws CompileError kUndefined where no parameter has such a dimension.
IRModule bind_symbolic_vars(IRModule module, const std::map<std::string, int64_t>& dims,
                            const std::optional<std::string>& function = {});

/// Asserts that windows (of convolutions, pools and their like) over symbolic axes are no larger than
/// these, as soon as the dimensions are known; type rules refuse those over known ones. Composites and
/// regions stay as they are: run it before any is made.
IRModule assert_windows(IRModule module);

/// Which functions share one `transform_params` of what all of them compute of their weights.
struct SharedTransform {
  bool all = false;  // every function with attribute `num_input`
  std::optional<std::vector<std::string>> functions = {};
};
/// Moves what a function computes of its weights alone (the parameters from number `num_input`, an
/// attribute, on) into a function `NAME_transform_params`, from a tuple of these weights to a tuple
/// of what takes their place: weights that are used as they are, then the results. Functions
/// without the attribute stay. \throws CompileError kUndefined, kBadAttribute, kTypeMismatch where
/// functions that share have other weights.
IRModule lift_transform_params(IRModule module, const SharedTransform& shared = {});

/// Functions bound to variables inside of others become private functions of the module, where they
/// use nothing of what is around them.
IRModule lift_functions(IRModule module);

/// Puts the bodies of graph functions in the places of their calls (composites and regions that no
/// back end took, functions that a model is divided into), until `main` calls operators and
/// PrimFuncs alone, and drops what is not called any more.
/// Keeps: functions with attr `Primitive`, which FuseOps makes. \throws CompileError (kRecursion).
IRModule inline_functions(IRModule module);

/// Removes bindings whose values nobody needs and private functions that nobody calls.
/// Keeps: impure bindings; public functions; while operators are left, kernels for operators (attr
/// `op`) with the patterns and declarations that they are for.
IRModule eliminate_dead_code(IRModule module);
/// Removes these kernels too, where nobody calls them: they have been asked.
IRModule drop_unused_kernels(IRModule module);

/// Binds equal pure calls once (in a function, in order of bindings). Equal means structurally
/// equal.
IRModule eliminate_common_subexpr(IRModule module);

/// Computes one pure call whose arguments are all constants; nothing where it cannot.
using ConstantEvaluator =
    std::function<std::optional<Value>(const IRModule& module, const Ref<Call>& call)>;

/// Replaces pure calls on constants by their value, which `evaluate` computes.
/// Keeps: calls with symbolic shapes, and results that would grow the module's constants by more
/// than 256 MiB in all.
IRModule fold_constants(IRModule module, const ConstantEvaluator& evaluate);

/// Replaces every operator by R.call_tir of its PrimFunc, until only call primitives, tuples and
/// `reshape` are left. Reshapes (also expand_dims, squeeze, flatten) stay as `reshape`: lowering
/// the graph makes views of them.
/// \throws CompileError (kUnsupported) at an operator without a lowering.
IRModule legalize_ops(IRModule module);

/// Puts calls of PrimFuncs that can run as one kernel into private functions with attr `Primitive`:
/// a contraction with the element-wise calls that follow it, chains of element-wise and injective
/// ones, a reduction with its producers. Requires: legalised. Records a remark for each edge that
/// is not fused.
IRModule fuse_ops(IRModule module);

/// Composes the PrimFuncs of each `Primitive` function into one, with the intermediates as buffers
/// of its root block. One-element constants become immediates.
IRModule fuse_tir(IRModule module);

/// A scalar parameter of a kernel that dimensions of its buffers are expressions of becomes a symbol
/// that one of these defines, where all that the kernel computes with it are expressions of that
/// dimension. Kernels are legalised and not scheduled.
IRModule name_dims(IRModule module);

/// Tells DefaultSchedule, by attribute `tir.finite_params` of a private kernel, which of its parameters
/// are constants without infinities and NaN in every call; of those alone that taps of a padding are
/// multiplied with. Kernels are legalised and not scheduled.
IRModule annotate_finite_params(IRModule module);

/// Kernels get an attribute `layout_free_buffers`: the numbers of the parameters that are constants in
/// every call, of which a schedule may make others before the program runs. Those that others call too
/// get none. Where all constants together are larger than the target's second cache, these kernels also get
/// `tir.far_constants`. `AttachAttrLayoutFreeBuffers` to users.
IRModule attach_layout_free_buffers(IRModule module);

/// Of all that the graph functions of a module hold.
int64_t bytes_of_constants(const IRModule& module);

/// A kernel and the only one that reads its result, by a window that moves along with its own, become one:
/// it computes a few rows of what is between them at a time, and keeps those that the next rows of the
/// result need. Where that is larger than a part of the caches, or memory is scarce (target C), and
/// the program's peak does not grow. Results are the same bit by bit. `FuseRows` to users.
struct RowOptions {
  bool all = false;  // wherever it can be, whatever time and memory it takes
};
IRModule fuse_rows(IRModule module, const RowOptions& options = {});

/// What a kernel makes of such parameters alone, in blocks with annotation `layout_rewrite_preproc`,
/// becomes a kernel `NAME_preproc`, whose calls fold; the attribute goes. Requires: kernels are
/// scheduled. `SplitLayoutRewritePreproc` to users.
IRModule split_layout_rewrite_preproc(IRModule module);

/// A graph function of the module (legalised, no calls of others) as a PrimFunc: parameters, then
/// outputs; what LowerGraph does with `main`, without making it the entry. Extern functions that it
/// calls undeclared are added to `module`.
Ref<tir::PrimFunc> lower_function(IRModule& module, const Function& function);

/// Folds inference batch norms into the constant weights of the convolution (or matrix product)
/// before them; the arithmetic on weights is left to fold_constants. Others become a product and a
/// sum where their parameters are constants, else `nn.batch_norm_result`. Re-associating.
IRModule fold_batchnorm(IRModule module);

/// Replaces layers that are made of other operators (nn.lstm, nn.gru, nn.rnn, nn.gemm) by these:
/// their weights' transposes then fold, and their products are packed like any other. Run it before
/// fold_constants. `DecomposeOpsForInference` to users.
IRModule decompose_ops(IRModule module);

/// Computes before a loop what no iteration of it changes, where the loop runs at least once, and
/// products of slices by such values for all slices at once. Re-associating.
IRModule hoist_from_loops(IRModule module);

/// Replaces operator chains by the operator that they spell: layer norm over the last axis, SiLU,
/// powers by 0.5, 1, 2 and 3, casts to the same type, transposes and reshapes in a row.
/// Re-associating.
IRModule simplify_graph(IRModule module);

/// Makes sums of integers of convolutions and matrix products of dequantised operands with constant
/// scales and zero points (that of integer data may be the run's). What only moves or compares does
/// so with the integers. Run it before fold_constants, which dequantises weights. Re-associating.
IRModule fake_quantization_to_integer(IRModule module);

/// Blocks the channels of convolutions by the target's vector width (NCHW{V}c), packs their
/// weights, and keeps the layout through pooling and element-wise operators; conversions only where
/// such a region begins and ends. Requires: static channel counts, module attr `target`.
IRModule convert_layout(IRModule module);

/// `R.call_tir` becomes `R.call_tir_inplace` where a result can take the memory of an argument that
/// a call of the function made and nobody needs afterwards: the kernel must read each element
/// before it stores it (tir/schedule/in_place.h). Kernels are copied where they are called in both
/// ways. Requires: legalised; run it when kernels are scheduled. `DataflowUseInplaceCalls` to
/// users.
IRModule use_inplace_calls(IRModule module);
/// The same where `may_share` says whether a kernel's input and output may be one memory, in the place of
/// tir::may_share_memory.
using MayShareMemory =
    std::function<bool(const tir::PrimFunc& kernel, size_t input, size_t output)>;
IRModule use_inplace_calls(IRModule module, const MayShareMemory& may_share);

/// Lowers graph function `main` to one PrimFunc of allocations and T.call_tir; graph functions that
/// it does not call are dropped, with a remark. Requires: legalised, fused.
/// \throws CompileError (kUnsupported) at closures, opaque objects and calls that only the
/// interpreter runs.
IRModule lower_graph(IRModule module);

/// The target in the module's attribute `target`. \throws CompileError (kBadOption) where it is
/// missing.
Target target_of(const IRModule& module);

}  // namespace tenon::graph
