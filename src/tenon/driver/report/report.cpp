// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report/report.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/kernel_times.h"
#include "tenon/driver/report/listing.h"
#include "tenon/driver/usage.h"
#include "tenon/memory/plan_module.h"
#include "tenon/runtime/cpu_count.h"
#include "tenon/script/printer.h"
#include "tenon/tir/analysis/block_work.h"
#include "tenon/tir/call_graph.h"

namespace tenon {

namespace {

/// The kernels of a program, and the stories of its nodes, gathered while passes run.
class Watch {
 public:
  explicit Watch(const IRModule& imported) : stories(imported) {}

  PipelineOptions around(const PipelineOptions& options) {
    PipelineOptions out = options;
    out.before = [this, next = options.before](const Pass& pass, const IRModule& module) {
      if (pass.name == kTakesPlans) unscheduled = module;
      if (pass.name == "PlanMemory") planned = module;
      if (next) next(pass, module);
    };
    out.after = [this, next = options.after](const Pass& pass, const IRModule& module) {
      if (pass.name == kTakesPlans) scheduled = module;
      stories.after(pass, module);
      if (next) next(pass, module);
    };
    return out;
  }

  Storyteller stories;
  IRModule unscheduled, scheduled;
  IRModule planned;  // as PlanMemory got it
};

/// The seconds since it was made, or asked last.
class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

// What the dimensions of a kernel are in a call, as far as its arguments say it.
static Substitution dims_of_kernel(const tir::PrimFunc& kernel, const tir::CallTir& call,
                                   const Substitution& of_program) {
  Substitution out;
  std::set<const Node*> symbols;
  for (const Ref<Var>& symbol : tir::symbolic_vars(kernel)) symbols.insert(symbol.get());
  for (size_t i = 0; i < std::min(kernel.buffers.size(), call.args.size()); ++i) {
    const auto* region = call.args[i].as<tir::BufferRegion>();
    if (!region || !kernel.buffers[i]) continue;
    const std::vector<Expr>& shape = kernel.buffers[i]->shape;
    if (shape.size() != region->region.size()) continue;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (symbols.count(shape[d].get()) == 0) continue;
      const Expr extent = arith::simplify(substitute(region->region[d].extent, of_program));
      if (const auto value = as_int(extent))
        out.emplace(shape[d].get(), imm(shape[d]->dtype, *value));
    }
  }
  return out;
}

namespace {

/// Two for each multiply-accumulate of the kernels that a call runs, those that its callee calls
/// included; nothing where a size is not known.
class FlopCount {
 public:
  explicit FlopCount(const IRModule& unscheduled) : module_(unscheduled) {}

  std::optional<double> of(const tir::CallTir& call, const Substitution& values) {
    const auto kernel = module_.find<tir::PrimFunc>(call.callee->name);
    if (!kernel) return std::nullopt;
    flop_ = 0;
    is_known_ = true;
    iterations_ = 0;
    add_call(call, values);
    return is_known_ ? std::optional(flop_) : std::nullopt;
  }

 private:
  static constexpr int64_t kMostIterations = 100000;  // of loops around calls

  void add_call(const tir::CallTir& call, const Substitution& values) {
    const auto kernel = module_.find<tir::PrimFunc>(call.callee->name);
    if (!kernel) return;
    const Substitution dims = dims_of_kernel(*kernel, call, values);
    for (const Ref<tir::Block>& block : tir::blocks_of(*kernel)) {
      if (tir::work_of(*block).kind != tir::WorkKind::kContracts) continue;
      double points = 1;
      for (const tir::IterVar& axis : block->iter_vars) {
        const auto extent = value_of(axis.domain.extent, dims);
        is_known_ = is_known_ && extent.has_value();
        points *= static_cast<double>(extent.value_or(0));
      }
      flop_ += 2 * points;
    }
    add_calls_in(kernel->body, dims);
  }

  // Loops around calls are short, and their conditions say which iterations make one.
  void add_calls_in(const NodePtr& root, const Substitution& values) {
    walk_if(root, [&](const NodePtr& node) {
      if (!is_known_) return false;
      if (const auto* call = node.as<tir::CallTir>()) {
        add_call(*call, values);
        return false;
      }
      if (const auto* loop = node.as<tir::For>()) {
        if (tir::first_call(loop->body)) add_loop(*loop, values);
        return false;
      }
      if (const auto* loop = node.as<tir::While>()) {
        is_known_ = is_known_ && !tir::first_call(loop->body);
        return false;
      }
      if (const auto* realize = node.as<tir::BlockRealize>()) {
        if (!tir::first_call(realize->block->body)) return false;
        Substitution inner = values;
        for (size_t i = 0; i < realize->iter_values.size(); ++i)
          inner[realize->block->iter_vars[i].var.get()] =
              arith::simplify(substitute(realize->iter_values[i], values));
        add_calls_in(realize->block->body, inner);
        return false;
      }
      if (const auto* branch = node.as<tir::IfThenElse>()) {
        if (!tir::first_call(ref_to(branch))) return false;
        const auto taken = value_of(branch->condition, values);
        is_known_ = is_known_ && taken.has_value();
        const tir::Stmt& body = taken.value_or(0) != 0 ? branch->then_case : branch->else_case;
        if (is_known_ && body) add_calls_in(body, values);
        return false;
      }
      return !node.as<ExprNode>();
    });
  }

  void add_loop(const tir::For& loop, const Substitution& values) {
    const auto min = value_of(loop.min, values), extent = value_of(loop.extent, values);
    is_known_ = is_known_ && min && extent;
    Substitution inner = values;
    for (int64_t i = 0; is_known_ && i < *extent; ++i) {
      is_known_ = ++iterations_ <= kMostIterations;
      inner[loop.loop_var.get()] = imm(loop.loop_var->dtype, *min + i);
      add_calls_in(loop.body, inner);
    }
  }

  static std::optional<int64_t> value_of(const Expr& expr, const Substitution& values) {
    return as_int(arith::simplify(substitute(expr, values)));
  }

  const IRModule& module_;
  double flop_ = 0;
  bool is_known_ = true;
  int64_t iterations_ = 0;
};

}  // namespace

// Of a script the variables that stand at these places, and the places where there is none.
static std::vector<Report::Operator> operators_of(
    const Origin& origin, const std::unordered_map<std::string, std::string>& variables) {
  std::vector<Report::Operator> out;
  each_part(origin, [&](const Origin& part) {
    const auto variable = variables.find(part.str());
    const Report::Operator op =
        part->kind == OriginInfo::Kind::kModel
            ? Report::Operator{part->node_name, part->op_type}
            : Report::Operator{variable == variables.end() ? part.name() : variable->second, ""};
    // A node may have become several operators.
    const bool is_known = std::any_of(out.begin(), out.end(), [&](const Report::Operator& other) {
      return other.node == op.node && other.type == op.type;
    });
    if (!is_known) out.push_back(op);
  });
  return out;
}

static void describe_calls(Report& report, const LoweredModule& lowered) {
  // By the origin of one operator.
  std::unordered_map<std::string, const Placement*> placements;
  const std::vector<Placement> all = placements_of(lowered.pipeline.remarks);
  for (const Placement& placement : all)
    each_part(placement.origin,
              [&](const Origin& part) { placements.emplace(part.str(), &placement); });
  std::unordered_map<std::string, std::string> variables;
  for (const Story& story : report.stories) variables.emplace(story.origin, story.node);
  for (const ProgramPlan::Call& planned : lowered.plan.calls) {
    Report::Call& call = report.calls.emplace_back();
    call.operators = operators_of(planned.origin, variables);
    double placed_flop = 0;
    each_part(planned.origin, [&](const Origin& part) {
      const auto found = placements.find(part.str());
      if (found == placements.end() || found->second->provider.empty()) return;
      if (call.provider.empty()) call.provider = found->second->provider;
      placed_flop += found->second->flop;
    });
    if (call.provider.empty() && !planned.symbol.empty()) call.provider = "extern";
    if (!planned.symbol.empty() && lowered.plan.symbols.empty() && placed_flop > 0)
      call.flop = placed_flop;
  }
}

// Of own kernels, for the dimensions of the report.
static void count_flop(Report& report, const Watch& watch) {
  Substitution dims;
  for (const Ref<Var>& symbol : report.plan.symbols)
    if (const auto it = report.dims.find(symbol->name); it != report.dims.end())
      dims.emplace(symbol.get(), imm(symbol->dtype, it->second));
  for (const auto& [name, function] : watch.planned.functions()) {
    const auto entry = cast<tir::PrimFunc>(function);
    if (!entry || !entry->attrs.flag("tenon.entry")) continue;
    const memory::ModuleProblem problem = memory::extract_problem(*entry);
    for (size_t i = 0; i < std::min(problem.calls.size(), report.calls.size()); ++i)
      if (report.plan.calls[i].symbol.empty())
        report.calls[i].flop = FlopCount(watch.unscheduled).of(*problem.calls[i].call, dims);
  }
}

// From each read to the write before it; from and to the caller where there is none.
static void find_edges(Report& report) {
  const ProgramPlan& plan = report.plan;
  using Kind = ProgramPlan::Memory::Kind;
  std::vector<int64_t> writer(plan.memories.size(), Report::Edge::kOutside);
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    const auto self = static_cast<int64_t>(i);
    std::set<size_t> read, written;
    for (const ProgramPlan::Argument& arg : plan.calls[i].args) {
      if (arg.reads) read.insert(arg.memory);
      if (arg.writes) written.insert(arg.memory);
    }
    for (const size_t memory : read) {
      const bool is_known = writer[memory] != Report::Edge::kOutside;
      if (is_known ? writer[memory] != self : plan.memories[memory].kind == Kind::kInput)
        report.edges.push_back({writer[memory], self, memory});
    }
    for (const size_t memory : written) writer[memory] = self;
  }
  for (size_t memory = 0; memory < plan.memories.size(); ++memory)
    if (plan.memories[memory].kind == Kind::kOutput && writer[memory] != Report::Edge::kOutside)
      report.edges.push_back({writer[memory], Report::Edge::kOutside, memory});
}

static std::string printed(const IRModule& module, const std::string& function) {
  const auto found = module.find<tir::PrimFunc>(function);
  return found ? script::print(BaseFunc(found), function) : "";
}

// `assembly` has its functions by symbol, `c` by name.
static void list_kernels(Report& report, const Watch& watch,
                         const std::map<std::string, std::string>& assembly,
                         const std::map<std::string, std::string>& c) {
  const auto text_of = [](const std::map<std::string, std::string>& texts,
                          const std::string& name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  };
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < report.plan.calls.size(); ++i) {
    const ProgramPlan::Call& call = report.plan.calls[i];
    const auto [it, is_new] = index.try_emplace(call.callee, report.kernels.size());
    if (is_new) {
      Report::Kernel& kernel = report.kernels.emplace_back();
      kernel.function = call.callee;
      kernel.symbol = call.symbol.empty() ? "fn." + call.callee : call.symbol;
      kernel.tensor_ir = printed(watch.unscheduled, call.callee);
      kernel.scheduled = printed(watch.scheduled, call.callee);
      if (kernel.scheduled == kernel.tensor_ir) kernel.scheduled.clear();
      kernel.assembly = text_of(assembly, kernel.symbol);
      kernel.c = text_of(c, kernel.function);
    }
    report.kernels[it->second].calls.push_back(i);
  }
}

static void list_code(Report& report, const Watch& watch, LoweredModule& lowered,
                      const CompileRequest& request, const COptions& options) {
  Stopwatch watch_of_code;
  if (request.target.kind != "c") {
    const std::string assembly = llvm_backend::emit_assembly(
        lowered.pipeline.module, request.target, {.name = request.name});
    return list_kernels(report, watch, functions_of(assembly), {});
  }
  const c_backend::Program program = generate_c(lowered, request, options);
  report.steps.push_back({"code generation", watch_of_code.lap()});
  const std::map<std::string, std::string> functions = functions_in_c(lowered, request, options);
  list_kernels(report, watch, {}, functions);
  report.c.push_back({program.name + ".h", program.header});
  if (const auto entry = functions.find(program.entry.name); entry != functions.end())
    report.c.push_back({program.name + "_run", entry->second});
}

// Why a program for `target` is not run here; empty where it is.
static std::string cannot_run(const Target& target) {
  if (target.kind == "c") return "it is compiled to C";
  try {
    llvm_backend::check_runs_here(target);
    return "";
  } catch (const CompileError& error) {
    return error.first().message;
  }
}

static void measure(Report& report, const LoweredModule& lowered, const CompileRequest& request,
                    const std::shared_ptr<const backend::Libraries>& libraries,
                    const ReportOptions& options, const IRModule& imported) {
  LoweredModule marked = lowered;
  InstrumentedModule instrumented = instrument(lowered.pipeline.module);
  marked.pipeline.module = std::move(instrumented.module);
  Stopwatch watch;
  const llvm_backend::CompiledProgram program = generate(marked, request, libraries.get());
  report.steps.push_back({"code generation", watch.lap()});
  const std::shared_ptr<runtime::Program> linked = link(program, libraries);
  report.steps.push_back({"link", watch.lap()});
  linked->set_threads(options.threads);
  InputOptions inputs = options.inputs;
  inputs.meanings = named_meanings(imported);
  const std::vector<Ref<TensorData>> values =
      make_inputs(signature_of(linked->declaration()), inputs);
  report.dims = check_inputs(signature_of(linked->declaration()), values);
  report.constant_bytes = linked->declaration().constant_bytes;
  BoundRun bound(linked, values);
  if (request.pipeline.progress) request.pipeline.progress("run");
  bound.run();  // warms caches and threads
  reset_kernel_times(instrumented.calls.size());
  std::vector<double> times;
  for (int i = 0; i < options.repeat; ++i) times.push_back(bound.run());
  const std::vector<KernelTime> kernels = kernel_times();
  const std::vector<int64_t> planned = planned_calls(instrumented.calls, lowered.plan);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (planned[i] < 0 || kernels[i].runs == 0) continue;
    Report::Call& call = report.calls[static_cast<size_t>(planned[i])];
    call.milliseconds = milliseconds_of(kernels[i], times.size());
    call.runs = kernels[i].runs / static_cast<int64_t>(times.size());
  }
  const int threads = options.threads > 0 ? options.threads : runtime::default_thread_count();
  report.run = {threads, times.size(), *std::min_element(times.begin(), times.end()),
                median(times)};
}

// As a run would, where there is none.
static void check_dims(const Report& report, const std::map<std::string, int64_t>& dims) {
  for (const auto& [name, value] : dims) {
    const bool is_known =
        std::any_of(report.plan.symbols.begin(), report.plan.symbols.end(),
                    [&, &name = name](const Ref<Var>& symbol) { return symbol->name == name; });
    if (!is_known)
      throw UsageError("--dim {}={}: no input has a dimension `{}`", name, value, name);
  }
}

Report make_report(const IRModule& module, CompileRequest request,
                   std::shared_ptr<const backend::Libraries> libraries,
                   const ReportOptions& options) {
  Report report;
  report.model = options.model;
  report.compiler = options.compiler;
  report.target = request.target.str();
  Watch watch(module);
  const PipelineOptions given = request.pipeline;
  request.pipeline = watch.around(given);
  request.libraries = libraries;
  LoweredModule lowered = lower(module, request);
  request.pipeline = given;
  if (options.lowered) options.lowered(lowered);
  const IRModule& program = lowered.pipeline.module;
  libraries = with_external_modules(program, libraries, options.link);

  report.signature = signature_of(program);
  report.operators = lowered.operators;
  report.gflop = lowered.gflop;
  report.account = account_lines({lowered.operators, lowered.kernels, lowered.library_calls,
                                  lowered.offload, kernel_lines(lowered.pipeline.remarks)});
  for (const PassTiming& pass : lowered.pipeline.timings)
    report.steps.push_back({pass.name, pass.seconds});
  report.plan = lowered.plan;
  report.memory = lowered.memory;
  report.remarks = lowered.pipeline.remarks;
  report.stories = watch.stories.finish(report.remarks, request.target);
  describe_calls(report, lowered);
  find_edges(report);
  list_code(report, watch, lowered, request, options.c);
  report.dims = dims_for(report.plan, options.inputs.dims);
  report.not_run = options.repeat == 0 ? "no run was asked for" : cannot_run(request.target);
  if (report.not_run.empty())
    measure(report, lowered, request, libraries, options, module);
  else
    check_dims(report, options.inputs.dims);
  count_flop(report, watch);
  return report;
}

}  // namespace tenon
