// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/job.h"

#include <nlohmann/json.hpp>

#include "tenon/support/nearest.h"
#include "tenon/support/usage_codes.h"

namespace tenon::tune {

using Json = nlohmann::ordered_json;

static constexpr int64_t kVersion = 2;

namespace {

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Members of a job or a result: each is there, of its type, and no other is.
class Members {
 public:
  Members(const std::string& path, const std::string& text) : path_(path) {
    try {
      json_ = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& error) {
      throw CompileError(kBadJob, {}, "{}: {}", path_, error.what());
    }
    if (!json_.is_object()) fail("is no object");
    int64_t version = 0;
    read("version", version);
    if (version != kVersion) fail(fmt::format("has version {}; expected {}", version, kVersion));
  }

  template <typename T>
  Members& read(const char* name, T& value) {
    known_.emplace_back(name);
    if (!json_.contains(name)) fail(fmt::format("has no `{}`", name));
    try {
      json_.at(name).get_to(value);
    } catch (const nlohmann::json::exception&) {
      fail(fmt::format("has {} as `{}`, which is of another type", json_.at(name).dump(), name));
    }
    return *this;
  }
  void end() const {
    for (const auto& [name, value] : json_.items())
      if (std::find(known_.begin(), known_.end(), name) == known_.end())
        fail(fmt::format("has an unknown member `{}`{}", name, did_you_mean(name, known_)));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(kBadJob, {}, "{}: the file {}", path_, what);
  }

 private:
  const std::string& path_;
  nlohmann::json json_;
  std::vector<std::string> known_;
};

}  // namespace

std::string text_of(const Job& job) {
  return dumped({{"version", kVersion},
                 {"kernel", job.kernel},
                 {"hash", job.hash},
                 {"module", job.module},
                 {"target", job.target},
                 {"plan", job.plan},
                 {"stage", job.stage},
                 {"seed", job.seed},
                 {"threads", job.threads},
                 {"dims", job.dims},
                 {"link", job.link},
                 {"plugins", job.plugins},
                 {"seconds", job.seconds},
                 {"memory_bytes", job.memory_bytes},
                 {"timed_seconds", job.timed_seconds},
                 {"cold", job.is_cold}});
}

Job read_job(const std::string& path, const std::string& text) {
  Job job;
  Members members(path, text);
  members.read("kernel", job.kernel)
      .read("hash", job.hash)
      .read("module", job.module)
      .read("target", job.target)
      .read("plan", job.plan)
      .read("stage", job.stage)
      .read("seed", job.seed)
      .read("threads", job.threads)
      .read("dims", job.dims)
      .read("link", job.link)
      .read("plugins", job.plugins)
      .read("seconds", job.seconds)
      .read("memory_bytes", job.memory_bytes)
      .read("timed_seconds", job.timed_seconds)
      .read("cold", job.is_cold)
      .end();
  constexpr int64_t kMostThreads = 4096;
  if (job.threads < 0 || job.threads > kMostThreads)
    members.fail(fmt::format("has {} threads; expected 0 to {}", job.threads, kMostThreads));
  if (!(job.seconds > 0) || !(job.timed_seconds >= 0) || job.memory_bytes < 0)
    members.fail("has a limit that is no positive number");
  return job;
}

std::string text_of(const JobResult& result) {
  const Measurement& measurement = result.measurement;
  return dumped({{"version", kVersion},
                 {"hash", result.hash},
                 {"plan", result.plan},
                 {"machine", result.machine},
                 {"machine_text", result.machine_text},
                 {"compiler", result.compiler},
                 {"taken", result.taken},
                 {"stage", measurement.stage},
                 {"status", name_of(measurement.status)},
                 {"ratio", measurement.ratio},
                 {"median_us", measurement.median_us},
                 {"default_us", measurement.default_us},
                 {"detail", measurement.detail}});
}

JobResult read_result(const std::string& path, const std::string& text) {
  JobResult result;
  std::string status;
  Members members(path, text);
  Measurement& measurement = result.measurement;
  members.read("hash", result.hash)
      .read("plan", result.plan)
      .read("machine", result.machine)
      .read("machine_text", result.machine_text)
      .read("compiler", result.compiler)
      .read("taken", result.taken)
      .read("stage", measurement.stage)
      .read("status", status)
      .read("ratio", measurement.ratio)
      .read("median_us", measurement.median_us)
      .read("default_us", measurement.default_us)
      .read("detail", measurement.detail)
      .end();
  const auto known = status_from(status);
  if (!known) members.fail(fmt::format("has status `{}`", status));
  measurement.status = *known;
  measurement.plan = result.plan;
  return result;
}

// ---- plans --------------------------------------------------------------------------------------

std::string canonical_plan(const std::vector<std::string>& choices) {
  Json plan = Json::array();
  for (const std::string& choice : choices) {
    Json block = Json::parse(choice);
    for (const char* name : {"kernel", "hash", "refused"}) block.erase(name);
    for (Json& nest : block["nests"])
      for (const char* said : {"predicted_us", "assumes_lengths", "runner_up"}) nest.erase(said);
    plan.push_back(std::move(block));
  }
  return plan.empty() ? "" : plan.dump();
}

std::vector<tir::GivenPlan> plans_of(const std::string& plan, const std::string& hash,
                                     const std::string& origin) {
  if (plan.empty()) return {};
  Json file = {{"version", 1}, {"plans", Json::array()}};
  try {
    for (const Json& block : Json::parse(plan)) {
      Json entry = {{"kernel", hash}, {"hash", hash}};
      entry.update(block);
      file["plans"].push_back(std::move(entry));
    }
  } catch (const Json::exception& error) {
    throw CompileError(kBadPlan, {}, "{}: plan of kernel {}: {}", origin, hash, error.what());
  }
  const auto source = std::make_shared<const SourceFile>(SourceFile{origin, file.dump(1)});
  std::vector<tir::GivenPlan> plans = tir::read_plans(source).plans;
  for (tir::GivenPlan& each : plans) each.is_tuned = true;
  return plans;
}

}  // namespace tenon::tune
