// fuzz_tir: random PrimFuncs and random schedules against the interpreter.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "judge.h"
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
};

/// What a worker tells of itself, in memory that it shares: it may die at any time.
struct Progress {
  volatile uint64_t seed;
  volatile int64_t cases, steps, taken, faults;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<Fault> judge_text(const std::string& text) {
  return run_case(schedule_case_of(text), nullptr, nullptr);
}

std::string commented(const std::string& trace) {
  std::string out;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) out += "# > " + line + "\n";
  return out;
}

/// Writes the case of `seed` as small as it can be made, with what went wrong and how to see it.
void report(const Settings& settings, uint64_t seed) {
  const std::string text = text_of(random_schedule_case(seed));
  const auto kind_of = [](const std::string& candidate) {
    return outcome([&] { return judge_text(candidate); });
  };
  const std::string small = reduce_text(text, kind_of, settings.reduce_seconds);
  const std::string kind = kind_of(small);
  const std::string trace = outcome([&]() -> std::optional<Fault> {
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
  std::map<std::string, int> alike;
  StepCounts counts;
  const auto jobs = static_cast<uint64_t>(settings.jobs);
  for (uint64_t i = static_cast<uint64_t>(worker) + progress.seed;
       i < static_cast<uint64_t>(settings.count) && (end == 0 || now() < end); i += jobs) {
    const uint64_t seed = settings.seed + i;
    progress.seed = i - static_cast<uint64_t>(worker);
    alarm(60);
    const ScheduleCase c = random_schedule_case(seed);
    const int64_t tried = counts.tried, taken = counts.taken;
    const std::optional<Fault> fault = run_case(c, nullptr, &counts);
    alarm(0);
    progress.cases = progress.cases + 1;
    progress.steps = progress.steps + counts.tried - tried;
    progress.taken = progress.taken + counts.taken - taken;
    if (!fault) continue;
    progress.faults = progress.faults + 1;
    if (++alike[fault->kind] <= settings.most_alike) report(settings, seed);
  }
  if (settings.verbose) {
    for (const auto& [name, count] : counts.by_primitive)
      fmt::print("{:<24} tried {:>8} taken {:>8}\n", name, count.tried, count.taken);
    for (const auto& [reason, times] : counts.reasons) fmt::print("{:>8} {}\n", times, reason);
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
  while (!workers.empty()) {
    int status = 0;
    const pid_t child = wait(&status);
    const int worker = workers.at(child);
    workers.erase(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    // It died: the case that it was at is a fault; another worker goes on behind it.
    Progress& at = progress[worker];
    at.faults = at.faults + 1;
    report(settings, settings.seed + at.seed + static_cast<uint64_t>(worker));
    at.seed = at.seed + static_cast<uint64_t>(settings.jobs);
    begin(worker);
  }
  int64_t cases = 0, steps = 0, taken = 0, faults = 0;
  for (int worker = 0; worker < settings.jobs; ++worker) {
    cases += progress[worker].cases;
    steps += progress[worker].steps;
    taken += progress[worker].taken;
    faults += progress[worker].faults;
  }
  fmt::print("{}: seeds {} to {}, {} cases, {} steps ({} taken), {} faults, {:.1f} s\n",
             settings.kind, settings.seed,
             settings.seed + static_cast<uint64_t>(settings.count) - 1, cases, steps, taken, faults,
             now() - start);
  return faults == 0 ? 0 : 1;
}

int replay_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::string trace;
  const auto fault = run_case(schedule_case_of(text.str()), &trace, nullptr);
  fmt::print("{}", trace);
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
  CLI::App app{"Random PrimFuncs and random schedules against the interpreter"};
  app.add_option("--kind", settings.kind, "schedules")->capture_default_str();
  app.add_option("--seed", settings.seed, "of the first case")->capture_default_str();
  app.add_option("--count", settings.count, "of cases")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "at most (0: no limit)")->capture_default_str();
  app.add_option("--jobs", settings.jobs, "processes side by side")->capture_default_str();
  app.add_option("--out", settings.out, "folder for failing cases")->capture_default_str();
  app.add_option("--replay", settings.replay, "a file of --out: shows its fault again");
  app.add_option("--reduce-seconds", settings.reduce_seconds, "for making one case smaller")
      ->capture_default_str();
  app.add_flag("--verbose", settings.verbose, "counts of each primitive, reasons of refusals");
  CLI11_PARSE(app, argc, argv);
  try {
    return settings.replay.empty() ? run(settings) : replay_file(settings.replay);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
