// SPDX-License-Identifier: Apache-2.0
// `tenon plan`: runs the memory planner on a problem in CSV.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct PlanCommand {
  std::string problem;                    // path of the CSV
  std::optional<int64_t> capacity = {};   // bytes
  std::vector<std::string> pools = {};    // "fast=64KiB", "slow", instead of one of this capacity
  std::optional<double> time_limit = {};  // seconds of a usual processor; see PlanOptions
  std::string out = {};                   // path of the CSV with offsets; none where empty
  enum class Format : uint8_t { kText, kJson } format = Format::kText;
};

/// Plans, writes the result and reports. The last line of the text is
/// `peak N bytes, lower bound N bytes`, of all pools together.
/// \returns the exit status: 0; 1 with a diagnostic on `err` where the input is at fault or does
/// not fit; 2 where an option is out of range.
int run_plan_command(const PlanCommand& command, std::ostream& out, std::ostream& err);

}  // namespace tenon
