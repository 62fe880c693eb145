// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/search.h"

#include <algorithm>

namespace tenon::tune {

namespace {

// Of Measurement::stage.
constexpr int64_t kFirst = 0, kConfirmed = 1, kInNetwork = 2;

}  // namespace

Search::Search(std::vector<Kernel> kernels, SearchOptions options, Database& database)
    : kernels_(std::move(kernels)),
      progress_(kernels_.size()),
      options_(std::move(options)),
      database_(database) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    for (const Measurement& each : database_.measurements(key_of(kernels_[i], options_.machine)))
      take(i, each);
    // A process that ended between a record and its choice left the choice to this one.
    if (!progress_[i].known.empty()) settle(i);
  }
}

MeasureKey Search::key_of(const Kernel& kernel, const std::string& machine) const {
  return {kernel.job.hash, kernel.job.target, machine, options_.threads, options_.compiler};
}

void Search::take(size_t i, const Measurement& measurement) {
  Progress& progress = progress_[i];
  progress.known.emplace(std::pair(measurement.plan, measurement.stage), measurement);
  if (measurement.plan.empty() || measurement.stage != kFirst) return;
  ++progress.tried;
  const bool gains = measurement.status == Status::kOk && measurement.ratio < options_.gain;
  progress.since_gain = gains ? 0 : progress.since_gain + 1;
}

// The fastest plan that both measurements hold for faster, and that was not given up.
std::optional<Choice> Search::best(const Progress& progress) const {
  // Where the kernel alone misleads it does so about the next plan too.
  constexpr int64_t kMostGivenUp = 2;
  const auto given_up =
      std::count_if(progress.known.begin(), progress.known.end(),
                    [](const auto& each) { return each.first.second == kInNetwork; });
  if (given_up >= kMostGivenUp) return std::nullopt;
  std::optional<Choice> best;
  for (const auto& [key, first] : progress.known) {
    const auto& [plan, stage] = key;
    if (stage != kFirst || plan.empty() || first.status != Status::kOk) continue;
    const auto again = progress.known.find({plan, kConfirmed});
    if (again == progress.known.end() || again->second.status != Status::kOk) continue;
    if (progress.known.contains({plan, kInNetwork})) continue;
    const double ratio = std::max(first.ratio, again->second.ratio);
    if (ratio < options_.gain && (!best || ratio < best->ratio)) best = Choice{plan, ratio};
  }
  return best;
}

void Search::settle(size_t i) {
  const MeasureKey key = key_of(kernels_[i], options_.machine);
  const std::optional<Choice> choice = best(progress_[i]), known = database_.choice(key);
  const bool is_same = choice.has_value() == known.has_value() &&
                       (!choice || (choice->plan == known->plan && choice->ratio == known->ratio));
  if (!is_same) database_.choose(key, choice);
}

double Search::weight_of(size_t i, double total) const {
  const auto usual = progress_[i].known.find({"", kFirst});
  const double us = usual == progress_[i].known.end() ? 0 : usual->second.default_us;
  const double share = total > 0 ? us * static_cast<double>(kernels_[i].calls) / total : 0;
  // Short kernels get their turn too.
  return share + 0.5 / static_cast<double>(kernels_.size());
}

// Plans whose neighbours are tried, one after the other: the chosen one, the default one, and those that
// came near it.
std::vector<std::string> Search::centres(size_t i, const std::optional<Choice>& chosen) {
  constexpr double kNear = 1.03;
  constexpr size_t kMostCentres = 6;
  const Progress& progress = progress_[i];
  std::vector<std::string> out;
  if (!kernels_[i].providers.empty()) return {""};
  if (chosen) out.push_back(chosen->plan);
  out.push_back(progress.proposer->default_plan());
  std::vector<std::pair<double, std::string>> near;
  for (const auto& [key, first] : progress.known)
    if (key.second == kFirst && !key.first.empty() && first.status == Status::kOk &&
        first.ratio < kNear)
      near.emplace_back(first.ratio, key.first);
  std::sort(near.begin(), near.end());
  for (const auto& [ratio, plan] : near)
    if (out.size() < kMostCentres) out.push_back(plan);
  return out;
}

// What is next to a plan, the best guess first; of a part all libraries.
std::vector<std::string> Search::next_to(size_t i, const std::string& centre) {
  std::vector<std::string> plans;
  for (const Kernel::Provider& provider : kernels_[i].providers) plans.push_back(provider.name);
  if (!plans.empty()) return plans;
  Proposer& proposer = *progress_[i].proposer;
  for (Proposal& proposal : proposer.next_to(centre))
    if (proposal.plan != proposer.default_plan()) plans.push_back(std::move(proposal.plan));
  return plans;
}

Job Search::job_for(size_t i, const std::string& plan) const {
  Job job = kernels_[i].job;
  job.seed = options_.seed;
  job.plan = plan;
  for (const Kernel::Provider& provider : kernels_[i].providers)
    if (provider.name == plan) job.module = provider.module;
  return job;
}

std::optional<Job> Search::next_of(size_t i) {
  Progress& progress = progress_[i];
  if (progress.is_done) return std::nullopt;
  const auto usual = progress.known.find({"", kFirst});
  if (usual == progress.known.end()) {
    if (!progress.pending.insert("").second) return std::nullopt;
    return job_for(i, "");
  }
  if (usual->second.status != Status::kOk) {
    progress.is_done = true;
    return std::nullopt;
  }
  const std::optional<Choice> chosen = best(progress);
  for (const auto& [key, first] : progress.known) {
    const auto& [plan, stage] = key;
    if (stage != kFirst || plan.empty() || first.status != Status::kOk) continue;
    if (first.ratio >= (chosen ? std::min(options_.gain, chosen->ratio) : options_.gain)) continue;
    if (progress.known.count({plan, kConfirmed}) || !progress.pending.insert(plan).second) continue;
    // Other inputs and a longer time, so that it is no accident of the first.
    Job job = job_for(i, plan);
    job.stage = kConfirmed;
    job.seed = options_.seed + 1;
    job.timed_seconds *= 2;
    return job;
  }
  if (!progress.proposer && kernels_[i].providers.empty())
    progress.proposer =
        std::make_unique<Proposer>(kernels_[i].module, kernels_[i].job.hash, options_.threads);
  if (progress.since_gain >= options_.patience) {
    progress.is_done = true;
    return std::nullopt;
  }
  for (const std::string& centre : centres(i, chosen)) {
    const auto [entry, is_new] = progress.proposals.try_emplace(centre);
    std::vector<std::string>& proposals = entry->second;
    if (is_new) {
      proposals = next_to(i, centre);
      std::reverse(proposals.begin(), proposals.end());
    }
    while (!proposals.empty()) {
      const std::string plan = std::move(proposals.back());
      proposals.pop_back();
      if (progress.known.count({plan, kFirst}) || !progress.pending.insert(plan).second) continue;
      return job_for(i, plan);
    }
  }
  if (progress.pending.empty()) progress.is_done = true;
  return std::nullopt;
}

std::vector<Job> Search::next(size_t count) {
  std::vector<Job> jobs;
  while (jobs.size() < count) {
    double total = 0;
    for (size_t i = 0; i < kernels_.size(); ++i)
      if (const auto usual = progress_[i].known.find({"", kFirst});
          usual != progress_[i].known.end())
        total += usual->second.default_us * static_cast<double>(kernels_[i].calls);
    // Those that had the fewest tries for their share of the network's time; default plans first.
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Progress& progress = progress_[i];
      const auto tries =
          static_cast<double>(progress.tried) + static_cast<double>(progress.pending.size());
      order.emplace_back(progress.known.count({"", kFirst}) ? (tries + 1) / weight_of(i, total) : 0,
                         i);
    }
    std::sort(order.begin(), order.end());
    std::optional<Job> job;
    for (size_t k = 0; k < order.size() && !job; ++k) job = next_of(order[k].second);
    if (!job) break;
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

void Search::record(const Job& job, const JobResult& result) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].job.hash != job.hash) continue;
    progress_[i].pending.erase(job.plan);
    database_.add_machine(result.machine, result.machine_text);
    Measurement measurement = result.measurement;
    measurement.plan = job.plan;
    measurement.stage = job.stage;
    database_.add(key_of(kernels_[i], result.machine), measurement);
    if (result.machine != options_.machine) {
      ++strays_[result.machine];
      return;
    }
    take(i, measurement);
    settle(i);
  }
}

void Search::give_up(const std::string& hash, double usual_us, double tuned_us,
                     const std::string& where) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const std::optional<Choice> choice = best(progress_[i]);
    if (kernels_[i].job.hash != hash || !choice) continue;
    Measurement measurement;
    measurement.plan = choice->plan;
    measurement.stage = kInNetwork;
    measurement.ratio = usual_us > 0 ? tuned_us / usual_us : 1;
    measurement.median_us = tuned_us;
    measurement.default_us = usual_us;
    measurement.detail = where;
    database_.add(key_of(kernels_[i], options_.machine), measurement);
    take(i, measurement);
    settle(i);
  }
}

std::vector<Search::State> Search::states() const {
  std::vector<State> out;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    State state;
    state.kernel = &kernels_[i];
    for (const auto& [key, measurement] : progress_[i].known) {
      if (key.second != kFirst) continue;
      if (!key.first.empty()) {
        ++state.tried;
        ++state.ended[measurement.status];
        state.first.push_back(measurement);
      } else if (measurement.status == Status::kOk) {
        state.default_us = measurement.default_us;
      } else {
        state.failure = fmt::format("{}: {}", name_of(measurement.status), measurement.detail);
      }
    }
    state.choice = best(progress_[i]);
    out.push_back(std::move(state));
  }
  return out;
}

}  // namespace tenon::tune
