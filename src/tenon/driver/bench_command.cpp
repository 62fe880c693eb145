// `tenon bench`: how long models take.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
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
};

Measurement measure(const std::string& model, const BenchOptions& options) {
  Progress progress;
  PipelineOptions pipeline;
  pipeline.verify = false;  // the times are those of compiling alone
  pipeline.progress = [&](const std::string& what) { progress.show(model + ": " + what); };
  Measurement result;
  result.ready = make_ready(model, options.target, pipeline);
  InputOptions inputs;
  for (const std::string& text : options.dims) {
    const size_t equals = text.find('=');
    int64_t number = 0;
    if (equals == std::string::npos ||
        !CLI::detail::lexical_cast(text.substr(equals + 1), number) || number < 0)
      throw UsageError("--dim {}: expected NAME=N", text);
    inputs.dims[text.substr(0, equals)] = number;
  }
  BoundRun bound(result.ready.program,
                 make_inputs(signature_of(result.ready.program->declaration()), inputs));
  result.workspace_bytes = bound.workspace_bytes();
  progress.show(model + ": run");
  bound.run();  // warms caches and threads
  for (int i = 0; i < options.repeat; ++i) result.times.push_back(bound.run());
  result.rss_mb = peak_memory_mb();
  return result;
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
                    {"bound_bytes", program.bound_bytes},
                    {"gflops", gflops}});
    if (options.json) continue;
    fmt::print(
        "{:<32} {:>7} {:>10.3f} {:>10.3f} {:>10.1f} {:>9.2f} {:>8.0f} {:>12} {:>12} {:>9.1f}\n",
        model, threads, fastest * 1e3, middle * 1e3, result.ready.compile_seconds * 1e3,
        result.ready.load_seconds * 1e3, result.rss_mb, planned, program.bound_bytes, gflops);
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
  command->add_flag("--json", options->json, "the result as JSON: a list with an object a model");
  options->target.add_to(*command);
  command->callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace tenon
