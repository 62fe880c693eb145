// SPDX-License-Identifier: Apache-2.0
// `tenon run`: compile a model and run it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/expectation.h"
#include "tenon/driver/load.h"
#include "tenon/driver/npy.h"
#include "tenon/driver/onnx_values.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/trace.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/runtime/cpu_count.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/support/temporary_files.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

struct RunOptions {
  std::string model, out, profile;
  std::vector<std::string> inputs, dims;
  TargetOptions target;
  PassOptions passes;
  int repeat = 1;
  std::optional<uint64_t> seed;
  bool interpret = false, compare = false, json = false, no_cache = false;
};

InputOptions input_options(const RunOptions& options) {
  InputOptions inputs;
  inputs.seed = options.seed.value_or(0);
  inputs.files = parse_input_files(options.inputs);
  inputs.dims = parse_dims(options.dims);
  return inputs;
}

// An output's name as a file name: what could leave the folder is replaced.
std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

void write_outputs(const std::string& folder, const Signature& signature,
                   const std::vector<Ref<TensorData>>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw CompileError(kFileError, {}, "cannot create `{}`: {}", folder, error.message());
  for (size_t i = 0; i < outputs.size(); ++i)
    write_npy(folder + "/" + file_name(signature.outputs[i].name) + ".npy", *outputs[i]);
}

nlohmann::ordered_json json_of(const std::string& name, const TensorData& tensor) {
  const TensorSummary summary = summarise(tensor);
  return {{"name", name},       {"dtype", tensor.dtype.str()}, {"shape", tensor.shape},
          {"min", summary.min}, {"mean", summary.mean},        {"max", summary.max},
          {"nan", summary.nan}, {"first", summary.first}};
}

void print_tensors(const char* title, const std::vector<Port>& ports,
                   const std::vector<Ref<TensorData>>& tensors) {
  size_t width = 0;
  for (const Port& port : ports) width = std::max(width, port.name.size());
  fmt::print("{}\n", title);
  for (size_t i = 0; i < tensors.size(); ++i)
    fmt::print("  {}\n", summary_line(ports[i].name, *tensors[i], width));
}

nlohmann::ordered_json tensors_json(const std::vector<Port>& ports,
                                    const std::vector<Ref<TensorData>>& tensors) {
  auto list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < tensors.size(); ++i) list.push_back(json_of(ports[i].name, *tensors[i]));
  return list;
}

void warn_of_seed(const RunOptions& options, const Signature& signature) {
  if (options.seed && options.inputs.size() == signature.inputs.size())
    warn(kNotUsed, {}, "--seed {}: no input is random", *options.seed);
}

int interpret(const RunOptions& options, InputOptions wanted) {
  const InterpretedModel model = make_interpreted(options.model, options.target,
                                                  options.passes.pipeline(options.target.model));
  Executable* program = model.program.get();
  wanted.meanings = model.meanings;
  const auto inputs = make_inputs(program->signature(), wanted);
  options.passes.tell();
  warn_of_seed(options, program->signature());
  const auto outputs = program->run(inputs);
  if (!options.out.empty()) write_outputs(options.out, program->signature(), outputs);
  if (options.json) {
    std::cout
        << nlohmann::ordered_json{{"model", options.model},
                                  {"inputs", tensors_json(program->signature().inputs, inputs)},
                                  {"outputs", tensors_json(program->signature().outputs, outputs)}}
               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return 0;
  }
  print_tensors("inputs", program->signature().inputs, inputs);
  print_tensors("outputs", program->signature().outputs, outputs);
  fmt::print("operators  in the interpreter\n");
  return 0;
}

// The interpreter is the meaning of the model: what was compiled must give the same.
void compare_with_interpreter(const RunOptions& options, const std::vector<Ref<TensorData>>& inputs,
                              const std::vector<Ref<TensorData>>& outputs) {
  const ModelOptions& model = options.target.model;
  IRModule module = model.read(options.model);
  const auto libraries = with_external_modules(module, model.libraries(), model.link);
  const std::unique_ptr<Executable> program = interpreted(module, libraries);
  Expectation expected(program->run(inputs), longest_sum(module), [&](uint64_t seed) {
    return interpreted(module, libraries, seed)->run(inputs);
  });
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const auto wrong = expected.mismatch(i, *outputs[i]))
      throw CompileError(kWrongResult, {},
                         "{}: output `{}` is not what the interpreter computes: {}", options.model,
                         program->signature().outputs[i].name, wrong->text);
}

/// What --profile gathers beside a run.
struct Profile {
  Trace trace;
  StepClock steps;
  ProgramPlan plan;

  void instrument_program(LoweredModule& lowered) {
    InstrumentedModule instrumented = instrument(lowered.pipeline.module);
    lowered.pipeline.module = std::move(instrumented.module);
    trace.calls = std::move(instrumented.calls);
    plan = lowered.plan;
  }
  void write(const std::string& path, const std::map<std::string, int64_t>& dims) {
    trace.steps = steps.steps();
    const std::vector<int64_t> live = live_bytes(plan, dims);
    for (const int64_t call : planned_calls(trace.calls, plan))
      trace.live_bytes.push_back(call < 0 ? -1 : live[static_cast<size_t>(call)]);
    write_file(
        path, json_of(trace).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    if (trace.left_out > 0)
      warn(kNotUsed, {}, "--profile {}: {} runs of kernels are left out, behind the first {}", path,
           trace.left_out, trace.events.size());
  }
};

// The seconds of each; recorded in `profile` where it is given.
std::vector<double> timed_runs(BoundRun& bound, int repeat, Profile* profile) {
  std::optional<TraceRecorder> recorder;
  if (profile) recorder.emplace(profile->trace.calls.size());
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const KernelClock::time_point begin = KernelClock::now();
    times.push_back(bound.run());
    if (profile) profile->trace.runs.push_back({begin, KernelClock::now()});
  }
  if (recorder) recorder->take(profile->trace);
  return times;
}

int run(RunOptions options) {
  if (options.repeat < 1) throw UsageError("--repeat {} is below 1", options.repeat);
  options.target.check();
  InputOptions wanted = input_options(options);
  OnnxInputs sequences = take_sequences(options.model, wanted.files);
  ModelOptions& model = options.target.model;
  model.lengths.insert(model.lengths.end(), sequences.lengths.begin(), sequences.lengths.end());
  model.shapes.insert(model.shapes.end(), sequences.shapes.begin(), sequences.shapes.end());
  wanted.tensors = std::move(sequences.tensors);
  model.rank_of = [files = wanted.files](const std::string& name) -> std::optional<size_t> {
    const auto file = files.find(name);
    if (file == files.end()) return std::nullopt;
    return read_tensor(file->second)->shape.size();
  };
  if (options.interpret) return interpret(options, std::move(wanted));
  options.target.uses_cache = !options.no_cache;

  Progress progress;
  PipelineOptions pipeline = options.passes.pipeline(options.target.model);
  std::optional<Profile> profile;
  if (!options.profile.empty()) profile.emplace().trace.model = options.model;
  pipeline.progress = [&](const std::string& what) {
    progress.show(options.model + ": " + what);
    if (profile) profile->steps.begin(what);
  };
  std::function<void(LoweredModule&)> adjust;
  if (profile) adjust = [&](LoweredModule& lowered) { profile->instrument_program(lowered); };
  const ReadyModel ready = make_ready(options.model, options.target, pipeline, adjust);
  if (profile) profile->steps.end();
  progress.clear();

  const TenonProgram& declaration = ready.program->declaration();
  const Signature signature = signature_of(declaration);
  wanted.meanings = ready.meanings;
  if (options.compare) wanted.values = Values::kScales;
  const auto inputs = make_inputs(signature, wanted);
  options.passes.tell();
  warn_of_seed(options, signature);
  BoundRun bound(ready.program, inputs);
  if (options.repeat > 1) bound.run();  // warms caches and threads
  const std::vector<double> times =
      timed_runs(bound, options.repeat, profile ? &*profile : nullptr);
  if (profile) profile->write(options.profile, check_inputs(signature, inputs));
  const auto outputs = bound.outputs();
  if (options.compare) compare_with_interpreter(options, inputs, outputs);
  if (!options.out.empty()) write_outputs(options.out, signature, outputs);

  const int threads =
      options.target.threads > 0 ? options.target.threads : runtime::default_thread_count();
  const bool symbolic = declaration.workspace_bytes < 0;
  const double fastest = *std::min_element(times.begin(), times.end());
  if (options.json) {
    nlohmann::ordered_json json = {
        {"model", options.model},
        {"target", ready.target},
        {"threads", threads},
        {"inputs", tensors_json(signature.inputs, inputs)},
        {"outputs", tensors_json(signature.outputs, outputs)},
        {"operators", ready.operators},
        {"own_operators", ready.offload.empty() ? ready.operators : ready.offload.own_operators()},
        {"kernels", ready.kernels},
        {"library_calls", ready.library_calls},
        {"workspace_bytes", bound.workspace_bytes()},
        {"constant_bytes", declaration.constant_bytes},
        {"planned_bytes", nullptr},
        {"bound_bytes", nullptr},
        {"compile_ms", ready.compile_seconds * 1e3},
        {"cached", ready.is_cached},
        {"load_ms", ready.load_seconds * 1e3},
        {"min_ms", fastest * 1e3},
        {"median_ms", median(times) * 1e3}};
    if (!ready.offload.empty()) json["offload"] = json_of(ready.offload);
    json["memory"] = json_of(ready.memory);
    if (!symbolic) {
      json["planned_bytes"] = declaration.planned_bytes;
      json["bound_bytes"] = declaration.bound_bytes;
    }
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  print_tensors("inputs", signature.inputs, inputs);
  print_tensors("outputs", signature.outputs, outputs);
  fmt::print("{}", account_lines({ready.operators, ready.kernels, ready.library_calls,
                                  ready.offload, ready.own_kernels}));
  fmt::print("{}", memory_lines(ready.memory, declaration.constant_bytes, bound.workspace_bytes()));
  if (ready.compile_seconds > 0)
    fmt::print("compile    {} (import {}, passes {}, code generation {}), link {}\n",
               time_text(ready.compile_seconds), time_text(ready.import_seconds),
               time_text(ready.pass_seconds), time_text(ready.codegen_seconds),
               time_text(ready.load_seconds));
  else
    fmt::print("load       {}{}\n", time_text(ready.load_seconds),
               ready.is_cached ? " (compiled before; --no-cache compiles again)" : "");
  fmt::print("run        min {}, median {} of {} on {} {}\n", time_text(fastest),
             time_text(median(times)), times.size(), threads, threads == 1 ? "thread" : "threads");
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "compile a model and run it");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript, .relay, or a compiled .so")
      ->required();
  command->add_option("-i,--input", options->inputs,
                      "NAME=FILE: a .npy or ONNX .pb file; inputs not given are random");
  command->add_option(
      "--dim", options->dims,
      fmt::format("NAME=N: a symbolic dimension of random inputs (default {})", kDefaultDim));
  command->add_option("--seed", options->seed, "of random inputs (default 0)");
  command->add_option("-o,--out", options->out, "folder: write each output there as NAME.npy");
  command->add_option("--repeat", options->repeat, "timed runs")->capture_default_str();
  command->add_flag("--interpret", options->interpret, "run in the interpreter, without compiling");
  command->add_flag("--compare", options->compare,
                    "also run in the interpreter; fail where the results differ");
  command->add_option(
      "--profile", options->profile,
      "trace.json: passes, each run of a kernel by thread, and memory over time, for "
      "Perfetto or Chrome");
  command->add_flag(
      "--no-cache", options->no_cache,
      "compile, and keep nothing, where the program is in the cache of those compiled "
      "before (TENON_CACHE: its folder, or off)");
  command->add_flag("--json", options->json, "the result as JSON");
  options->target.add_to(*command);
  options->target.model.add_plan_to(*command);
  options->passes.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      const std::string_view form = options->target.form(options->model);
      check_options(*command, options->interpret && form != "compiled" ? "interpret" : form);
      return run(*options);
    };
  });
}

}  // namespace tenon
