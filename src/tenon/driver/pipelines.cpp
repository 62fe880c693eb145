// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/pipelines.h"

#include "tenon/driver/passes.h"
#include "tenon/driver/usage.h"

namespace tenon {

static constexpr PipelineStep kPlace[] = {
    {"AssertWindows", "of operators as they were written, whatever computes them"},
    {"SelectKernels", "one's own kernels first: no other pass takes their operators apart"},
    {"InlineFunctions", "what no back end took is compiled with everything else"},
};

static constexpr PipelineStep kCleanUp[] = {
    {"DecomposeOpsForInference", "the weights of layers that are made of others fold and pack too"},
    {"FakeQuantizationToInteger", "before weights are dequantised"},
    {"FoldConstant", "shapes and weights that the model computes become constants"},
    {"SimplifyGraph", "chains that spell one operator cost one kernel, and later rules see it"},
    {"SelectKernels", "operators that simplifying spelled, before a back end may take them"},
    {"FoldBatchnormToConv2D", "leaves arithmetic on weights, which the next step computes"},
    {"FoldConstant", "weights scaled by batch norms"},
    {"SelectKernels", "groups with the biases that batch norms became"},
    {"EliminateCommonSubexpr", "after folding, which makes calls equal"},
    {"HoistFromLoops", "while products are operators, which are packed where they stand"},
    {"DeadCodeElimination", "what folding left behind"},
};

// Without back ends (module attribute `libs`, attributes `placement`) these do nothing.
static constexpr PipelineStep kPlaceBackends[] = {
    {"AnnotatePlacement", "after cleaning up: patterns see the operators that are left to compute"},
    {"DispatchPlacement", "does what attributes say, whoever wrote them"},
    {"MergeCompositeFunctions", "within a region a back end needs no conversions"},
    {"RunCodegen", "after merging: regions are what back ends make code for"},
    {"InlineFunctions", "what is called once more: regions around calls of libraries"},
};

static constexpr PipelineStep kLayout[] = {
    {"ConvertLayout", "before legalising: it chooses by operator and by the target's vectors"},
    {"FoldConstant", "packs weights at compile time"},
    {"DeadCodeElimination", "releases the weights that were packed"},
};

static constexpr PipelineStep kLegalise[] = {
    {"LegalizeOps", "from here on there is one kind of call"},
    {"EliminateCommonSubexpr", "lowerings repeat what they share"},
    {"DeadCodeElimination", "results of lowerings that nobody uses"},
};

static constexpr PipelineStep kFuse[] = {
    {"FuseOps", "groups what can run as one kernel"},
    {"FuseTIR", "intermediates of a group need no storage of their own"},
    {"DeadCodeElimination", "kernels that were fused into others, before they are scheduled"},
    {"SplitCallTIRByPattern", "back ends' patterns over TensorIR see all that became one kernel"},
    {"RunCodegen", "takes the kernels that they found"},
    {"InlineFunctions", "as after placing"},
};

static constexpr PipelineStep kSchedule[] = {
    {"SpecializeCalls", "kernels that kernels call are scheduled for the sizes at hand"},
    {"NameDims", "schedules see sizes, not what sizes are computed from"},
    {"EliminateCommonCalls", "before a call may become statements, which are not compared"},
    {"RemoveDeadCalls", "what nobody reads is not scheduled"},
    {"InlineCalls", "before scheduling: the body is scheduled with what surrounds it"},
    {"VerifyParallelLoops", "sizes are known, and indices are as their author wrote them"},
    {"InstrumentBoundCheckers", "sizes are as fixed as they get, and no schedule hides an index"},
    {"AnnotateFiniteParams",
     "schedules leave out taps of a padding where their weights are finite"},
    {"AttachAttrLayoutFreeBuffers", "forms of convolutions with other filters need constant ones"},
    {"AnnotateScratchRoom", "forms that need memory are taken where the program's peak stays"},
    {"FuseRows", "the peak falls after forms that are faster got their room"},
    {"GrowScratchRoom", "what is left of the peak makes the same forms faster"},
    {"DefaultSchedule", "after fusion: it tiles the contraction together with what follows it"},
    {"SplitLayoutRewritePreproc", "after scheduling, which says what is made of constants"},
    {"FoldConstant", "what is made of constants is made now"},
    {"DeadCodeElimination", "releases the filters of which others were made"},
};

static constexpr PipelineStep kLowerMain[] = {
    {"DataflowUseInplaceCalls", "kernels are scheduled: what they read and store when is settled"},
    {"LowerGraph", "the whole program becomes TensorIR"},
};

static constexpr PipelineStep kLower[] = {
    {"InjectSoftwarePipeline", "statements are stages while they are still told apart"},
    {"LowerInitBlock", "the next steps see plain statements only"},
    {"PlanAndUpdateBufferAllocationLocation", "a buffer lives in the loop that uses it"},
    {"ConvertBlocksToOpaque", "regions are now in terms of loops"},
    {"CompactBufferAllocation", "needs these regions"},
    {"LowerMatchBuffer", "before blocks go, which hold the views"},
    {"LowerOpaqueBlock", "no blocks from here on"},
    {"Simplify", "what the bindings left in indices"},
    {"HoistFactors", "sums are plain loops, and their registers still buffers"},
    {"JoinParallelLoops",
     "memory that functions share is known, and scratch is not yet that of a loop"},
    {"LiftScratch", "scratch of kernels is planned with everything else"},
    {"ElideConcats", "all that is alive beside the tensors is known now"},
    {"PlanMemory", "every allocation is known now, and none is made after it"},
    {"OutlineMain", "code generation is slow on functions of many thousand statements"},
    {"BoundLoops", "loops are plain, and vectors not yet made"},
    {"FlattenBuffer", "vectors are ramps over one index"},
    {"VectorizeLoop", "before the passes on arithmetic, which then see vectors"},
    {"Simplify", "indices of vectors"},
    {"FuseMultiplyAdd", "before the arithmetic of elementary functions, which states its own"},
    {"LowerIntrinsics", "code generation calls no mathematical library"},
    {"RemoveNoOp", "what the others left empty"},
    {"BoundUnrolling", "last: code generation makes the copies of what it leaves"},
};

std::span<const Stage> stages() {
  static constexpr Stage kStages[] = {
      {"place", kPlace},       {"clean up", kCleanUp},     {"place back ends", kPlaceBackends},
      {"layout", kLayout},     {"legalise", kLegalise},    {"fuse", kFuse},
      {"schedule", kSchedule}, {"lower main", kLowerMain}, {"lower", kLower},
  };
  return kStages;
}

Pipeline standard_pipeline() {
  Pipeline pipeline;
  for (const Stage& stage : stages()) {
    for (const PipelineStep& step : stage.steps) {
      auto pass = find_pass(step.pass);
      check(pass.has_value(), "a pipeline names a pass that does not exist");
      pipeline.push_back(std::move(*pass));
    }
  }
  return pipeline;
}

std::string pipeline_text() {
  std::string text =
      "# The standard pipeline. One pass a line; options as in PlanMemory(work_limit=1000).\n";
  for (const Stage& stage : stages()) {
    text += fmt::format("\n# -- {}\n", stage.name);
    for (const PipelineStep& step : stage.steps)
      text += fmt::format("{:<40} # {}\n", step.pass, step.reason);
  }
  return text;
}

Pipeline pipeline_until(std::string_view name, Pipeline pipeline) {
  for (size_t i = pipeline.size(); i-- > 0;) {
    if (pipeline[i].name != name) continue;
    pipeline.resize(i + 1);
    return pipeline;
  }
  std::string_view why = find_pass(name) ? "the pipeline does not contain pass" : "no pass";
  throw UsageError("{} `{}`; `tenon passes` lists the pipeline", why, name);
}

}  // namespace tenon
