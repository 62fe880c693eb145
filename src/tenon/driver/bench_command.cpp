// SPDX-License-Identifier: Apache-2.0
// `tenon bench`: measures how long models take.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/kernel_times.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/runtime/cpu_count.h"

namespace tenon {

namespace {

struct BenchOptions {
  std::vector<std::string> models, dims;
  TargetOptions target;
  int repeat = 20;
  bool per_kernel = false, json = false;
};

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
}

struct Measurement {
  ReadyModel ready;
  std::vector<double> times;
  int64_t workspace_bytes = 0;
  double rss_mb = 0;
  std::vector<InstrumentedCall> calls;  // with --per-kernel
  std::vector<KernelTime> kernels;      // of all timed runs
};

Measurement measure(const std::string& model, const BenchOptions& options) {
  Progress progress;
  PipelineOptions pipeline;
  pipeline.verify = false;  // the times are those of compiling alone
  pipeline.progress = [&](const std::string& what) { progress.show(model + ": " + what); };
  Measurement result;
  std::function<void(LoweredModule&)> adjust;
  if (options.per_kernel)
    adjust = [&](LoweredModule& lowered) {
      InstrumentedModule instrumented = instrument(lowered.pipeline.module);
      lowered.pipeline.module = std::move(instrumented.module);
      result.calls = std::move(instrumented.calls);
    };
  result.ready = make_ready(model, options.target, pipeline, adjust);
  InputOptions inputs;
  inputs.dims = parse_dims(options.dims);
  inputs.meanings = result.ready.meanings;
  BoundRun bound(result.ready.program,
                 make_inputs(signature_of(result.ready.program->declaration()), inputs));
  result.workspace_bytes = bound.workspace_bytes();
  progress.show(model + ": run");
  bound.run();  // warms caches and threads
  reset_kernel_times(result.calls.size());
  for (int i = 0; i < options.repeat; ++i) result.times.push_back(bound.run());
  result.kernels = kernel_times();
  result.rss_mb = peak_memory_mb();
  return result;
}

double milliseconds(const KernelTime& kernel, const Measurement& result) {
  return milliseconds_of(kernel, result.times.size());
}

// The calls of a program, those that take longest first.
std::vector<size_t> by_time(const Measurement& result) {
  std::vector<size_t> order(result.kernels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-milliseconds(result.kernels[a], result), a) <
           std::pair(-milliseconds(result.kernels[b], result), b);
  });
  return order;
}

void print_kernels(const Measurement& result) {
  double total = 0;
  for (const KernelTime& kernel : result.kernels) total += milliseconds(kernel, result);
  fmt::print("  {:>10} {:>6} {:>6}  {}\n", "ms a run", "share", "calls", "kernel");
  for (const size_t i : by_time(result)) {
    const KernelTime& kernel = result.kernels[i];
    const double ms = milliseconds(kernel, result);
    fmt::print("  {:>10.4f} {:>5.1f}% {:>6}  {}\n", ms, total > 0 ? 100 * ms / total : 0,
               kernel.runs / static_cast<int64_t>(result.times.size()), result.calls[i].str());
  }
}

nlohmann::ordered_json kernels_json(const Measurement& result) {
  auto list = nlohmann::ordered_json::array();
  for (const size_t i : by_time(result))
    list.push_back({{"kernel", result.calls[i].str()},
                    {"ms", milliseconds(result.kernels[i], result)},
                    {"calls", result.kernels[i].runs / static_cast<int64_t>(result.times.size())}});
  return list;
}

int bench(const BenchOptions& options) {
  if (options.repeat < 1) throw UsageError("--repeat {} is below 1", options.repeat);
  options.target.check();
  const int threads =
      options.target.threads > 0 ? options.target.threads : runtime::default_thread_count();
  auto json = nlohmann::ordered_json::array();
  if (!options.json)
    fmt::print("{:<32} {:>7} {:>10} {:>10} {:>10} {:>9} {:>8} {:>12} {:>12} {:>9}\n", "model",
               "threads", "min ms", "median ms", "compile ms", "load ms", "rss MB", "planned B",
               "bound B", "GFLOP/s");
  for (const std::string& model : options.models) {
    const Measurement result = measure(model, options);
    const TenonProgram& program = result.ready.program->declaration();
    const double fastest = *std::min_element(result.times.begin(), result.times.end());
    const double middle = median(result.times);
    const double gflops = middle > 0 ? result.ready.gflop / middle : 0;
    const bool symbolic = program.workspace_bytes < 0;
    const int64_t planned = symbolic ? result.workspace_bytes : program.planned_bytes;
    json.push_back({{"model", model},
                    {"threads", threads},
                    {"min_ms", fastest * 1e3},
                    {"median_ms", middle * 1e3},
                    {"compile_ms", result.ready.compile_seconds * 1e3},
                    {"load_ms", result.ready.load_seconds * 1e3},
                    {"rss_mb", result.rss_mb},
                    {"planned_bytes", planned},
                    {"bound_bytes", nullptr},
                    {"gflops", gflops}});
    if (!symbolic) json.back()["bound_bytes"] = program.bound_bytes;
    if (!result.ready.offload.empty()) json.back()["offload"] = json_of(result.ready.offload);
    json.back()["memory"] = json_of(result.ready.memory);
    if (options.per_kernel) json.back()["kernels"] = kernels_json(result);
    if (options.json) continue;
    fmt::print(
        "{:<32} {:>7} {:>10.3f} {:>10.3f} {:>10.1f} {:>9.2f} {:>8.0f} {:>12} {:>12} {:>9.1f}\n",
        model, threads, fastest * 1e3, middle * 1e3, result.ready.compile_seconds * 1e3,
        result.ready.load_seconds * 1e3, result.rss_mb, planned, program.bound_bytes, gflops);
    if (!result.ready.offload.empty()) fmt::print("  operators  {}\n", str(result.ready.offload));
    if (options.per_kernel) print_kernels(result);
    std::fflush(stdout);
  }
  if (options.json)
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "time models");
  command->add_option("MODEL", options->models, ".onnx, .py, .tvmscript or compiled .so")
      ->required();
  command->add_option("--repeat", options->repeat, "timed runs, after one that is not")
      ->capture_default_str();
  command->add_option("--dim", options->dims, "NAME=N: a symbolic dimension of the inputs");
  command->add_flag("--per-kernel", options->per_kernel,
                    "also the time of each call of a kernel (of models compiled here)");
  command->add_flag("--json", options->json, "the result as JSON: a list with an object a model");
  options->target.add_to(*command);
  options->target.model.add_plan_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      std::set<std::string_view> forms;
      for (const std::string& model : options->models) forms.insert(options->target.form(model));
      for (const std::string_view form : forms) check_options(*command, form);
      return bench(*options);
    };
  });
}

}  // namespace tenon
