// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/launcher.h"

#include <filesystem>

#include "tenon/driver/console.h"
#include "tenon/driver/measure.h"
#include "tenon/driver/probe.h"
#include "tenon/driver/slurm_launcher.h"
#include "tenon/driver/usage.h"
#include "tenon/support/interrupt.h"
#include "tenon/support/temporary_files.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

/// One job after the other: what runs beside a measurement falsifies it.
class LocalLauncher final : public Launcher {
 public:
  size_t batch() const override { return 1; }

  void run(const std::vector<tune::Job>& jobs, const Done& done) override {
    const TemporaryFolder folder;
    const std::string file = folder.file("job.json"), result = folder.file("result.json");
    for (const tune::Job& job : jobs) {
      check_interrupt();
      write_file(file, tune::text_of(job));
      std::filesystem::remove(result);
      // The command keeps the limits itself; what is left over is for starting it.
      constexpr double kStart = 60;
      const Outcome outcome = probe(own_command({"measure", file, "-o", result}),
                                    {.time_limit = job.seconds + kStart, .memory_limit = 0});
      if (std::filesystem::exists(result)) {
        done(job, tune::read_result(result, read_file(result)));
        continue;
      }
      if (outcome.kind == Outcome::Kind::kFailure)
        throw CompileError(kBadJob, {}, "`tenon measure` gave no result: {}", outcome.output);
      tune::JobResult lost = result_of(job);
      lost.measurement.status = tune::Status::kCrash;
      lost.measurement.detail = "`tenon measure` itself: " + outcome.key;
      done(job, lost);
    }
  }
};

}  // namespace

std::unique_ptr<Launcher> make_launcher(const LauncherOptions& options) {
  if (options.name == "local") return std::make_unique<LocalLauncher>();
  if (options.name == "slurm") return slurm_launcher(options);
  throw UsageError("--launcher {}: expected local or slurm", options.name);
}

}  // namespace tenon
