// SPDX-License-Identifier: Apache-2.0
// The report as one page of HTML that needs nothing beside it.
#pragma once

#include <string>

#include "tenon/driver/report/report.h"

namespace tenon {

/// What of a large network is shown; the page says where something is left out.
struct PageOptions {
  size_t graph_calls = 1200;      // boxes of the graph: the first calls
  size_t rows = 4000;             // of a table
  size_t code_bytes = 4U << 20;   // of all kernels together
  size_t story_bytes = 3U << 20;  // of all nodes together
  size_t text_bytes = 64U << 10;  // of one text
};

/// UTF-8. Every text of the model is escaped. What was measured stands between `<!--t-->` and
/// `<!--/t-->`; the rest is the same for the same report.
std::string page_of(const Report& report, const PageOptions& options = {});

}  // namespace tenon
