// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/measure.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include "tenon/backend/llvm/host.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/expectation.h"
#include "tenon/driver/kernel_times.h"
#include "tenon/driver/load.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/plugin_options.h"
#include "tenon/driver/probe.h"
#include "tenon/driver/tensors.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/user_placement.h"
#include "tenon/runtime/thread_pool.h"
#include "tenon/support/limit_codes.h"
#include "tenon/support/plugin_codes.h"
#include "tenon/support/temporary_files.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tune/machine.h"
#include "tenon/tune/part.h"

namespace tenon {

using tune::Job;
using tune::JobResult;
using tune::Status;

// Steps of the interpreter that are cheap beside compiling: about a tenth of a second.
static constexpr double kCheapSteps = 2e6;
static constexpr size_t kLeastPairs = 5, kMostPairs = 2000;

int64_t inputs_of(const tir::PrimFunc& kernel) {
  std::set<const tir::Buffer*> read, written;
  walk(kernel.body, [&](const NodePtr& node) {
    if (const auto* store = node.as<tir::BufferStore>()) written.insert(store->buffer.get());
    if (const auto* load = node.as<tir::BufferLoad>()) read.insert(load->buffer.get());
  });
  size_t inputs = 0;
  while (inputs < kernel.buffers.size() && kernel.buffers[inputs] &&
         !written.count(kernel.buffers[inputs].get()))
    ++inputs;
  if (inputs == kernel.buffers.size()) return -1;
  for (size_t i = inputs; i < kernel.buffers.size(); ++i)
    if (!kernel.buffers[i] || !written.count(kernel.buffers[i].get())) return -1;
  return static_cast<int64_t>(inputs);
}

IRModule one_kernel_program(const IRModule& module, const std::string& kernel, uint64_t seed) {
  const Ref<tir::PrimFunc> function = module.find<tir::PrimFunc>(kernel);
  check(function && inputs_of(*function) >= 0, "a kernel that is called on tensors");
  const std::vector<int64_t> constant =
      function->attrs.ints(tir::kLayoutFreeBuffers).value_or(std::vector<int64_t>());
  IRModule program = module;
  std::vector<graph::Value> arguments;
  std::vector<Ref<graph::Var>> params;
  std::vector<graph::Type> results;
  const auto inputs = static_cast<size_t>(inputs_of(*function));
  for (size_t i = 0; i < function->buffers.size(); ++i) {
    const tir::Buffer& buffer = *function->buffers[i];
    const auto type = make<graph::TensorType>(buffer.shape, buffer.dtype);
    if (i >= inputs) {
      results.push_back(type);
      continue;
    }
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer.shape)
      if (const auto size = as_int(dim)) shape.push_back(*size);
    const bool is_constant =
        shape.size() == buffer.shape.size() &&
        std::find(constant.begin(), constant.end(), static_cast<int64_t>(i)) != constant.end();
    if (is_constant) {
      arguments.push_back(make<graph::Constant>(random_tensor(buffer.dtype, shape, seed + i)));
    } else {
      params.push_back(make<graph::Var>(fmt::format("x{}", i), type));
      arguments.push_back(params.back());
    }
  }
  graph::BlockBuilder builder(program);
  builder.begin_function(params);
  const graph::Value tuple = make<graph::Tuple>(std::move(arguments));
  const graph::Value result = builder.emit(make<graph::Call>(
      graph::find_op("call_tir"), std::vector<graph::Value>{make<graph::FuncRef>(kernel), tuple},
      Attrs{}, std::move(results)));
  program.set("main", builder.end_function(result));
  return program;
}

// A program whose `main` calls a part of a graph: its provider ("dnnl.conv2d") computes it, or (empty) own
// code.
static IRModule one_part_program(const Job& job, const IRModule& module,
                                 const std::string& provider) {
  const bool is_library = !provider.empty();
  const Ref<graph::Function> part = module.find<graph::Function>(job.kernel);
  IRModule program = module;
  program.set(job.kernel, with(*part, [&](graph::Function& copy) {
                copy.is_private = true;
                if (!is_library) copy.attrs = {};
                if (is_library) copy.attrs.set("Composite", provider);
                for (const char* attr : {tune::kConstantParams, tune::kBoundConstants})
                  copy.attrs.erase(attr);
              }));
  const bool is_bound = is_library && part->attrs.flag(tune::kBoundConstants);
  std::map<std::string, Ref<TensorData>> bound;
  std::vector<graph::Value> arguments;
  std::vector<Ref<graph::Var>> params;
  for (size_t i = 0; i < part->params.size(); ++i) {
    const graph::Var& param = *part->params[i];
    if (!tune::is_constant_param(*part, i)) {
      params.push_back(make<graph::Var>(fmt::format("x{}", i), param.type));
      arguments.push_back(params.back());
      continue;
    }
    const auto& type = *param.type.as<graph::TensorType>();
    const auto data = random_tensor(type.dtype, *type.static_shape(), job.seed + i);
    if (is_bound)
      bound.emplace(param.name, data);
    else
      arguments.push_back(make<graph::Constant>(data));
  }
  if (is_bound) program = graph::bind_params(std::move(program), bound, job.kernel);
  graph::BlockBuilder builder(program);
  builder.begin_function(params);
  const graph::Value result = builder.emit(
      make<graph::Call>(graph::Value(make<graph::FuncRef>(job.kernel)), std::move(arguments)));
  program.set("main", builder.end_function(result));
  return program;
}

Pipeline planned_pipeline() {
  Pipeline pipeline = standard_pipeline();
  const auto first = std::find_if(pipeline.begin(), pipeline.end(),
                                  [](const Pass& pass) { return pass.name == kTakesPlans; });
  return {first, pipeline.end()};
}

namespace {

using LibrariesRef = std::shared_ptr<const backend::Libraries>;

/// What a job asks for, or what is there without it, ready to run, with marks around calls.
class MeasuredProgram {
 public:
  MeasuredProgram(LoweredModule lowered, const CompileRequest& request, const Job& job,
                  std::string taken)
      : taken_(std::move(taken)) {
    InstrumentedModule instrumented = instrument(lowered.pipeline.module);
    lowered.pipeline.module = std::move(instrumented.module);
    calls_ = instrumented.calls.size();
    const LibrariesRef opened =
        with_external_modules(lowered.pipeline.module, request.libraries, job.link);
    program_ = link(generate(lowered, request, opened.get()), opened);
    program_->set_threads(static_cast<int>(job.threads));
  }

  Signature signature() const { return signature_of(program_->declaration()); }
  void bind(const std::vector<Ref<TensorData>>& inputs) {
    run_ = std::make_unique<BoundRun>(program_, inputs);
  }
  /// Microseconds that the calls take, without what is around them.
  double run() {
    reset_kernel_times(calls_);
    run_->run();
    double seconds = 0;
    for (const KernelTime& time : kernel_times()) seconds += time.fastest;
    return seconds * 1e6;
  }
  std::vector<Ref<TensorData>> outputs() const { return run_->outputs(); }
  const std::vector<runtime::Tensor>& inputs() const { return run_->inputs(); }
  int64_t workspace_bytes() const { return run_->workspace_bytes(); }
  const std::string& taken() const { return taken_; }

 private:
  std::string taken_;
  size_t calls_ = 0;
  std::shared_ptr<runtime::Program> program_;
  std::unique_ptr<BoundRun> run_;
};

CompileRequest request_of(const Job& job, const LibrariesRef& libraries) {
  CompileRequest request;
  request.target = resolve(job.target);
  request.unchecked = true;         // what is checked stands in the kernel
  request.pipeline.verify = false;  // results are compared; whoever takes the plan verifies
  request.libraries = libraries;
  return request;
}

MeasuredProgram planned_kernel(const IRModule& program, const Job& job, const std::string& path,
                               const LibrariesRef& libraries, const std::string& plan) {
  CompileRequest request = request_of(job, libraries);
  request.whole = planned_pipeline();
  if (!plan.empty()) {
    tir::GivenPlans given;
    given.plans = tune::plans_of(plan, job.hash, path);
    for (tir::GivenPlan& each : given.plans) each.is_tuned = false;  // what does not fit is told
    request.plans = std::make_shared<const tir::GivenPlans>(std::move(given));
  }
  LoweredModule lowered = lower(program, request);
  std::vector<std::string> choices;
  for (const Remark& remark : lowered.pipeline.remarks) {
    if (remark.pass != kTakesPlans) continue;
    if (!remark.choice.empty()) choices.push_back(remark.choice);
    if (remark.verdict == "unmatched")
      throw CompileError(kBadPlan, remark.origin, "{}", remark.detail);
  }
  return {std::move(lowered), request, job, tune::canonical_plan(choices)};
}

MeasuredProgram placed_part(const Job& job, const IRModule& module, const LibrariesRef& libraries,
                            const std::string& provider) {
  CompileRequest request = request_of(job, libraries);
  IRModule program = one_part_program(job, module, provider);
  if (const std::string name = graph::backend_part(provider); !name.empty()) {
    // One that no plugin brought is a library that is called by name.
    if (!graph::find_backend(name)) graph::register_backend(graph::call_by_name(name));
    if (graph::find_backend(name)->by_name) {
      request.first = {*find_pass("CallByName")};
      request.first.back().options.set("backend", name);
    } else {
      graph::UserPlacement user = graph::UserPlacement::of(program);
      user.backends = {name};
      program = user.in(std::move(program));
    }
  }
  LoweredModule lowered = lower(std::move(program), request);
  if (!provider.empty() && lowered.offload.share() == 0) {
    std::string why = "its library computes nothing of it";
    for (const Remark& remark : lowered.pipeline.remarks)
      if (remark.verdict == "refused" && !remark.detail.empty()) why = remark.detail;
    throw CompileError(kBackendRefused, {}, "{}: {}", provider, why);
  }
  return {std::move(lowered), request, job, provider};
}

/// Puts the caches into the state in which a network calls a kernel: its inputs were just made, and
/// its constants, of a large network, were used long ago.
class CacheState {
 public:
  CacheState(bool is_cold, const Target& target)
      : other_(is_cold ? static_cast<size_t>(2 * target.l2_bytes) : 0) {}

  void prepare(const MeasuredProgram& kernel) {
    constexpr size_t kLine = 64;
    for (size_t i = 0; i < other_.size(); i += kLine) other_[i] = static_cast<char>(other_[i] + 1);
    for (const runtime::Tensor& input : kernel.inputs()) {
      const auto* bytes = static_cast<const volatile char*>(input.data());
      for (size_t i = 0; i < static_cast<size_t>(input.bytes()); i += kLine) sum_ += bytes[i];
    }
  }

 private:
  std::vector<char> other_;
  int sum_ = 0;
};

// Multiply-adds or so: what the interpreter would have to walk through.
double steps_of(const tir::PrimFunc& kernel, const std::map<std::string, int64_t>& dims) {
  double steps = 0;
  walk<tir::Block>(kernel.body, [&](const tir::Block& block) {
    double of_block = 1;
    for (const tir::IterVar& iter : block.iter_vars) {
      const auto* var = iter.domain.extent.as<Var>();
      const auto dim = var ? dims.find(var->name) : dims.end();
      const auto extent = as_int(iter.domain.extent);
      of_block *= static_cast<double>(extent ? *extent : dim != dims.end() ? dim->second : 64);
    }
    steps += of_block;
  });
  return steps;
}

// What `kernel` computes that `expected` does not say; empty where it is right.
std::string wrong_output(Expectation& expected, const MeasuredProgram& kernel,
                         const std::string& than) {
  const std::vector<Ref<TensorData>> outputs = kernel.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const auto wrong = expected.mismatch(i, *outputs[i]))
      return fmt::format("output {} is not what {} computes: {}", i, than, wrong->text);
  return "";
}

// Threads as a network leaves them between two kernels: awake, and spinning for the next loop, which has
// to come within a moment.
void wake(runtime::ThreadPool& pool) {
  constexpr int64_t kTasks = 32;  // for each thread: together longer than waking takes
  if (pool.threads() == 1) return;
  const TenonTask spin = [](TenonContext*, void*, int64_t) -> int32_t {
    const auto begin = KernelClock::now();
    while (KernelClock::now() - begin < std::chrono::microseconds(5)) {
    }
    return 0;
  };
  pool.parallel_for(nullptr, spin, nullptr, kTasks * pool.threads());
}

// Runs the two in turn, so that both see the same machine; the first pair warms up.
void time_in_turn(MeasuredProgram& usual, MeasuredProgram& planned, const Job& job,
                  tune::Measurement& out) {
  CacheState caches(job.is_cold, resolve(job.target));
  const auto pool = runtime::ThreadPool::shared(static_cast<int>(job.threads));
  const auto timed = [&](MeasuredProgram& kernel) {
    if (!job.is_cold) kernel.run();  // its constants are near
    caches.prepare(kernel);
    wake(*pool);
    return kernel.run();
  };
  std::vector<double> usual_times, planned_times, ratios;
  double spent = 0;
  for (size_t pair = 0; pair < kMostPairs; ++pair) {
    double of_usual = 0, of_planned = 0;
    const auto start = KernelClock::now();
    if (pair % 2 == 0) {
      of_usual = timed(usual);
      of_planned = timed(planned);
    } else {
      of_planned = timed(planned);
      of_usual = timed(usual);
    }
    if (pair == 0) continue;
    spent += std::chrono::duration<double>(KernelClock::now() - start).count();
    usual_times.push_back(of_usual);
    planned_times.push_back(of_planned);
    ratios.push_back(of_planned / std::max(of_usual, 1e-3));
    if (spent > job.timed_seconds && ratios.size() >= kLeastPairs) break;
  }
  out.default_us = median(usual_times);
  out.median_us = median(planned_times);
  out.ratio = median(ratios);
}

// Floats of several scales. Integers, which may be indices of what nobody here knows, are small.
std::vector<Ref<TensorData>> inputs_for(const Signature& signature, const Job& job) {
  InputOptions options;
  options.dims = job.dims;
  options.seed = job.seed;
  options.values = Values::kScales;
  std::vector<Ref<TensorData>> inputs = make_inputs(signature, options);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i]->dtype.is_float())
      inputs[i] = random_tensor(inputs[i]->dtype, inputs[i]->shape, job.seed + i);
  return inputs;
}

// The program by a plan, or by a provider of a part; empty: by the default plan, or by own code.
using MakeProgram = std::function<MeasuredProgram(const std::string& plan)>;

/// What a job compares.
struct Alternatives {
  MakeProgram make;
  std::optional<IRModule> interpreted;  // the specification, where it is cheap
  std::string usual;                    // how messages call what is there without the plan
  bool keeps_memory;                    // more memory than usual is a reason to refuse
};

Alternatives alternatives_of(const Job& job, const std::string& path, const IRModule& module,
                             const LibrariesRef& libraries) {
  const Ref<tir::PrimFunc> kernel = module.find<tir::PrimFunc>(job.kernel);
  if (!kernel)
    return {[=, &job](const std::string& provider) {
              return placed_part(job, module, libraries, provider);
            },
            std::nullopt, "own code", false};
  const IRModule program = one_kernel_program(module, job.kernel, job.seed);
  const bool is_interpreted =
      job.link.empty() && steps_of(*kernel, job.dims) <= kCheapSteps;  // with libraries: once only
  return {[=, &job](const std::string& plan) {
            return planned_kernel(program, job, path, libraries, plan);
          },
          is_interpreted ? std::optional(program) : std::nullopt, "the default plan", true};
}

void measure_plan(const Job& job, const std::string& path, const IRModule& module,
                  JobResult& result) {
  const auto libraries = std::make_shared<const backend::Libraries>(job.link);
  const Alternatives alternatives = alternatives_of(job, path, module, libraries);
  tune::Measurement& out = result.measurement;
  MeasuredProgram usual = alternatives.make("");
  result.taken = usual.taken();
  const std::vector<Ref<TensorData>> inputs = inputs_for(usual.signature(), job);
  usual.bind(inputs);
  usual.run();
  const int64_t terms = longest_sum(module);
  std::unique_ptr<Expectation> expected;
  const bool is_interpreted = alternatives.interpreted.has_value();
  if (is_interpreted) {
    const auto rerun = [&](uint64_t seed) {
      return interpreted(*alternatives.interpreted, libraries, seed)->run(inputs);
    };
    expected = std::make_unique<Expectation>(rerun(0), terms, rerun);
    if (out.detail = wrong_output(*expected, usual, "the interpreter"); !out.detail.empty()) {
      out.detail = fmt::format("by {} {}", alternatives.usual, out.detail);
      out.status = Status::kWrong;
      return;
    }
  } else {
    expected = std::make_unique<Expectation>(usual.outputs(), terms, Rerun());
  }
  if (job.plan.empty()) {
    time_in_turn(usual, usual, job, out);
    return;
  }
  MeasuredProgram planned = alternatives.make(job.plan);
  result.taken = planned.taken();
  planned.bind(inputs);
  if (alternatives.keeps_memory && planned.workspace_bytes() > usual.workspace_bytes()) {
    out.status = Status::kRefused;
    out.detail = fmt::format("it needs {} bytes of memory; the default plan needs {}",
                             planned.workspace_bytes(), usual.workspace_bytes());
    return;
  }
  planned.run();
  const std::string than = is_interpreted ? "the interpreter" : alternatives.usual;
  if (out.detail = wrong_output(*expected, planned, than); !out.detail.empty()) {
    out.status = Status::kWrong;
    return;
  }
  time_in_turn(usual, planned, job, out);
}

}  // namespace

JobResult result_of(const Job& job) {
  JobResult result;
  result.hash = job.hash;
  result.plan = job.plan;
  const tune::Machine machine = tune::this_machine(llvm_backend::host_target());
  result.machine = machine.fingerprint;
  result.machine_text = machine.text;
  result.compiler = TENON_VERSION;
  result.measurement.plan = job.plan;
  result.measurement.stage = job.stage;
  return result;
}

// The kernel's module. \throws CompileError where the job is not one of this kernel.
static IRModule module_of(const Job& job, const std::string& path) {
  PluginOptions plugins;
  plugins.files = job.plugins;
  plugins.load();
  IRModule module = load_module(ModelKind::kScript,
                                {path + ": module", std::as_bytes(std::span(job.module)), nullptr});
  const Ref<tir::PrimFunc> kernel = module.find<tir::PrimFunc>(job.kernel);
  const Ref<graph::Function> part = module.find<graph::Function>(job.kernel);
  if (!kernel && !part)
    throw CompileError(kBadJob, {}, "{}: the module has no kernel `{}`", path, job.kernel);
  if (const std::string hash = kernel ? tir::plan_hash(kernel) : tune::part_hash(*part);
      hash != job.hash)
    throw CompileError(kBadJob, {}, "{}: kernel `{}` has hash {}; the job is for {}", path,
                       job.kernel, hash, job.hash);
  if (kernel ? inputs_of(*kernel) < 0 : !tune::is_called_on_tensors(*part))
    throw CompileError(kBadJob, {}, "{}: kernel `{}` is not called on tensors alone", path,
                       job.kernel);
  llvm_backend::check_runs_here(resolve(job.target));
  return module;
}

// In this process. What the plan has wrong is in the result.
static JobResult measure_here(const Job& job, const std::string& path, const IRModule& module) {
  JobResult result = result_of(job);
  tune::Measurement& out = result.measurement;
  try {
    measure_plan(job, path, module, result);
  } catch (const CompileError& error) {
    const Code& code = error.first().code;
    const bool is_refused = code.id == kBadPlan.id || code.id == kBackendRefused.id;
    out.status = is_refused ? Status::kRefused : Status::kFailed;
    out.detail = fmt::format("error[{}]: {}", code.id, error.first().message);
  } catch (const std::bad_alloc&) {
    out.status = Status::kOutOfMemory;
    out.detail = fmt::format("it needs more than {} bytes", job.memory_bytes);
  }
  return result;
}

// C code that gets no memory mostly crashes, and the system kills who takes it all: what held most of
// the limit when a signal ended it is taken for that.
static bool is_out_of_memory(const Outcome& outcome, int64_t limit) {
  if (outcome.kind == Outcome::Kind::kSignal) return limit > 0 && outcome.peak_bytes > limit / 2;
  return outcome.kind == Outcome::Kind::kFailure &&
         outcome.output.find(fmt::format("error[{}]", kTooMuchMemory.id)) != std::string::npos;
}

JobResult measure(const Job& job, const std::string& path) {
  const IRModule module = module_of(job, path);
  const TemporaryFolder folder;
  const std::string file = folder.file("result.json");
  const Outcome outcome = probe_call(
      [&] {
        write_file(file, tune::text_of(measure_here(job, path, module)));
        return 0;
      },
      {.time_limit = job.seconds, .memory_limit = job.memory_bytes});
  if (!outcome.failed()) return tune::read_result(file, read_file(file));
  JobResult result = result_of(job);
  tune::Measurement& out = result.measurement;
  out.detail = outcome.key;
  if (is_out_of_memory(outcome, job.memory_bytes)) {
    out.status = Status::kOutOfMemory;
    out.detail += fmt::format(", with {} MiB of memory of the {} that it may take",
                              outcome.peak_bytes >> 20, job.memory_bytes >> 20);
  } else if (outcome.kind == Outcome::Kind::kSignal) {
    out.status = Status::kCrash;
  } else if (outcome.kind == Outcome::Kind::kTimeLimit) {
    out.status = Status::kTimeout;
    out.detail = fmt::format("it took longer than {} s", job.seconds);
  } else {
    out.status = Status::kFailed;
  }
  return result;
}

}  // namespace tenon
