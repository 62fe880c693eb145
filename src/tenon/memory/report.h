// SPDX-License-Identifier: Apache-2.0
// Reports a memory plan, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tenon/memory/plan.h"

namespace tenon::memory {

struct ReportOptions {
  int columns = 64;      // of the chart, for time
  size_t max_rows = 24;  // buffers in the chart: the largest
  size_t max_steps = 5;  // steps of highest use
};

/// For each pool: peak, lower bound, their ratio, the method; the steps of highest use with their
/// largest buffers; a chart with time from left to right, a row for the use and for each of the
/// largest buffers, by rising offset. Ends with a line feed. Plan: legal.
std::string plan_report(const Problem& problem, const Plan& plan,
                        const ReportOptions& options = {});

/// `{"pools": [{"name", "capacity" (or null), "peak", "lower_bound", "ratio", "method",
/// "highest_use": [{"step", "bytes"}]}], "buffers": [{"id", "pool", "lower", "upper", "size",
/// "alignment", "offset"}]}`.
nlohmann::ordered_json plan_json(const Problem& problem, const Plan& plan,
                                 const ReportOptions& options = {});

/// peak / lower bound; 1 where nothing is needed.
double peak_ratio(const PoolPlan& pool);

}  // namespace tenon::memory
