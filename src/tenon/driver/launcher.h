// SPDX-License-Identifier: Apache-2.0
// Where measurements run: beside this process, or on the machines of a cluster.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tenon/tune/job.h"

namespace tenon {

/// Runs `tenon measure` for jobs, which are files, and reads the results, which are files too.
class Launcher {
 public:
  using Done = std::function<void(const tune::Job&, const tune::JobResult&)>;
  virtual ~Launcher() = default;
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// How many jobs are best given together.
  virtual size_t batch() const = 0;
  /// Runs the jobs and calls `done` for each as soon as its result is there, also where its machine
  /// went away. \throws CompileError (kRunFailed) where jobs cannot be started; kBadJob.
  virtual void run(const std::vector<tune::Job>& jobs, const Done& done) = 0;
};

struct LauncherOptions {
  std::string name = "local";         // or "slurm"
  std::vector<std::string> commands;  // more words for sbatch
  std::string folder;                 // that all machines share, for jobs and results; slurm
};

/// \throws UsageError at a name that is not known.
std::unique_ptr<Launcher> make_launcher(const LauncherOptions& options);

}  // namespace tenon
