// SPDX-License-Identifier: Apache-2.0
// Which libraries compute which parts of a network's graph, where each part was measured alone: what of
// it makes the network faster, and fits its memory.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tenon/driver/network_check.h"
#include "tenon/tune/search.h"

namespace tenon {

struct PlacementTuning {
  const IRModule& prepared;
  CompileRequest request;  // without what was measured
  const TargetOptions& options;
  std::map<std::string, int64_t> dims;
  double seconds = 1;               // of one comparison
  std::optional<int64_t> max_peak;  // bytes of the planned workspace
  bool runs_here = true;            // else what is faster alone is taken for faster
  std::function<void(const std::string&)> progress = {};
};

/// What the search knows so far, as AnnotatePlacement is told.
graph::UserPlacement::Providers measured_by(const tune::Search& search);

struct ConfirmedPlacement {
  TimesInTurn network;          // of own code, and with what the libraries compute; 0: not measured
  std::optional<int64_t> peak;  // with it, where there is a limit
};

/// Gives up what does not make the network faster between everything else, and, in the order of
/// gains, what brings the planned peak above the limit.
/// \throws CompileError (kDoesNotFit) where it is above the limit without any of this.
ConfirmedPlacement confirm_placement(tune::Search& search, const PlacementTuning& tuning);

}  // namespace tenon
