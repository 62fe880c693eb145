// SPDX-License-Identifier: Apache-2.0
// Runs a network as it was tuned beside itself as it was: what a kernel takes between others, not alone,
// and whether the network is faster.
#pragma once

#include <map>
#include <string>

#include "tenon/driver/commands.h"

namespace tenon {

/// Microseconds as it was, and as it was tuned.
struct TimesInTurn {
  double usual_us = 0, tuned_us = 0;
  bool is_slower() const { return tuned_us >= usual_us; }
};

struct NetworkTimes {
  TimesInTurn network;                         // medians of a run
  std::map<std::string, TimesInTurn> kernels;  // least times of all calls in a run, by hash
  std::string failure;                         // why there are none; empty: there are
};

/// A way to compile a network.
struct NetworkVariant {
  CompileRequest request;
  std::map<std::string, std::string> plans =
      {};  // canonical (tune/job.h), by the hashes of kernels
};

/// Of the network and of the kernels that `tuned` has a plan for, by their hashes. Runs in a process of
/// its own. \param seconds  of runs, about
NetworkTimes times_in_turn(const IRModule& prepared, const NetworkVariant& usual,
                           const NetworkVariant& tuned, const TargetOptions& options,
                           const std::map<std::string, int64_t>& dims, double seconds);

}  // namespace tenon
