// SPDX-License-Identifier: Apache-2.0
// fuzz_tir: random PrimFuncs and random schedules against the interpreter.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "judge.h"
#include "program_case.h"
#include "reduce.h"

namespace tenon::fuzz {
namespace {

struct Settings {
  std::string kind = "schedules", out = "fuzz-failures", replay;
  uint64_t seed = 1;
  int64_t count = 1000;
  double seconds = 0;  // 0: no limit
  int jobs = 1;
  double reduce_seconds = 30;
  int most_alike = 2;  // faults of one kind that are reduced
  bool verbose = false;
  std::string target;  // of programs: a name, or "all"; empty: some in turn
  bool programs() const { return kind == "programs"; }
};

/// What a worker tells of itself, in memory that it shares: it may die at any time.
struct Progress {
  uint64_t next;  // offset of the case that it is at
  int64_t cases, steps, taken, compiled, refused, faults;
  char kind[200];  // of the fault that it ended with
};
constexpr int kFoundFault = 3;  // exit status of a worker

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_schedule(const std::string& text) { return text.find("# step ") != std::string::npos; }

std::optional<Fault> judge_text(const std::string& text, const std::string& target = {}) {
  return is_schedule(text) ? run_case(schedule_case_of(text), nullptr, nullptr)
                           : run_program(text, nullptr, target);
}

std::string commented(const std::string& trace) {
  std::string out;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) out += "# > " + line + "\n";
  return out;
}

std::string text_of_seed(const Settings& settings, uint64_t seed) {
  return settings.programs() ? program_text(seed) : text_of(random_schedule_case(seed));
}

/// Writes the case of `seed` as small as it can be made, with what went wrong and how to see it.
void report(const Settings& settings, uint64_t seed) {
  const std::string text = text_of_seed(settings, seed);
  // A program that fails for one target needs no other.
  std::string target = settings.target;
  const auto kind_of = [&](const std::string& candidate) {
    return outcome([&] { return judge_text(candidate, target); }, 20);
  };
  const std::string first = kind_of(text);
  if (const size_t at = first.find(" ["); at != std::string::npos && settings.programs())
    target = first.substr(at + 2, first.size() - at - 3);
  const std::string small = reduce_text(text, kind_of, settings.reduce_seconds);
  const std::string kind = kind_of(small);
  std::string trace;
  if (is_schedule(small))
    trace = outcome([&]() -> std::optional<Fault> {
      std::string applied;
      run_case(schedule_case_of(small), &applied, nullptr);
      return Fault{applied, {}};
    });
  std::filesystem::create_directories(settings.out);
  const std::string path = fmt::format("{}/{}_{}.py", settings.out, settings.kind, seed);
  std::ofstream file(path);
  file << "# fault: " << kind << "\n# found with --kind " << settings.kind << " --seed " << seed
       << " --count 1; again with fuzz_tir --replay " << path << "\n"
       << commented(trace) << small;
  fmt::print("FAULT {} {}: {}\n  fuzz_tir --replay {}\n", settings.kind, seed, kind, path);
  std::fflush(stdout);
}

void work(const Settings& settings, int worker, Progress& progress, double end) {
  StepCounts steps;
  ProgramCounts programs;
  const auto jobs = static_cast<uint64_t>(settings.jobs);
  for (uint64_t i = progress.next + static_cast<uint64_t>(worker);
       i < static_cast<uint64_t>(settings.count) && (end == 0 || now() < end); i += jobs) {
    const uint64_t seed = settings.seed + i;
    progress.next = i - static_cast<uint64_t>(worker);
    alarm(60);
    const int64_t tried = steps.tried, taken = steps.taken, compiled = programs.compiled;
    const std::optional<Fault> fault =
        settings.programs() ? run_program(program_text(seed), &programs, settings.target)
                            : run_case(random_schedule_case(seed), nullptr, &steps);
    alarm(0);
    ++progress.cases;
    progress.steps += steps.tried - tried;
    progress.taken += steps.taken - taken;
    progress.compiled += programs.compiled - compiled;
    if (!fault) continue;
    std::strncpy(progress.kind, fault->kind.c_str(), sizeof(progress.kind) - 1);
    _exit(kFoundFault);
  }
  if (settings.verbose) {
    for (const auto& [name, count] : steps.by_primitive)
      fmt::print("{:<24} tried {:>8} taken {:>8}\n", name, count.tried, count.taken);
    for (const auto& [reason, times] : steps.reasons) fmt::print("{:>8} {}\n", times, reason);
  }
  for (const auto& [reason, refusal] : programs.refusals) {
    progress.refused += refusal.times;
    fmt::print("{:>8} refused, the first with seed {}: {}\n", refusal.times, refusal.seed, reason);
  }
  std::fflush(stdout);
}

int run(const Settings& settings) {
  const double start = now();
  const double end = settings.seconds > 0 ? start + settings.seconds : 0;
  const size_t bytes = sizeof(Progress) * static_cast<size_t>(settings.jobs);
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::map<pid_t, int> workers;
  const auto begin = [&](int worker) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      work(settings, worker, progress[worker], end);
      _exit(0);
    }
    workers[child] = worker;
  };
  for (int worker = 0; worker < settings.jobs; ++worker) begin(worker);
  std::map<std::string, int> alike;
  while (!workers.empty()) {
    int status = 0;
    const pid_t child = wait(&status);
    const auto found = workers.find(child);
    if (found == workers.end()) continue;
    const int worker = found->second;
    workers.erase(found);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    // The case that it was at is a fault; another worker goes on behind it.
    Progress& at = progress[worker];
    ++at.faults;
    const std::string kind =
        WIFEXITED(status) ? at.kind : fmt::format("signal {}", WTERMSIG(status));
    std::memset(at.kind, 0, sizeof(at.kind));
    const uint64_t seed = settings.seed + at.next + static_cast<uint64_t>(worker);
    at.next += static_cast<uint64_t>(settings.jobs);
    begin(worker);
    if (++alike[kind] <= settings.most_alike)
      report(settings, seed);
    else
      fmt::print("FAULT {} {}: {}, as others\n", settings.kind, seed, kind);
  }
  Progress all{};
  for (int worker = 0; worker < settings.jobs; ++worker) {
    const Progress& one = progress[worker];
    all.cases += one.cases;
    all.steps += one.steps;
    all.taken += one.taken;
    all.compiled += one.compiled;
    all.refused += one.refused;
    all.faults += one.faults;
  }
  const std::string done =
      settings.programs()
          ? fmt::format("{} programs, {} times compiled, {} refused", all.cases, all.compiled,
                        all.refused)
          : fmt::format("{} schedules, {} steps ({} taken)", all.cases, all.steps, all.taken);
  // Where time was up, workers have come to different seeds.
  const std::string seeds =
      all.cases + all.faults >= settings.count
          ? fmt::format("seeds {} to {}", settings.seed,
                        settings.seed + static_cast<uint64_t>(settings.count) - 1)
          : fmt::format("about {} seeds from {}", all.cases, settings.seed);
  fmt::print("{}: {}, {}, {} faults, {:.1f} s\n", settings.kind, seeds, done, all.faults,
             now() - start);
  return all.faults == 0 ? 0 : 1;
}

int replay_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const auto fault = judge_text(text.str(), "all");
  if (!fault) {
    fmt::print("no fault\n");
    return 0;
  }
  fmt::print("{}\n{}\n", fault->kind, fault->detail);
  return 1;
}

}  // namespace
}  // namespace tenon::fuzz

int main(int argc, char** argv) {
  using namespace tenon::fuzz;
  Settings settings;
  bool show = false;
  CLI::App app{"Random PrimFuncs and random schedules against the interpreter"};
  app.add_option("--kind", settings.kind, "what is drawn")
      ->check(CLI::IsMember({"schedules", "programs"}))
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "of the first case")->capture_default_str();
  app.add_option("--count", settings.count, "of cases")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "at most (0: no limit)")->capture_default_str();
  app.add_option("--jobs", settings.jobs, "processes side by side")->capture_default_str();
  app.add_option("--out", settings.out, "folder for failing cases")->capture_default_str();
  app.add_option("--replay", settings.replay, "a file of --out: shows its fault again");
  app.add_option("--reduce-seconds", settings.reduce_seconds, "for making one case smaller")
      ->capture_default_str();
  std::vector<std::string> names{"all"};
  for (const ProgramTarget& target : program_targets()) names.push_back(target.name);
  app.add_option("--target", settings.target, "programs: for one target, or all; else some in turn")
      ->check(CLI::IsMember(names));
  app.add_flag("--show", show, "print the case of --seed and run nothing");
  app.add_flag("--verbose", settings.verbose, "counts of each primitive, reasons of refusals");
  CLI11_PARSE(app, argc, argv);
  try {
    if (show) {
      fmt::print("{}", text_of_seed(settings, settings.seed));
      return 0;
    }
    return settings.replay.empty() ? run(settings) : replay_file(settings.replay);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
