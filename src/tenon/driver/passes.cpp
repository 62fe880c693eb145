// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/passes.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tenon/driver/backend_context.h"
#include "tenon/driver/bind_options.h"
#include "tenon/driver/console.h"
#include "tenon/driver/evaluate.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"
#include "tenon/memory/elide_concats.h"
#include "tenon/memory/plan_module.h"
#include "tenon/memory/scratch_room.h"
#include "tenon/script/pattern_file.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/parallel_races.h"
#include "tenon/tir/call_transforms.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/tensorize.h"
#include "tenon/tir/transforms.h"
#include "tenon/tune/kernel_placement.h"
#include "tenon/tune/placement.h"

namespace tenon {

namespace {

using Function = std::function<IRModule(IRModule, const Attrs&)>;

IRModule run_fold_constants(IRModule module, const Attrs&) {
  return graph::fold_constants(std::move(module), constant_evaluator());
}

IRModule run_plan_memory(IRModule module, const Attrs& options) {
  memory::PlanOptions plan;
  if (const AttrValue* limit = options.find("work_limit")) {
    const auto* units = limit->as<int64_t>();
    if (!units || *units < 0)
      throw CompileError(kBadOption, {},
                         "option `work_limit` of `PlanMemory` is {}; expected a number of units of "
                         "at least 0",
                         limit->str());
    plan.work_limit = *units;
  }
  return memory::plan_memory(std::move(module), plan);
}

IRModule run_outline_main(IRModule module, const Attrs& options) {
  const int64_t most = options.get<int64_t>("most_statements").value_or(1024);
  if (most < 1)
    throw CompileError(kBadOption, {},
                       "option `most_statements` of `OutlineMain` is {}; expected at least 1",
                       most);
  return tir::outline_main(std::move(module), most);
}

IRModule run_call_by_name(IRModule module, const Attrs& options) {
  const auto backend = options.get<std::string>("backend");
  if (!backend || backend->empty())
    throw CompileError(kBadOption, {},
                       "option `backend` of `CallByName` is missing; expected the name that "
                       "composites begin with: CallByName(backend=\"toy\")");
  std::vector<std::string> others;  // whose composites there are
  bool has_composite = false;
  for (const auto& [name, function] : module.functions())
    for (const char* attribute : {"Composite", "Pattern"}) {
      const auto composite = function->attrs.get<std::string>(attribute);
      if (!composite) continue;
      const std::string other = composite->substr(0, composite->find('.'));
      has_composite |= other == *backend;
      if (std::find(others.begin(), others.end(), other) == others.end()) others.push_back(other);
    }
  const auto known = graph::find_backend(*backend);
  if (!has_composite && !(known && !known->patterns.empty())) {
    std::string detail;
    for (const std::string& other : others)
      detail += (detail.empty() ? "its composites are of `" : ", `") + other + "`";
    record({"CallByName", *backend, "unmatched", "", {}, detail, {}});
  }
  return graph::run_backend(std::move(module), graph::call_by_name(*backend), {});
}

IRModule run_split_call_tir(IRModule module, const Attrs& options) {
  graph::SplitOptions split;
  if (const AttrValue* copies = options.find("copy_layouts")) {
    if (!copies->as<bool>())
      throw CompileError(kBadOption, {},
                         "option `copy_layouts` of `SplitCallTIRByPattern` is {}; expected True or "
                         "False",
                         copies->str());
    split.copy_layouts = *copies->as<bool>();
  }
  if (const AttrValue* name = options.find("backend")) {
    const auto* text = name->as<std::string>();
    const auto backend = text ? graph::find_backend(*text) : nullptr;
    if (!backend)
      throw CompileError(kBadOption, {},
                         "option `backend` of `SplitCallTIRByPattern` is {}; expected the name of "
                         "a back end",
                         name->str());
    for (const graph::FusionPattern& pattern : backend->patterns)
      if (pattern.tir) split.patterns.push_back(pattern);
    if (split.patterns.empty()) return module;
  } else {
    // As part of a pipeline: the patterns of all that may be used, beside the graph's.
    const bool copies = split.copy_layouts;
    split = tune::kernel_placement(module);
    split.copy_layouts = copies;
    graph::take_kernel_patterns(module);
    graph::UserPlacement user = graph::UserPlacement::of(module);
    user.kernels.clear();
    module = user.in(std::move(module));
    if (split.patterns.empty() && split.user_placement.empty()) return module;
  }
  return graph::split_call_tir_by_pattern(std::move(module), split);
}

IRModule run_tensorize(IRModule module, const Attrs& options) {
  const auto text = [&](const char* key) {
    return options.get<std::string>(key).value_or(std::string());
  };
  if (text("block").empty() == text("loop").empty())
    throw CompileError(kBadOption, {},
                       "`Tensorize` takes option `block` or option `loop`; expected one of both");
  return tir::tensorize(std::move(module), {text("function"), text("block"), text("loop"),
                                            text("description"), text("implementation")});
}

// True or False, or an integer as C writes them.
static bool flag_of(const char* pass, const Attrs& options, const char* name) {
  const AttrValue* value = options.find(name);
  if (value && !value->is_none() && !value->as<bool>() && !value->as<int64_t>())
    throw CompileError(kBadOption, {}, "option `{}` of `{}` is {}; expected True or False", name,
                       pass, value->str());
  return options.flag(name);
}

std::string text_option(const char* pass, const Attrs& options, const char* name) {
  const AttrValue* value = options.find(name);
  if (!value || value->is_none()) return "";
  if (const auto* text = value->as<std::string>()) return *text;
  throw CompileError(kBadOption, {}, "option `{}` of `{}` is {}; expected a string", name, pass,
                     value->str());
}

std::shared_ptr<const graph::Backend> named_backend(const char* pass, const std::string& name) {
  if (auto backend = graph::find_backend(name)) return backend;
  throw CompileError(kBadOption, {}, "option `backend` of `{}` is `{}`; there is no such back end",
                     pass, name);
}

IRModule run_fuse_ops_by_pattern(IRModule module, const Attrs& options) {
  graph::FuseOptions fuse;
  if (options.contains("bind_constants"))
    fuse.bind_constants = flag_of("FuseOpsByPattern", options, "bind_constants");
  fuse.annotate_codegen = flag_of("FuseOpsByPattern", options, "annotate_codegen");
  fuse.extra_outputs = flag_of("FuseOpsByPattern", options, "extra_outputs");
  const std::string name = text_option("FuseOpsByPattern", options, "backend");
  const std::string file = text_option("FuseOpsByPattern", options, "file");
  if (!file.empty()) {
    const auto source = std::make_shared<const SourceFile>(SourceFile{file, read_file(file)});
    const script::PatternFile read = script::read_pattern_file(source, {.backend = name});
    fuse.tells_unmatched = true;
    return graph::fuse_ops_by_pattern(std::move(module), read.patterns, fuse);
  }
  if (name.empty()) return graph::fuse_ops_by_pattern(std::move(module), fuse);
  const auto backend = named_backend("FuseOpsByPattern", name);
  const std::vector<graph::FusionPattern>& patterns = backend->patterns;
  if (patterns.empty()) return module;
  // A C function has no other way to its weights.
  if (!options.contains("bind_constants")) fuse.bind_constants = !backend->by_name;
  fuse.tells_unmatched = std::any_of(patterns.begin(), patterns.end(),
                                     [](const auto& pattern) { return pattern.is_users; });
  return graph::fuse_ops_by_pattern(std::move(module), patterns, fuse);
}

IRModule run_merge_composite(IRModule module, const Attrs& options) {
  const std::string name = text_option("MergeComposite", options, "backend");
  if (name.empty()) return graph::merge_composite(std::move(module));
  const auto backend = named_backend("MergeComposite", name);
  if (backend->patterns.empty()) return module;
  return graph::merge_composite(std::move(module), backend->patterns);
}

IRModule run_annotate_target(IRModule module, const Attrs& options) {
  std::vector<std::string> targets;
  if (const auto one = options.get<std::string>("targets"))
    targets = {*one};
  else if (const auto list = options.strings("targets"))
    targets = *list;
  if (targets.empty())
    throw CompileError(kBadOption, {},
                       "option `targets` of `AnnotateTarget` is missing; expected back ends: "
                       "AnnotateTarget(targets=[\"dnnl\"])");
  return graph::annotate_target(std::move(module), targets);
}

IRModule run_partition_graph(IRModule module, const Attrs& options) {
  graph::PartitionOptions partition;
  if (std::string name = text_option("PartitionGraph", options, "mod_name"); !name.empty())
    partition.mod_name = std::move(name);
  if (options.contains("bind_constants"))
    partition.bind_constants = flag_of("PartitionGraph", options, "bind_constants");
  return graph::partition_graph(std::move(module), partition);
}

IRModule run_outline_compiler_functions(IRModule module, const Attrs& options) {
  constexpr const char* kPass = "OutlineCompilerFunctionsWithExistingGlobalSymbols";
  return graph::outline_compiler_functions(std::move(module),
                                           text_option(kPass, options, "compiler"));
}

IRModule run_run_codegen(IRModule module, const Attrs& options) {
  graph::CodegenRequest request;
  request.backend = text_option("RunCodegen", options, "backend");
  request.function = text_option("RunCodegen", options, "function");
  request.symbol = text_option("RunCodegen", options, "symbol");
  if (request.backend.empty() && !request.function.empty())
    throw CompileError(kBadOption, {},
                       "option `backend` of `RunCodegen` is missing; expected the back end that "
                       "takes function `{}`",
                       request.function);
  if (request.function.empty() && !request.symbol.empty())
    throw CompileError(kBadOption, {},
                       "option `symbol` of `RunCodegen` is `{}`, and there is no `function` that "
                       "it names",
                       request.symbol);
  if (const AttrValue* given = options.find("options"); given && !given->is_none()) {
    const auto* map = given->as<AttrValue::Map>();
    if (!map)
      throw CompileError(kBadOption, {},
                         "option `options` of `RunCodegen` is {}; expected a dictionary",
                         given->str());
    request.options = *map;
  }
  return graph::run_codegen(std::move(module), request, backend_context());
}

IRModule run_annotate_placement(IRModule module, const Attrs& options) {
  const AttrValue* libs = options.find("libs");
  if (libs && !options.strings("libs"))
    throw CompileError(kBadOption, {},
                       "option `libs` of `AnnotatePlacement` is {}; expected a list of back ends",
                       libs->str());
  graph::UserPlacement user = graph::UserPlacement::of(module);
  user.backends = libs ? *options.strings("libs") : tune::libs_of(module);
  return tune::annotate_placement(std::move(module), user);
}

IRModule run_dispatch_placement(IRModule module, const Attrs&) {
  return tune::dispatch_placement(std::move(module));
}

IRModule run_inline_calls(IRModule module, const Attrs& options) {
  return tir::inline_calls(std::move(module), flag_of("InlineCalls", options, "all"));
}

IRModule run_fuse_rows(IRModule module, const Attrs& options) {
  return graph::fuse_rows(std::move(module), {.all = flag_of("FuseRows", options, "all")});
}

IRModule run_instrument_bound_checkers(IRModule module, const Attrs& options) {
  return tir::instrument_bound_checkers(
      std::move(module), {.unchecked = flag_of("InstrumentBoundCheckers", options, "unchecked")});
}

IRModule run_rewrite_patterns(IRModule module, const Attrs& options) {
  const auto file = options.get<std::string>("file");
  if (!file)
    throw CompileError(kBadOption, {},
                       "option `file` of `RewritePatterns` is missing; expected a file of "
                       "rewriters: RewritePatterns(file=\"rules.py\")");
  const int64_t rounds = options.get<int64_t>("max_rounds").value_or(64);
  if (rounds < 1 || rounds > 100000)
    throw CompileError(kBadOption, {},
                       "option `max_rounds` of `RewritePatterns` is {}; expected 1 to 100000",
                       rounds);
  const auto source = std::make_shared<const SourceFile>(SourceFile{*file, read_file(*file)});
  const script::PatternFile patterns = script::read_pattern_file(source);
  if (patterns.rewriters.empty())
    throw CompileError(kBadPattern, Origin::script(source, 1, 1),
                       "no rewriter in this file; expected a class under `@R.rewriter` with "
                       "functions `pattern` and `replacement`");
  return patterns.rewriter()(std::move(module), {.max_rounds = static_cast<int>(rounds)});
}

struct Row {
  const char* name;
  const char* summary;
  Form needs;
  Precision precision;
  IRModule (*function)(IRModule);  // null where `run` takes options
  Function run = {};
  std::vector<PassOption> options = {};
};

std::vector<Row> make_rows() {
  constexpr auto kExact = Precision::kExact, kReassociating = Precision::kReassociating;
  return {
      // -- graph
      {"BindParams",
       "makes constants of parameters",
       Form::kAny,
       kExact,
       nullptr,
       run_bind_params,
       {{"params", "dict | str", "",
         "values by name (.npy files, numbers, lists of numbers), or a file of "
         "relay.save_param_dict"},
        {"func_name", "str", R"("main")", "the function whose parameters they are"}}},
      {"BindSymbolicVars",
       "gives symbolic dimensions of parameters sizes",
       Form::kAny,
       kExact,
       nullptr,
       run_bind_symbolic_vars,
       {{"binding_map", "dict", "", "sizes of dimensions by their names"},
        {"func_name", "str | None", "None", "the function; None: all of them"}}},
      {"ShareBuffers",
       "lays results into the memory of parameters: caches grow in place",
       Form::kGraph,
       kExact,
       nullptr,
       graph::share_buffers,
       {{"pairs", "list[str]", "",
         R"("INPUT=OUTPUT", with one * in each for many: "past.*=present.*")"}}},
      {"AssertWindows", "asserts that windows over symbolic axes are no larger than these",
       Form::kGraph, kExact, graph::assert_windows},
      {"LiftTransformParams",
       "moves what depends on weights alone into a function of its own",
       Form::kAny,
       kExact,
       nullptr,
       run_lift_transform_params,
       {{"shared_transform", "bool | list[str]", "False", "one function for all, or for these"}}},
      {"FuseOpsByPattern",
       "makes composites of what matches patterns: a back end's, or the module's",
       Form::kGraph,
       kExact,
       nullptr,
       run_fuse_ops_by_pattern,
       {{"backend", "str", R"("")", "whose patterns; empty: those of the module"},
        {"bind_constants", "bool | None", "None",
         "constants go into composites; None: as the back end needs it"},
        {"annotate_codegen", "bool", "False", "each composite becomes a function of its back end"},
        {"extra_outputs", "bool", "False",
         "what is used outside of a match becomes an output of it"},
        {"file", "str", R"("")", "of patterns, instead"}}},
      {"MergeCompositeFunctions", "joins neighbouring composites of one back end into regions",
       Form::kGraph, kExact, graph::merge_composite_functions},
      {"MergeComposite",
       "Relay's FuseOpsByPattern: with attribute PartitionedFromPattern",
       Form::kGraph,
       kExact,
       nullptr,
       run_merge_composite,
       {{"backend", "str", R"("")", "whose patterns; empty: those of the module"}}},
      {"AnnotateTarget",
       "puts what back ends take into regions of one call each",
       Form::kGraph,
       kExact,
       nullptr,
       run_annotate_target,
       {{"targets", "list[str]", "", "back ends, in order of preference"}}},
      {"MergeCompilerRegions", "joins neighbouring regions of one back end", Form::kGraph, kExact,
       graph::merge_compiler_regions},
      {"PartitionGraph",
       "names regions tvmgen_..., with the attributes that back ends look for",
       Form::kGraph,
       kExact,
       nullptr,
       run_partition_graph,
       {{"mod_name", "str", R"("default")", "in the names of regions"},
        {"bind_constants", "bool", "True", "constants go into regions"}}},
      {"OutlineCompilerFunctionsWithExistingGlobalSymbols",
       "makes regions inside of functions functions of the module",
       Form::kGraph,
       kExact,
       nullptr,
       run_outline_compiler_functions,
       {{"compiler", "str", R"("")", "back end; empty: all"}}},
      {"RunCodegen",
       "hands regions and composites, or one function, to their back ends",
       Form::kGraph,
       kReassociating,
       nullptr,
       run_run_codegen,
       {{"backend", "str", R"("")", "empty: all"},
        {"function", "str", R"("")", "one function of the module, for this back end"},
        {"symbol", "str", R"("")", "of that function"},
        {"options", "dict | None", "None", "of the back end"}}},
      {"CallByName",
       "makes composites of a back end calls of library functions of their names",
       Form::kGraph,
       kReassociating,
       nullptr,
       run_call_by_name,
       {{"backend", "str", "", "the name that composites begin with"}}},
      {"SelectKernels", "replaces operators by R.call_tir of the module's own kernels for them",
       Form::kGraph, kReassociating, graph::select_kernels},
      {"AnnotatePlacement",
       "chooses what back ends take, and writes it into attributes",
       Form::kGraph,
       kExact,
       nullptr,
       run_annotate_placement,
       {{"libs", "list[str] | None", "None", "back ends; None: those that the module names"}}},
      {"DispatchPlacement", "makes composites of what attributes place in back ends", Form::kGraph,
       kExact, nullptr, run_dispatch_placement},
      {"RewritePatterns",
       "replaces what the patterns of a file's rewriters match",
       Form::kGraph,
       kReassociating,
       nullptr,
       run_rewrite_patterns,
       {{"file", "str", "", "of rewriters"},
        {"max_rounds", "int", "64", "over the module, while anything matches"}}},
      {"InlineFunctions", "puts bodies of graph functions in the places of their calls",
       Form::kGraph, kExact, graph::inline_functions},
      {"DecomposeOpsForInference",
       "replaces recurrent layers and `nn.gemm` by what they are made of", Form::kGraph,
       kReassociating, graph::decompose_ops},
      {"FakeQuantizationToInteger",
       "makes integer products of what stands between `dequantize` and `quantize`", Form::kGraph,
       kReassociating, graph::fake_quantization_to_integer},
      {"SimplifyGraph", "replaces chains of operators by the one operator that they spell",
       Form::kGraph, kReassociating, graph::simplify_graph},
      {"HoistFromLoops",
       "computes before a loop what no iteration changes, and products of all slices at once",
       Form::kGraph, kReassociating, graph::hoist_from_loops},
      {"FoldBatchnormToConv2D", "folds inference batch norms into the weights before them",
       Form::kGraph, kReassociating, graph::fold_batchnorm},
      {"FoldConstant", "replaces pure calls on constants by their value", Form::kGraph, kExact,
       nullptr, run_fold_constants},
      {"EliminateCommonSubexpr", "binds equal pure calls once", Form::kGraph, kExact,
       graph::eliminate_common_subexpr},
      {"DeadCodeElimination", "removes bindings and private functions that nobody uses",
       Form::kGraph, kExact, graph::eliminate_dead_code},
      {"ConvertLayout", "blocks channels by the target's vector width and packs weights to match",
       Form::kGraph, kReassociating, tune::convert_layout_beside_kernels},
      {"LegalizeOps", "replaces every operator by R.call_tir of its PrimFunc", Form::kGraph, kExact,
       graph::legalize_ops},
      {"SplitCallTIRByPattern",
       "divides kernels in which patterns over TensorIR match: before, the match, after",
       Form::kLegalised,
       kReassociating,
       nullptr,
       run_split_call_tir,
       {{"backend", "str | None", "None", "whose patterns; None: of all that may be used"},
        {"copy_layouts", "bool", "True",
         "arguments are copied where a pattern wants another layout"}}},
      {"FuseOps", "groups calls of PrimFuncs that can run as one kernel", Form::kLegalised, kExact,
       graph::fuse_ops},
      {"FuseTIR", "composes the PrimFuncs of each group into one", Form::kLegalised, kExact,
       graph::fuse_tir},
      {"AttachAttrLayoutFreeBuffers",
       "tells kernels which of their arguments are constants in every call, and whether the second "
       "cache holds all constants",
       Form::kLegalised, kExact, graph::attach_layout_free_buffers},
      {"FuseRows",
       "computes what is between two kernels row by row, where the second one reads it by a window",
       Form::kLegalised,
       kExact,
       nullptr,
       run_fuse_rows,
       {{"all", "bool", "False", "wherever it can be, whatever time and memory it takes"}}},
      {"SplitLayoutRewritePreproc",
       "takes out of kernels what they make of constants alone, so that it folds", Form::kLegalised,
       kExact, graph::split_layout_rewrite_preproc},
      {"DataflowUseInplaceCalls", "lets kernels write over arguments that nobody needs afterwards",
       Form::kLegalised, kExact,
       [](IRModule module) { return graph::use_inplace_calls(std::move(module)); }},
      {"LowerGraph", "lowers graph function `main` to a PrimFunc of allocations and T.call_tir",
       Form::kLegalised, kExact, graph::lower_graph},
      // -- TensorIR
      {"SpecializeCalls", "copies PrimFuncs for the constant dimensions that calls give them",
       Form::kAny, kExact, tir::specialize_calls},
      {"NameDims", "makes dimensions of kernels symbols that their buffers define",
       Form::kLegalised, kExact, graph::name_dims},
      {"AnnotateFiniteParams",
       "says which weights of padded convolutions are constants without infinities and NaN",
       Form::kLegalised, kExact, graph::annotate_finite_params},
      {"AnnotateScratchRoom",
       "says how much memory of their own kernels may take before the program needs more",
       Form::kLegalised, kExact, memory::annotate_scratch_room},
      {"GrowScratchRoom",
       "says how much memory of their own kernels may take below the peak that is left",
       Form::kLegalised, kExact, memory::grow_scratch_room},
      {"EliminateCommonCalls", "drops calls that were made before with the same inputs", Form::kAny,
       kExact, tir::eliminate_common_calls},
      {"RemoveDeadCalls", "drops calls that write only what nobody reads", Form::kAny, kExact,
       tir::remove_dead_calls},
      {"InlineCalls",
       "puts the bodies of PrimFuncs in the place of calls of them",
       Form::kAny,
       kExact,
       nullptr,
       run_inline_calls,
       {{"all", "bool", "False", "also calls that would make the module larger"}}},
      {"Tensorize",
       "puts a call of a kernel in the place of a loop that does the same",
       Form::kAny,
       kReassociating,
       nullptr,
       run_tensorize,
       {{"function", "str", R"("")", "the PrimFunc; empty: the only one"},
        {"block", "str", R"("")", "the block whose loops are replaced"},
        {"loop", "str", R"("")", "the loop that is replaced, instead"},
        {"description", "str", R"("")", "the PrimFunc that says what the kernel computes"},
        {"implementation", "str", R"("")", "the PrimFunc that is called"}}},
      {"VerifyParallelLoops",
       "refuses parallel loops whose iterations touch one element and write it", Form::kAny, kExact,
       tir::verify_parallel_loops},
      {"InstrumentBoundCheckers",
       "checks at run time what is not proved to lie inside its buffer",
       Form::kAny,
       kExact,
       nullptr,
       run_instrument_bound_checkers,
       {{"unchecked", "bool", "False", "nothing is checked at run time"}}},
      {"DefaultSchedule", "schedules each PrimFunc for the target by its structure", Form::kAny,
       kReassociating, nullptr, tir::default_schedule},
      {"InjectSoftwarePipeline", "runs the stages of loops marked as pipelines at the same time",
       Form::kTensorIR, kExact, tir::inject_software_pipeline},
      {"LowerInitBlock", "makes the init of a reduction a branch of its body", Form::kTensorIR,
       kExact, tir::lower_init_block},
      {"PlanAndUpdateBufferAllocationLocation",
       "moves each buffer to the innermost loop that holds all its uses", Form::kTensorIR, kExact,
       tir::plan_and_update_buffer_allocation_location},
      {"ConvertBlocksToOpaque", "replaces axes of blocks by the values bound to them",
       Form::kTensorIR, kExact, tir::convert_blocks_to_opaque},
      {"CompactBufferAllocation", "shrinks local buffers to what is accessed", Form::kTensorIR,
       kExact, tir::compact_buffer_allocation},
      {"LowerMatchBuffer", "replaces views that blocks declare by what they view", Form::kTensorIR,
       kExact, tir::lower_match_buffer},
      {"LowerOpaqueBlock", "replaces blocks by statements and branches", Form::kTensorIR, kExact,
       tir::lower_opaque_block},
      {"Simplify", "brings indices and conditions to canonical form", Form::kAny, kExact,
       tir::simplify},
      {"HoistFactors", "multiplies sums once by the factors that their terms share", Form::kLowered,
       kReassociating, tir::hoist_factors},
      {"JoinParallelLoops",
       "makes one loop of parallel loops, and what follows them, that are free of each other",
       Form::kLowered, kExact, tir::join_parallel_loops},
      {"LiftScratch", "makes large buffers of kernels parameters that `main` allocates",
       Form::kLowered, kExact, tir::lift_scratch},
      {"ElideConcats", "lets kernels write their results where a concatenation wants them",
       Form::kLowered, kExact, memory::elide_concats},
      {"PlanMemory",
       "places every allocation of `main` in one workspace",
       Form::kLowered,
       kExact,
       nullptr,
       run_plan_memory,
       {{"work_limit", "int", "500000000",
         "units of work spent on a better plan; 10^9 take about a second"}}},
      {"OutlineMain",
       "cuts a very long entry function into pieces",
       Form::kLowered,
       kExact,
       nullptr,
       run_outline_main,
       {{"most_statements", "int", "1024", "of a piece"}}},
      {"BoundLoops", "ends loops at the symbolic bound that their bodies ask for", Form::kLowered,
       kExact, tir::bound_loops},
      {"FlattenBuffer", "gives every access one index", Form::kLowered, kExact,
       tir::flatten_buffer},
      {"VectorizeLoop", "replaces loops marked vectorized by vector statements", Form::kLowered,
       kExact, tir::vectorize_loop},
      {"BoundUnrolling", "makes loops serial whose unrolling is too much code", Form::kLowered,
       kExact, tir::bound_unrolling},
      {"UnrollLoop", "replaces loops marked unrolled by copies", Form::kLowered, kExact,
       tir::unroll_loop},
      {"FuseMultiplyAdd", "joins multiplications and additions of floats", Form::kLowered,
       kReassociating, tir::fuse_multiply_add},
      {"LowerIntrinsics", "replaces exp, tanh, erf, ... by arithmetic", Form::kLowered,
       kReassociating, tir::lower_intrinsics},
      {"RemoveNoOp", "drops statements that do nothing", Form::kLowered, kExact, tir::remove_no_op},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = make_rows();
  return kRows;
}

void check_known(const Row& row, const Attrs& options) {
  for (const auto& [name, value] : options) {
    if (std::any_of(row.options.begin(), row.options.end(),
                    [&, name = std::string_view(name)](const PassOption& option) {
                      return option.name == name;
                    }))
      continue;
    std::string list;
    for (const PassOption& option : row.options)
      list += fmt::format("{}`{}`", list.empty() ? "" : ", ", option.name);
    throw CompileError(kBadOption, {}, "`{}` has no option `{}`; it has {}", row.name, name,
                       list.empty() ? "none" : list);
  }
}

std::vector<Pass> make_table() {
  std::vector<Pass> table;
  for (const Row& row : rows()) {
    Pass pass;
    pass.name = row.name;
    pass.summary = row.summary;
    pass.needs = row.needs;
    pass.precision = row.precision;
    pass.run = [&row](IRModule module, const Attrs& options) {
      check_known(row, options);
      return row.function ? row.function(std::move(module)) : row.run(std::move(module), options);
    };
    table.push_back(std::move(pass));
  }
  return table;
}

/// Passes that are not in the table.
class Registered {
 public:
  static Registered& instance() {
    static auto* registered = new Registered();
    return *registered;
  }
  void set(const Pass& pass) {
    auto added = std::make_shared<const Pass>(pass);
    // What was there ends outside of the lock: it may be code of another language.
    const std::lock_guard lock(mutex_);
    std::swap(all_[pass.name], added);
  }
  std::shared_ptr<const Pass> find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(name);
    return found == all_.end() ? nullptr : found->second;
  }
  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [name, pass] : all_) out.push_back(name);
    return out;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Pass>, std::less<>> all_;
};

// In the table, or of a back end.
std::optional<Pass> find_known(std::string_view name) {
  for (const Pass& pass : all_passes())
    if (pass.name == name) return pass;
  for (const auto& backend : graph::all_backends())
    for (const Pass& pass : backend->passes)
      if (pass.name == name) return pass;
  return std::nullopt;
}

}  // namespace

std::span<const Pass> all_passes() {
  static const std::vector<Pass> kTable = make_table();
  return kTable;
}

std::optional<Pass> find_pass(std::string_view name) {
  if (auto known = find_known(name)) return known;
  const auto registered = Registered::instance().find(name);
  return registered ? std::optional(*registered) : std::nullopt;
}

std::span<const PassOption> options_of(std::string_view pass) {
  for (const Row& row : rows())
    if (row.name == pass) return row.options;
  return {};
}

void register_pass(const Pass& pass) {
  if (find_known(pass.name))
    throw CompileError(kBadOption, pass.origin, "there is a pass `{}` already", pass.name);
  Registered::instance().set(pass);
}

std::vector<std::string> registered_passes() { return Registered::instance().names(); }

// What may stand in a legalised graph besides calls of functions.
static bool is_legal(const graph::Call& call) { return !call.op || call.op->traits.legal; }

// In normal form, only what is bound can be a call.
static bool has_operators(const graph::SeqExpr& body) {
  for (const Ref<graph::BindingBlock>& block : body.blocks)
    for (const Ref<graph::Binding>& binding : block->bindings) {
      const graph::Value& value = binding->value;
      if (const auto* call = value.as<graph::Call>(); call && !is_legal(*call)) return true;
      if (const auto* branch = value.as<graph::If>())
        if (has_operators(*branch->then_branch) || has_operators(*branch->else_branch)) return true;
      if (const auto* inner = value.as<graph::FunctionValue>())
        if (has_operators(*inner->function->body)) return true;
      if (const auto* inner = value.as<graph::SeqExpr>())
        if (has_operators(*inner)) return true;
    }
  return false;
}

// Statements only: a call's arguments hold no blocks, and there may be very many calls.
static bool has_blocks(const tir::Stmt& stmt) {
  if (!stmt) return false;
  if (stmt.as<tir::BlockRealize>() || stmt.as<tir::Block>()) return true;
  if (const auto* sequence = stmt.as<tir::Seq>())
    return std::any_of(sequence->stmts.begin(), sequence->stmts.end(), has_blocks);
  if (const auto* loop = stmt.as<tir::For>()) return has_blocks(loop->body);
  if (const auto* loop = stmt.as<tir::While>()) return has_blocks(loop->body);
  if (const auto* attr = stmt.as<tir::AttrStmt>()) return has_blocks(attr->body);
  if (const auto* branch = stmt.as<tir::IfThenElse>())
    return has_blocks(branch->then_case) || has_blocks(branch->else_case);
  return false;
}

Form form_of(const IRModule& module) {
  bool graph = false, blocks = false;
  for (const auto& [name, function] : module.functions()) {
    if (const auto* graph_function = function.as<graph::Function>()) {
      graph = true;
      if (has_operators(*graph_function->body)) return Form::kGraph;
    } else if (const auto* kernel = function.as<tir::PrimFunc>()) {
      if (!blocks && !graph) blocks = has_blocks(kernel->body);
    }
  }
  if (graph) return Form::kLegalised;
  return blocks ? Form::kTensorIR : Form::kLowered;
}

std::string_view name_of(Form form) {
  switch (form) {
    case Form::kAny: return "any";
    case Form::kGraph: return "graph";
    case Form::kLegalised: return "legalised";
    case Form::kTensorIR: return "TensorIR with blocks";
    case Form::kLowered: return "lowered";
  }
  return "?";
}

std::string_view name_of(Precision precision) {
  return precision == Precision::kExact ? "exact" : "re-associating";
}

}  // namespace tenon
