// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/slurm_launcher.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "tenon/driver/console.h"
#include "tenon/driver/measure.h"
#include "tenon/driver/probe.h"
#include "tenon/driver/usage.h"
#include "tenon/support/interrupt.h"
#include "tenon/support/temporary_files.h"

namespace tenon {

namespace {

namespace fs = std::filesystem;

// Jobs of one array: enough that several nodes have work, few enough that the search learns from them.
constexpr size_t kBatch = 32;
// Times that a job is submitted whose node went away.
constexpr int kMostSubmissions = 3;
constexpr double kPoll = 1, kCommandLimit = 60;            // seconds
constexpr auto kSettle = std::chrono::milliseconds(2000);  // of shared file systems

class SlurmLauncher final : public Launcher {
 public:
  explicit SlurmLauncher(const LauncherOptions& options)
      : words_(options.commands),
        folder_(TemporaryFolder::beside(
            (fs::absolute(options.folder.empty() ? "." : options.folder) / "jobs").string())) {}

  size_t batch() const override { return kBatch; }

  void run(const std::vector<tune::Job>& jobs, const Done& done) override {
    jobs_ = &jobs;
    std::set<size_t> left;
    for (size_t i = 0; i < jobs.size(); ++i) {
      write_file(job_file(i), tune::text_of(jobs[i]));
      fs::remove(result_file(i));
      left.insert(i);
    }
    for (int submission = 0; submission < kMostSubmissions && !left.empty(); ++submission) {
      const std::string id = submit(left);
      wait(id, left, done);
    }
    for (const size_t i : left) {
      tune::JobResult lost = result_of(jobs[i]);
      lost.measurement.status = tune::Status::kLost;
      lost.measurement.detail = fmt::format("no result after {} submissions", kMostSubmissions);
      done(jobs[i], lost);
    }
  }

 private:
  std::string job_file(size_t i) const { return folder_.file(fmt::format("{}.json", i)); }
  std::string result_file(size_t i) const { return folder_.file(fmt::format("{}.result.json", i)); }

  static std::string output_of(const std::vector<std::string>& words) {
    const Outcome outcome = probe(words, {.time_limit = kCommandLimit, .memory_limit = 0});
    if (outcome.failed())
      throw CompileError(kRunFailed, {}, "`{}` ended with {}: {}", shell_line(words), outcome.key,
                         outcome.output);
    return outcome.output;
  }

  // An array with an element for each job that is left; Slurm itself starts those again whose node
  // fails, and what it loses is submitted again. A result replaces another as a whole.
  std::string submit(const std::set<size_t>& left) {
    const std::string script = folder_.file("measure.sh");
    const std::string own = shell_line(own_command({"measure"}));
    write_file(script, fmt::format("#!/bin/sh\nexec {} {}/$SLURM_ARRAY_TASK_ID.json -o "
                                   "{}/$SLURM_ARRAY_TASK_ID.result.json\n",
                                   own, shell_word(folder_.path()), shell_word(folder_.path())));
    std::vector<std::string> words = {"sbatch", "--parsable", "--requeue",
                                      fmt::format("--array={}", fmt::join(left, ",")),
                                      "--output=" + folder_.file("%a.log")};
    words.insert(words.end(), words_.begin(), words_.end());
    words.push_back(script);
    // "123" or "123;cluster"
    const std::string said = output_of(words);
    const std::string id = said.substr(0, said.find_first_not_of("0123456789"));
    if (id.empty()) throw CompileError(kRunFailed, {}, "sbatch gave no job: {}", said);
    return id;
  }

  // Until every element has a result or is known to Slurm no more.
  void wait(const std::string& id, std::set<size_t>& left, const Done& done) {
    while (!left.empty()) {
      const bool is_over = queue_is_empty(id);
      if (is_over) std::this_thread::sleep_for(kSettle);
      collect(left, done);
      if (is_over) return;
      check_interrupt();
      std::this_thread::sleep_for(std::chrono::duration<double>(kPoll));
    }
  }

  static bool queue_is_empty(const std::string& id) {
    const std::vector<std::string> words = {"squeue", "--noheader", "--format=%T", "--job=" + id};
    const Outcome outcome = probe(words, {.time_limit = kCommandLimit, .memory_limit = 0});
    // Slurm forgets jobs that are over after a while.
    if (outcome.output.find("Invalid job id") != std::string::npos) return true;
    if (outcome.failed()) return false;  // the controller may be back soon
    return outcome.output.find_first_not_of(" \n") == std::string::npos;
  }

  void collect(std::set<size_t>& left, const Done& done) {
    for (auto i = left.begin(); i != left.end();) {
      const std::string file = result_file(*i);
      if (!fs::exists(file)) {
        ++i;
        continue;
      }
      done((*jobs_)[*i], tune::read_result(file, read_file(file)));
      i = left.erase(i);
    }
  }

  std::vector<std::string> words_;
  TemporaryFolder folder_;
  const std::vector<tune::Job>* jobs_ = nullptr;
};

}  // namespace

std::unique_ptr<Launcher> slurm_launcher(const LauncherOptions& options) {
  return std::make_unique<SlurmLauncher>(options);
}

}  // namespace tenon
