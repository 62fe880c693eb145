// SPDX-License-Identifier: Apache-2.0
// Random networks against the interpreter on every target: see --help.
#include <CLI/CLI.hpp>
#include <fstream>

#include "campaign.h"
#include "generators.h"
#include "oracle.h"
#include "tenon/driver/library_backends.h"
#include "tenon/script/printer.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

// What the type rules said to the generators, so that one that is always refused is seen.
void print_tally(const std::map<std::string, Tally>& tally) {
  for (const auto& [op, counts] : tally) {
    fmt::print("{:28} made {:6} refused {:6} wild {:6}\n", op, counts.made, counts.refused,
               counts.wild);
    for (const auto& [reason, times] : counts.reasons) fmt::print("    {:6} {}\n", times, reason);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Random networks: every target against the interpreter", "fuzz_graphs");
  CampaignOptions options;
  std::string targets = "all";
  bool show = false, tally = false;
  app.add_option("--seed", options.seed, "of the first network; the next ones count up")
      ->capture_default_str();
  app.add_option("--count", options.count, "networks")->capture_default_str();
  app.add_option("--seconds", options.seconds, "stop after so many (0: when --count are done)")
      ->capture_default_str();
  app.add_option("--targets", targets,
                 "all, or of these, `NAME:N` for each Nth network: " + configuration_names())
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "processes")->capture_default_str();
  app.add_option("--case-seconds", options.case_seconds, "that one network may take")
      ->capture_default_str();
  app.add_option("--reduce-seconds", options.reduce_seconds, "spent on reducing one failure")
      ->capture_default_str();
  app.add_option("--out", options.out, "folder for what failed")->capture_default_str();
  app.add_flag("--show", show, "print the networks and run nothing");
  app.add_flag("--tally", tally, "what the type rules said to each generator; run nothing");
  std::string choices_file;
  app.add_option("--choices", choices_file, "run the network of this file, which a report names");
  CLI11_PARSE(app, argc, argv);
  try {
    register_library_backends();
    options.configurations = configurations(targets);
    if ((show && choices_file.empty()) || tally) {
      std::map<std::string, Tally> counts;
      for (uint64_t seed = options.seed; seed < options.seed + options.count; ++seed) {
        Choices choices(seed);
        const Network network = random_network(choices, &counts);
        if (show) fmt::print("# seed {}\n{}\n", seed, script::print(network.module));
      }
      if (tally) print_tally(counts);
      return 0;
    }
    if (!choices_file.empty()) {
      std::ifstream file(choices_file);
      std::vector<uint32_t> list;
      for (uint32_t value; file >> value;) list.push_back(value);
      if (show) {
        Choices choices(list);
        fmt::print("{}", script::print(random_network(choices).module));
        return 0;
      }
      return run_choices(options, list) ? 0 : 1;
    }
    return run_campaign(options) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fuzz_graphs: {}\n", error.what());
    return 2;
  }
}
