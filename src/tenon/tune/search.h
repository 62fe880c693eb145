// SPDX-License-Identifier: Apache-2.0
// The search: which plan of which kernel is measured next, and which takes the default's place. What it
// does follows from the measurements that it has: one that was ended goes on from its database as if
// nothing had happened.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tenon/tune/database.h"
#include "tenon/tune/job.h"
#include "tenon/tune/proposals.h"

namespace tenon::tune {

/// A kernel of a network that may have another plan, or a part of its graph that libraries offer to
/// compute.
struct Kernel {
  Job job;            // without a plan
  IRModule module;    // of the job
  int64_t calls = 1;  // of it and its equals in one run of the network
  /// A library that would compute a part.
  struct Provider {
    std::string name;  // the pattern, which takes the place of a plan
    std::string
        module;  // of its jobs: what composites state besides their operators is the library's
  };
  std::vector<Provider> providers = {};  // of a part
};

struct SearchOptions {
  uint64_t seed = 0;
  std::string machine, compiler;  // of keys
  int64_t threads = 0;            // as they are counted in keys
  /// The share of the default plan's time that another has to stay below, in each of two
  /// measurements: noise stays above it.
  double gain = 0.97;
  /// Plans that are tried of a kernel without a gain before it is left.
  int64_t patience = 60;
};

class Search {
 public:
  /// \param database  outlives the search
  Search(std::vector<Kernel> kernels, SearchOptions options, Database& database);

  /// At most `count` jobs that may run at once; none: nothing is left to try.
  std::vector<Job> next(size_t count);
  /// What became of a job: recorded before anything else. A result of another kind of machine is kept
  /// as that, and tells this search nothing.
  void record(const Job& job, const JobResult& result);

  /// What is known of a kernel.
  struct State {
    const Kernel* kernel;
    double default_us = 0;  // 0: not measured, or not to be measured
    std::string failure;    // of its default plan; empty: none
    int64_t tried = 0;      // plans
    std::map<Status, int64_t> ended;
    std::vector<Measurement> first;  // of each plan that was tried
    std::optional<Choice> choice;
  };
  std::vector<State> states() const;
  /// The chosen plan of a kernel is not faster in the network: kept as that (stage 2). The next best takes
  /// its place, once; then the kernel has no plan.
  void give_up(const std::string& hash, double usual_us, double tuned_us, const std::string& where);
  /// How many results came from machines of other kinds, by their fingerprints.
  const std::map<std::string, int64_t>& strays() const { return strays_; }

 private:
  struct Progress {
    std::map<std::pair<std::string, int64_t>, Measurement> known;  // by plan and stage
    std::set<std::string> pending;                                 // plans that are being measured
    std::unique_ptr<Proposer> proposer;                            // of a kernel
    std::map<std::string, std::vector<std::string>> proposals;     // that are left next to a plan
    int64_t tried = 0, since_gain = 0;
    bool is_done = false;
  };
  MeasureKey key_of(const Kernel& kernel, const std::string& machine) const;
  void take(size_t i, const Measurement& measurement);
  std::optional<Choice> best(const Progress& progress) const;
  void settle(size_t i);
  std::vector<std::string> centres(size_t i, const std::optional<Choice>& chosen);
  std::vector<std::string> next_to(size_t i, const std::string& centre);
  Job job_for(size_t i, const std::string& plan) const;
  std::optional<Job> next_of(size_t i);
  double weight_of(size_t i, double total) const;

  std::vector<Kernel> kernels_;
  std::vector<Progress> progress_;
  SearchOptions options_;
  Database& database_;
  std::map<std::string, int64_t> strays_;
};

}  // namespace tenon::tune
