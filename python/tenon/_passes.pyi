# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon._stubs` from the compiler's tables.
from typing import Any

from tenon._core import Pass

def BindParams(*, params: dict[str, Any] | str, func_name: str = "main") -> Pass:
    """Makes constants of parameters.

    Form: any. Precision: exact.

    Args:
        params: values by name (.npy files, numbers, lists of numbers), or a file of relay.save_param_dict
        func_name: the function whose parameters they are
    """

def BindSymbolicVars(*, binding_map: dict[str, Any], func_name: str | None = None) -> Pass:
    """Gives symbolic dimensions of parameters sizes.

    Form: any. Precision: exact.

    Args:
        binding_map: sizes of dimensions by their names
        func_name: the function; None: all of them
    """

def ShareBuffers(*, pairs: list[str]) -> Pass:
    """Lays results into the memory of parameters: caches grow in place.

    Form: graph. Precision: exact.

    Args:
        pairs: "INPUT=OUTPUT", with one * in each for many: "past.*=present.*"
    """

def AssertWindows() -> Pass:
    """Asserts that windows over symbolic axes are no larger than these.

    Form: graph. Precision: exact.
    """

def LiftTransformParams(*, shared_transform: bool | list[str] = False) -> Pass:
    """Moves what depends on weights alone into a function of its own.

    Form: any. Precision: exact.

    Args:
        shared_transform: one function for all, or for these
    """

def FuseOpsByPattern(*, backend: str = "", bind_constants: bool | None = None, annotate_codegen: bool = False, extra_outputs: bool = False, file: str = "") -> Pass:
    """Makes composites of what matches patterns: a back end's, or the module's.

    Form: graph. Precision: exact.

    Args:
        backend: whose patterns; empty: those of the module
        bind_constants: constants go into composites; None: as the back end needs it
        annotate_codegen: each composite becomes a function of its back end
        extra_outputs: what is used outside of a match becomes an output of it
        file: of patterns, instead
    """

def MergeCompositeFunctions() -> Pass:
    """Joins neighbouring composites of one back end into regions.

    Form: graph. Precision: exact.
    """

def MergeComposite(*, backend: str = "") -> Pass:
    """Relay's FuseOpsByPattern: with attribute PartitionedFromPattern.

    Form: graph. Precision: exact.

    Args:
        backend: whose patterns; empty: those of the module
    """

def AnnotateTarget(*, targets: list[str]) -> Pass:
    """Puts what back ends take into regions of one call each.

    Form: graph. Precision: exact.

    Args:
        targets: back ends, in order of preference
    """

def MergeCompilerRegions() -> Pass:
    """Joins neighbouring regions of one back end.

    Form: graph. Precision: exact.
    """

def PartitionGraph(*, mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """Names regions tvmgen_..., with the attributes that back ends look for.

    Form: graph. Precision: exact.

    Args:
        mod_name: in the names of regions
        bind_constants: constants go into regions
    """

def OutlineCompilerFunctionsWithExistingGlobalSymbols(*, compiler: str = "") -> Pass:
    """Makes regions inside of functions functions of the module.

    Form: graph. Precision: exact.

    Args:
        compiler: back end; empty: all
    """

def RunCodegen(*, backend: str = "", function: str = "", symbol: str = "", options: dict[str, Any] | None = None) -> Pass:
    """Hands regions and composites, or one function, to their back ends.

    Form: graph. Precision: re-associating.

    Args:
        backend: empty: all
        function: one function of the module, for this back end
        symbol: of that function
        options: of the back end
    """

def CallByName(*, backend: str) -> Pass:
    """Makes composites of a back end calls of library functions of their names.

    Form: graph. Precision: re-associating.

    Args:
        backend: the name that composites begin with
    """

def SelectKernels() -> Pass:
    """Replaces operators by R.call_tir of the module's own kernels for them.

    Form: graph. Precision: re-associating.
    """

def AnnotatePlacement(*, libs: list[str] | None = None) -> Pass:
    """Chooses what back ends take, and writes it into attributes.

    Form: graph. Precision: exact.

    Args:
        libs: back ends; None: those that the module names
    """

def DispatchPlacement() -> Pass:
    """Makes composites of what attributes place in back ends.

    Form: graph. Precision: exact.
    """

def RewritePatterns(*, file: str, max_rounds: int = 64) -> Pass:
    """Replaces what the patterns of a file's rewriters match.

    Form: graph. Precision: re-associating.

    Args:
        file: of rewriters
        max_rounds: over the module, while anything matches
    """

def InlineFunctions() -> Pass:
    """Puts bodies of graph functions in the places of their calls.

    Form: graph. Precision: exact.
    """

def DecomposeOpsForInference() -> Pass:
    """Replaces recurrent layers and `nn.gemm` by what they are made of.

    Form: graph. Precision: re-associating.
    """

def FakeQuantizationToInteger() -> Pass:
    """Makes integer products of what stands between `dequantize` and `quantize`.

    Form: graph. Precision: re-associating.
    """

def SimplifyGraph() -> Pass:
    """Replaces chains of operators by the one operator that they spell.

    Form: graph. Precision: re-associating.
    """

def HoistFromLoops() -> Pass:
    """Computes before a loop what no iteration changes, and products of all slices at once.

    Form: graph. Precision: re-associating.
    """

def FoldBatchnormToConv2D() -> Pass:
    """Folds inference batch norms into the weights before them.

    Form: graph. Precision: re-associating.
    """

def FoldConstant() -> Pass:
    """Replaces pure calls on constants by their value.

    Form: graph. Precision: exact.
    """

def EliminateCommonSubexpr() -> Pass:
    """Binds equal pure calls once.

    Form: graph. Precision: exact.
    """

def DeadCodeElimination() -> Pass:
    """Removes bindings and private functions that nobody uses.

    Form: graph. Precision: exact.
    """

def ConvertLayout() -> Pass:
    """Blocks channels by the target's vector width and packs weights to match.

    Form: graph. Precision: re-associating.
    """

def LegalizeOps() -> Pass:
    """Replaces every operator by R.call_tir of its PrimFunc.

    Form: graph. Precision: exact.
    """

def SplitCallTIRByPattern(*, backend: str | None = None, copy_layouts: bool = True) -> Pass:
    """Divides kernels in which patterns over TensorIR match: before, the match, after.

    Form: legalised. Precision: re-associating.

    Args:
        backend: whose patterns; None: of all that may be used
        copy_layouts: arguments are copied where a pattern wants another layout
    """

def FuseOps() -> Pass:
    """Groups calls of PrimFuncs that can run as one kernel.

    Form: legalised. Precision: exact.
    """

def FuseTIR() -> Pass:
    """Composes the PrimFuncs of each group into one.

    Form: legalised. Precision: exact.
    """

def AttachAttrLayoutFreeBuffers() -> Pass:
    """Tells kernels which of their arguments are constants in every call, and whether the second cache holds all constants.

    Form: legalised. Precision: exact.
    """

def FuseRows(*, all: bool = False) -> Pass:
    """Computes what is between two kernels row by row, where the second one reads it by a window.

    Form: legalised. Precision: exact.

    Args:
        all: wherever it can be, whatever time and memory it takes
    """

def SplitLayoutRewritePreproc() -> Pass:
    """Takes out of kernels what they make of constants alone, so that it folds.

    Form: legalised. Precision: exact.
    """

def DataflowUseInplaceCalls() -> Pass:
    """Lets kernels write over arguments that nobody needs afterwards.

    Form: legalised. Precision: exact.
    """

def LowerGraph() -> Pass:
    """Lowers graph function `main` to a PrimFunc of allocations and T.call_tir.

    Form: legalised. Precision: exact.
    """

def SpecializeCalls() -> Pass:
    """Copies PrimFuncs for the constant dimensions that calls give them.

    Form: any. Precision: exact.
    """

def NameDims() -> Pass:
    """Makes dimensions of kernels symbols that their buffers define.

    Form: legalised. Precision: exact.
    """

def AnnotateFiniteParams() -> Pass:
    """Says which weights of padded convolutions are constants without infinities and NaN.

    Form: legalised. Precision: exact.
    """

def AnnotateScratchRoom() -> Pass:
    """Says how much memory of their own kernels may take before the program needs more.

    Form: legalised. Precision: exact.
    """

def GrowScratchRoom() -> Pass:
    """Says how much memory of their own kernels may take below the peak that is left.

    Form: legalised. Precision: exact.
    """

def EliminateCommonCalls() -> Pass:
    """Drops calls that were made before with the same inputs.

    Form: any. Precision: exact.
    """

def RemoveDeadCalls() -> Pass:
    """Drops calls that write only what nobody reads.

    Form: any. Precision: exact.
    """

def InlineCalls(*, all: bool = False) -> Pass:
    """Puts the bodies of PrimFuncs in the place of calls of them.

    Form: any. Precision: exact.

    Args:
        all: also calls that would make the module larger
    """

def Tensorize(*, function: str = "", block: str = "", loop: str = "", description: str = "", implementation: str = "") -> Pass:
    """Puts a call of a kernel in the place of a loop that does the same.

    Form: any. Precision: re-associating.

    Args:
        function: the PrimFunc; empty: the only one
        block: the block whose loops are replaced
        loop: the loop that is replaced, instead
        description: the PrimFunc that says what the kernel computes
        implementation: the PrimFunc that is called
    """

def VerifyParallelLoops() -> Pass:
    """Refuses parallel loops whose iterations touch one element and write it.

    Form: any. Precision: exact.
    """

def InstrumentBoundCheckers(*, unchecked: bool = False) -> Pass:
    """Checks at run time what is not proved to lie inside its buffer.

    Form: any. Precision: exact.

    Args:
        unchecked: nothing is checked at run time
    """

def DefaultSchedule() -> Pass:
    """Schedules each PrimFunc for the target by its structure.

    Form: any. Precision: re-associating.
    """

def InjectSoftwarePipeline() -> Pass:
    """Runs the stages of loops marked as pipelines at the same time.

    Form: TensorIR with blocks. Precision: exact.
    """

def LowerInitBlock() -> Pass:
    """Makes the init of a reduction a branch of its body.

    Form: TensorIR with blocks. Precision: exact.
    """

def PlanAndUpdateBufferAllocationLocation() -> Pass:
    """Moves each buffer to the innermost loop that holds all its uses.

    Form: TensorIR with blocks. Precision: exact.
    """

def ConvertBlocksToOpaque() -> Pass:
    """Replaces axes of blocks by the values bound to them.

    Form: TensorIR with blocks. Precision: exact.
    """

def CompactBufferAllocation() -> Pass:
    """Shrinks local buffers to what is accessed.

    Form: TensorIR with blocks. Precision: exact.
    """

def LowerMatchBuffer() -> Pass:
    """Replaces views that blocks declare by what they view.

    Form: TensorIR with blocks. Precision: exact.
    """

def LowerOpaqueBlock() -> Pass:
    """Replaces blocks by statements and branches.

    Form: TensorIR with blocks. Precision: exact.
    """

def Simplify() -> Pass:
    """Brings indices and conditions to canonical form.

    Form: any. Precision: exact.
    """

def HoistFactors() -> Pass:
    """Multiplies sums once by the factors that their terms share.

    Form: lowered. Precision: re-associating.
    """

def JoinParallelLoops() -> Pass:
    """Makes one loop of parallel loops, and what follows them, that are free of each other.

    Form: lowered. Precision: exact.
    """

def LiftScratch() -> Pass:
    """Makes large buffers of kernels parameters that `main` allocates.

    Form: lowered. Precision: exact.
    """

def ElideConcats() -> Pass:
    """Lets kernels write their results where a concatenation wants them.

    Form: lowered. Precision: exact.
    """

def PlanMemory(*, work_limit: int = 500000000) -> Pass:
    """Places every allocation of `main` in one workspace.

    Form: lowered. Precision: exact.

    Args:
        work_limit: units of work spent on a better plan; 10^9 take about a second
    """

def OutlineMain(*, most_statements: int = 1024) -> Pass:
    """Cuts a very long entry function into pieces.

    Form: lowered. Precision: exact.

    Args:
        most_statements: of a piece
    """

def BoundLoops() -> Pass:
    """Ends loops at the symbolic bound that their bodies ask for.

    Form: lowered. Precision: exact.
    """

def FlattenBuffer() -> Pass:
    """Gives every access one index.

    Form: lowered. Precision: exact.
    """

def VectorizeLoop() -> Pass:
    """Replaces loops marked vectorized by vector statements.

    Form: lowered. Precision: exact.
    """

def BoundUnrolling() -> Pass:
    """Makes loops serial whose unrolling is too much code.

    Form: lowered. Precision: exact.
    """

def UnrollLoop() -> Pass:
    """Replaces loops marked unrolled by copies.

    Form: lowered. Precision: exact.
    """

def FuseMultiplyAdd() -> Pass:
    """Joins multiplications and additions of floats.

    Form: lowered. Precision: re-associating.
    """

def LowerIntrinsics() -> Pass:
    """Replaces exp, tanh, erf, ... by arithmetic.

    Form: lowered. Precision: re-associating.
    """

def RemoveNoOp() -> Pass:
    """Drops statements that do nothing.

    Form: lowered. Precision: exact.
    """
