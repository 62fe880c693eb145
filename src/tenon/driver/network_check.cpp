// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/network_check.h"

#include <nlohmann/json.hpp>

#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/kernel_times.h"
#include "tenon/driver/probe.h"
#include "tenon/driver/tensors.h"
#include "tenon/support/temporary_files.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tune/job.h"

namespace tenon {

namespace {

/// A network whose calls of kernels are timed.
class TimedNetwork {
 public:
  TimedNetwork(const IRModule& prepared, const NetworkVariant& variant,
               const TargetOptions& options) {
    CompileRequest request = variant.request;
    tir::GivenPlans given;
    for (const auto& [hash, plan] : variant.plans)
      for (tir::GivenPlan& each : tune::plans_of(plan, hash, "the database"))
        given.plans.push_back(std::move(each));
    if (!variant.plans.empty())
      request.plans = std::make_shared<const tir::GivenPlans>(std::move(given));
    request.pipeline = {.verify = false};
    const auto libraries = options.model.libraries();
    request.libraries = libraries;
    LoweredModule lowered = lower(prepared, request);
    std::map<std::string, std::string> hashes;
    for (const Remark& remark : lowered.pipeline.remarks)
      if (remark.pass == kTakesPlans && !remark.choice.empty())
        hashes[remark.subject] = nlohmann::json::parse(remark.choice).value("hash", "");
    InstrumentedModule instrumented = instrument(lowered.pipeline.module);
    lowered.pipeline.module = std::move(instrumented.module);
    for (const InstrumentedCall& call : instrumented.calls) hashes_.push_back(hashes[call.kernel]);
    least_us_.resize(hashes_.size(), std::numeric_limits<double>::infinity());
    const auto opened =
        with_external_modules(lowered.pipeline.module, libraries, options.model.link);
    program_ = link(generate(lowered, request, opened.get()), opened);
    program_->set_threads(options.threads);
  }

  void bind(const InputOptions& inputs) {
    run_ = std::make_unique<BoundRun>(program_,
                                      make_inputs(signature_of(program_->declaration()), inputs));
  }
  /// The median of some runs after each other, in microseconds; those of the calls are kept.
  double run() {
    constexpr int kRuns = 4;
    run_->run();  // caches are this network's
    std::vector<double> times;
    for (int i = 0; i < kRuns; ++i) {
      reset_kernel_times(hashes_.size());
      times.push_back(run_->run() * 1e6);
      for (size_t call = 0; call < hashes_.size(); ++call)
        if (const KernelTime& time = kernel_times()[call]; time.runs > 0)
          least_us_[call] = std::min(least_us_[call], time.fastest * 1e6);
    }
    return median(std::move(times));
  }
  /// Microseconds of the calls in a run, by hash.
  std::map<std::string, double> kernels() const {
    std::map<std::string, double> out;
    for (size_t i = 0; i < hashes_.size(); ++i)
      if (std::isfinite(least_us_[i])) out[hashes_[i]] += least_us_[i];
    return out;
  }

 private:
  std::vector<std::string> hashes_;  // of the calls
  std::vector<double> least_us_;
  std::shared_ptr<runtime::Program> program_;
  std::unique_ptr<BoundRun> run_;
};

}  // namespace

NetworkTimes times_in_turn(const IRModule& prepared, const NetworkVariant& usual_variant,
                           const NetworkVariant& tuned_variant, const TargetOptions& options,
                           const std::map<std::string, int64_t>& dims, double seconds) {
  constexpr size_t kLeastTurns = 5, kMostTurns = 1000;
  constexpr double kLimit = 1800;  // of compiling large networks
  const TemporaryFolder folder;
  const std::string file = folder.file("times.json");
  const Outcome outcome = probe_call(
      [&] {
        InputOptions inputs;
        inputs.dims = dims;
        inputs.meanings = named_meanings(prepared);
        TimedNetwork usual(prepared, usual_variant, options);
        TimedNetwork tuned(prepared, tuned_variant, options);
        usual.bind(inputs);
        tuned.bind(inputs);
        std::vector<double> usual_us, tuned_us;
        const auto start = KernelClock::now();
        while (usual_us.size() < kMostTurns) {
          usual_us.push_back(usual.run());
          tuned_us.push_back(tuned.run());
          const double spent = std::chrono::duration<double>(KernelClock::now() - start).count();
          if (usual_us.size() >= kLeastTurns && spent > seconds) break;
        }
        write_file(file, nlohmann::json{median(usual_us), median(tuned_us), usual.kernels(),
                                        tuned.kernels()}
                             .dump());
        return 0;
      },
      {.time_limit = kLimit, .memory_limit = 0});
  NetworkTimes out;
  if (outcome.failed()) {
    out.failure = outcome.key;
    return out;
  }
  const auto times = nlohmann::json::parse(read_file(file));
  out.network = {times[0].get<double>(), times[1].get<double>()};
  for (const auto& [hash, plan] : tuned_variant.plans)
    if (times[2].contains(hash) && times[3].contains(hash))
      out.kernels[hash] = {times[2][hash].get<double>(), times[3][hash].get<double>()};
  return out;
}

}  // namespace tenon
