// SPDX-License-Identifier: Apache-2.0
// `tenon tune`: searches for better plans of a model's kernels, and for the libraries that compute parts of
// its graph faster. `tenon measure`: one measurement.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tenon/backend/llvm/host.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/launcher.h"
#include "tenon/driver/measure.h"
#include "tenon/driver/network_check.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/placement_tuning.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/tunable.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/transforms.h"
#include "tenon/runtime/cpu_count.h"
#include "tenon/support/temporary_files.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tune/machine.h"

namespace tenon {

namespace {

using tune::Search;
using tune::Status;

struct TuneOptions {
  std::string model, db, machine;
  double seconds = 600, run_limit = 60;
  int64_t memory_limit = 8192;  // MiB
  int64_t trials = 0;           // 0: as many as the time allows
  uint64_t seed = 0;
  std::vector<std::string> dims;
  std::optional<int64_t> max_peak;  // bytes
  bool json = false;
  LauncherOptions launcher;
  TargetOptions target;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check(const TuneOptions& options) {
  options.target.check();
  if (!(options.seconds > 0)) throw UsageError("--seconds {} is not above 0", options.seconds);
  if (!(options.run_limit > 0))
    throw UsageError("--run-limit {} is not above 0", options.run_limit);
  if (options.trials < 0) throw UsageError("--trials {} is below 0", options.trials);
  if (options.memory_limit < 1)
    throw UsageError("--memory-limit {} is below 1", options.memory_limit);
  if (options.max_peak && *options.max_peak < 0)
    throw UsageError("--max-peak {} is below 0", *options.max_peak);
}

std::vector<std::string> absolute(const std::vector<std::string>& files) {
  std::vector<std::string> out = files;
  for (std::string& file : out) file = std::filesystem::absolute(file).string();
  return out;
}

// What every job of the model has in common.
void complete(std::vector<tune::Kernel>& kernels, const TuneOptions& options, bool is_cold) {
  for (tune::Kernel& kernel : kernels) {
    kernel.job.threads = options.target.threads;
    kernel.job.link = absolute(options.target.model.link);
    kernel.job.plugins = absolute(options.target.model.plugins.files);
    kernel.job.seconds = options.run_limit;
    kernel.job.memory_bytes = options.memory_limit << 20;
    kernel.job.is_cold = is_cold;
  }
}

std::string ended_text(const Search::State& state) {
  std::string text;
  for (const auto& [status, count] : state.ended)
    if (status != Status::kOk) text += fmt::format(", {} {}", count, tune::name_of(status));
  return text;
}

/// What a tuning came to.
struct Tuned {
  const Search& parts;
  ConfirmedPlacement placement;
  const Search& kernels;
  const std::vector<std::pair<std::string, std::string>>& left;  // kernels, and why
  TimesInTurn network;                                           // by plans
};

nlohmann::ordered_json json_of(const TimesInTurn& times, const char* usual) {
  if (times.usual_us <= 0) return {};
  return {{usual, times.usual_us}, {"tuned_us", times.tuned_us}};
}

nlohmann::ordered_json json_of(const Search::State& state, const char* name, const char* usual) {
  nlohmann::ordered_json json = {{name, state.kernel->job.kernel},
                                 {"hash", state.kernel->job.hash},
                                 {"calls", state.kernel->calls},
                                 {usual, state.default_us},
                                 {"ratio", state.choice ? state.choice->ratio : 1},
                                 {"tried", state.tried},
                                 {"ended", nlohmann::ordered_json::object()},
                                 {"failure", state.failure}};
  for (const auto& [status, count] : state.ended) json["ended"][tune::name_of(status)] = count;
  return json;
}

nlohmann::ordered_json json_of(const TuneOptions& options, const Tuned& tuned) {
  auto kernels = nlohmann::ordered_json::array(), left = nlohmann::ordered_json::array(),
       parts = nlohmann::ordered_json::array();
  for (const Search::State& state : tuned.parts.states()) {
    parts.push_back(json_of(state, "part", "own_us"));
    parts.back()["provider"] = state.choice ? state.choice->plan : "";
  }
  for (const Search::State& state : tuned.kernels.states())
    kernels.push_back(json_of(state, "kernel", "default_us"));
  for (const auto& [name, why] : tuned.left) left.push_back({{"kernel", name}, {"reason", why}});
  nlohmann::ordered_json json = {{"model", options.model}, {"database", options.db}};
  if (!parts.empty()) {
    json["parts"] = parts;
    json["placed_network"] = json_of(tuned.placement.network, "own_us");
  }
  if (tuned.placement.peak) json["peak_bytes"] = *tuned.placement.peak;
  json["kernels"] = kernels;
  json["left"] = left;
  json["network"] = json_of(tuned.network, "default_us");
  return json;
}

// Returns how many gained, and how many were measured.
std::pair<int64_t, int64_t> print_table(const Search& search, const char* usual, const char* what) {
  fmt::print("{:>10} {:>6} {:>7} {:>6}  {}\n", usual, "calls", "tuned", "tried", what);
  int64_t gained = 0, measured = 0;
  for (const Search::State& state : search.states()) {
    gained += state.choice.has_value();
    measured += state.default_us > 0;
    const bool is_part = !state.kernel->providers.empty();
    fmt::print("{:>10.2f} {:>6} {:>7} {:>6}  {}{}{}{}\n", state.default_us, state.kernel->calls,
               state.choice ? fmt::format("{:.3f}", state.choice->ratio) : "-", state.tried,
               state.kernel->job.kernel, state.choice && is_part ? " by " + state.choice->plan : "",
               ended_text(state), state.failure.empty() ? "" : "; not tuned, " + state.failure);
  }
  return {gained, measured};
}

void print(const Tuned& tuned) {
  if (!tuned.parts.states().empty()) {
    const auto [gained, measured] = print_table(tuned.parts, "own us", "part of the graph");
    fmt::print("{} of {} parts are faster in a library\n", gained, measured);
    const ConfirmedPlacement& placement = tuned.placement;
    if (placement.network.usual_us > 0)
      fmt::print("the network takes {} with these, {} by own code\n",
                 time_text(placement.network.tuned_us / 1e6),
                 time_text(placement.network.usual_us / 1e6));
    fmt::print("\n");
  }
  const auto [gained, measured] = print_table(tuned.kernels, "default us", "kernel");
  for (const auto& [name, why] : tuned.left) fmt::print("{:>33}  {}: {}\n", "-", name, why);
  fmt::print("{} of {} kernels have a faster plan\n", gained, measured);
  if (tuned.network.usual_us > 0)
    fmt::print("the network takes {} by them, {} by the default plans\n",
               time_text(tuned.network.tuned_us / 1e6), time_text(tuned.network.usual_us / 1e6));
  if (tuned.placement.peak)
    fmt::print("the network's planned peak is {} bytes\n", *tuned.placement.peak);
}

// The hashes of the plans to give up: those whose kernel is not faster between the others, or, where the
// network as a whole is slower although each of them is, the half that gains least.
std::vector<std::string> slower_in_network(const NetworkTimes& times) {
  std::vector<std::string> out;
  std::vector<std::pair<double, std::string>> gains;
  for (const auto& [hash, kernel] : times.kernels) {
    if (kernel.is_slower()) out.push_back(hash);
    gains.emplace_back(kernel.usual_us - kernel.tuned_us, hash);
  }
  if (!out.empty() || !times.network.is_slower()) return out;
  std::sort(gains.begin(), gains.end());
  gains.resize((gains.size() + 1) / 2);
  for (auto& [gain, hash] : gains) out.push_back(std::move(hash));
  return out;
}

// Of runs in which two networks are compared.
double seconds_of_network(const TuneOptions& options) {
  return std::clamp(options.seconds / 20, 1.0, 30.0);
}

// Until the network is faster by its plans, or has none: others take the place of those given up, and are
// looked at too. Returns what it takes in the end.
TimesInTurn confirm(Search& search, const IRModule& prepared, const CompileRequest& request,
                    const TuneOptions& options) {
  for (;;) {
    NetworkVariant tuned{request};
    for (const Search::State& state : search.states())
      if (state.choice) tuned.plans.emplace(state.kernel->job.hash, state.choice->plan);
    if (tuned.plans.empty()) return {};
    const NetworkTimes times = times_in_turn(prepared, {request}, tuned, options.target,
                                             parse_dims(options.dims), seconds_of_network(options));
    if (!times.failure.empty()) {
      warn(kRunFailed, {}, "the network is not measured as a whole by its plans: it ended with {}",
           times.failure);
      return {};
    }
    const std::vector<std::string> slower = slower_in_network(times);
    if (slower.empty()) return times.network;
    for (const std::string& hash : slower) {
      const TimesInTurn& kernel = times.kernels.at(hash);
      const bool is_kernel = kernel.is_slower();
      const TimesInTurn& seen = is_kernel ? kernel : times.network;
      search.give_up(hash, seen.usual_us, seen.tuned_us,
                     is_kernel ? "between other kernels" : "the network as a whole");
    }
  }
}

// The kind of machine that the search is for.
std::string searched_machine(const TuneOptions& options) {
  std::string here = tune::this_machine(llvm_backend::host_target()).fingerprint;
  if (options.machine.empty()) return here;
  if (options.launcher.name == "local" && options.machine != here)
    throw UsageError("--machine {}: measurements run here, on a machine {}", options.machine, here);
  return options.machine;
}

/// Measures what searches ask for, while there is time.
class Measurements {
 public:
  explicit Measurements(const TuneOptions& options)
      : options_(options),
        launcher_(make_launcher(options.launcher)),
        left_(options.trials > 0 ? options.trials : std::numeric_limits<int64_t>::max()) {}

  void run(Search& search, Progress& progress) {
    while (left_ > 0 && seconds_since(start_) < options_.seconds) {
      const std::vector<tune::Job> jobs =
          search.next(std::min(launcher_->batch(), static_cast<size_t>(left_)));
      if (jobs.empty()) break;
      left_ -= static_cast<int64_t>(jobs.size());
      progress.show(fmt::format("{}: {}", options_.model, jobs.front().kernel));
      launcher_->run(jobs, [&](const tune::Job& job, const tune::JobResult& result) {
        search.record(job, result);
      });
    }
  }

 private:
  const TuneOptions& options_;
  const Clock::time_point start_ = Clock::now();
  std::unique_ptr<Launcher> launcher_;
  int64_t left_;
};

CompileRequest request_of(const TuneOptions& options) {
  CompileRequest request = options.target.model.request(options.model, options.target.target);
  if (request.target.kind != "llvm")
    throw UsageError("--target {}: code of this target is not measured; expected llvm",
                     options.target.target);
  request.unchecked = options.target.unchecked;
  return request;
}

tune::SearchOptions search_options(const TuneOptions& options) {
  tune::SearchOptions out;
  out.seed = options.seed;
  out.machine = searched_machine(options);
  out.compiler = TENON_VERSION;
  out.threads =
      options.target.threads > 0 ? options.target.threads : runtime::default_thread_count();
  return out;
}

int tune_model(const TuneOptions& options) {
  check(options);
  Measurements measurements(options);
  Progress progress;
  const auto show = [&](const std::string& what) { progress.show(options.model + ": " + what); };
  CompileRequest request = request_of(options);
  request.pipeline.progress = show;
  const bool runs_here = options.launcher.name == "local";
  if (runs_here) llvm_backend::check_runs_here(request.target);
  tune::Database database(options.db, tune::Database::Open::kWrite);
  const IRModule prepared = options.target.model.read(options.model);
  const std::map<std::string, int64_t> dims = parse_dims(options.dims);
  const tune::SearchOptions how = search_options(options);

  // Parts of the graph first: what is left of them to own code is what has kernels.
  std::vector<tune::Kernel> parts = tunable_parts(prepared, request, dims);
  complete(parts, options, graph::bytes_of_constants(prepared) > request.target.l2_bytes);
  Search part_search(std::move(parts), how, database);
  measurements.run(part_search, progress);
  ConfirmedPlacement placement =
      confirm_placement(part_search, {.prepared = prepared,
                                      .request = request,
                                      .options = options.target,
                                      .dims = dims,
                                      .seconds = seconds_of_network(options),
                                      .max_peak = options.max_peak,
                                      .runs_here = runs_here,
                                      .progress = show});
  request.measured = measured_by(part_search);

  TunableKernels found = tunable_kernels(prepared, request, dims);
  complete(found.kernels, options, found.constant_bytes > request.target.l2_bytes);
  Search search(std::move(found.kernels), how, database);
  measurements.run(search, progress);
  TimesInTurn network;
  if (runs_here) {
    show("the network by its plans");
    network = confirm(search, prepared, request, options);
  }
  progress.clear();
  std::map<std::string, int64_t> strays = search.strays();
  for (const auto& [other, count] : part_search.strays()) strays[other] += count;
  for (const auto& [other, count] : strays)
    warn(kNotUsed, {},
         "{} results are of machines {}: they are kept apart; `--machine {}` searches for those",
         count, other, other);
  const Tuned tuned{part_search, placement, search, found.left, network};
  if (options.json)
    print_json(json_of(options, tuned));
  else
    print(tuned);
  return 0;
}

int measure_file(const std::string& path, const std::string& out) {
  const tune::JobResult result = measure(tune::read_job(path, read_file(path)), path);
  write_file(out, tune::text_of(result));
  return result.measurement.status == Status::kOk ? 0 : 1;
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "search for faster plans of a model's kernels, and for what libraries compute faster");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command
      ->add_option("--db", options->db,
                   "FILE: the database of measurements, made where it is not there; a search that "
                   "was ended goes on from it (docs/tuning.md)")
      ->required();
  command->add_option("--seconds", options->seconds, "of the search")->capture_default_str();
  command->add_option("--trials", options->trials,
                      "measurements at most (default: as many as the time allows)");
  command->add_option("--seed", options->seed, "of random inputs (default 0)");
  command->add_option("--run-limit", options->run_limit, "seconds of one measurement")
      ->capture_default_str();
  command->add_option("--memory-limit", options->memory_limit, "MiB of one measurement")
      ->capture_default_str();
  command->add_option(
      "--max-peak", options->max_peak,
      "bytes: of what libraries compute faster, take what keeps the planned peak of "
      "the network's memory within this");
  command->add_option(
      "--dim", options->dims,
      fmt::format("NAME=N: a symbolic dimension to measure with (default {})", kDefaultDim));
  command
      ->add_option("--launcher", options->launcher.name,
                   "where measurements run: local (here), or slurm (sbatch)")
      ->capture_default_str();
  command->add_option("--launcher-option", options->launcher.commands,
                      "slurm: a word for sbatch, such as --constraint=icelake; may be repeated");
  command->add_option("--launcher-folder", options->launcher.folder,
                      "slurm: a folder that all machines share, for jobs (default: this one)");
  command->add_option("--machine", options->machine,
                      "slurm: the kind of machine that plans are for, by its fingerprint "
                      "(default: this one's)");
  command->add_flag("--json", options->json, "the result as JSON");
  options->target.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, "model");
      return tune_model(*options);
    };
  });
}

void add_measure_command(CLI::App& app, Action& action) {
  const auto path = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("measure", "one measurement of the tuner: a file in, a file out");
  command->add_option("JOB", *path, "job.json, as `tenon tune` writes it")->required();
  command->add_option("-o,--out", *out, "result.json")->required();
  command->callback([path, out, command, &action] {
    action = [path, out, command] {
      check_options(*command, "job");
      return measure_file(*path, *out);
    };
  });
}

}  // namespace tenon
