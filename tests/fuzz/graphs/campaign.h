// SPDX-License-Identifier: Apache-2.0
// Many networks, each in a child process: what crashes, hangs or takes too much memory is a failure
// of that network alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle.h"

namespace tenon::fuzz {

struct CampaignOptions {
  uint64_t seed = 1;
  uint64_t count = 100;
  double seconds = 0;
  std::vector<Configuration> configurations;
  int jobs = 2;
  double case_seconds = 60;  // of a processor
  double reduce_seconds = 60;
  std::string out = "fuzz-graphs";
};

/// Runs them, reduces what fails, prints a table. True where nothing failed.
bool run_campaign(const CampaignOptions& options);
/// Runs the one network that a list of choices makes, and prints what is wrong with it.
bool run_choices(const CampaignOptions& options, const std::vector<uint32_t>& list);

}  // namespace tenon::fuzz
