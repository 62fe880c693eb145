// SPDX-License-Identifier: Apache-2.0
// The sections of the page (page.cpp joins them), and what they share.
#pragma once

#include <map>
#include <string>

#include "tenon/driver/report/page.h"

namespace tenon::page {

/// Between the marks of what was measured.
std::string measured(const std::string& html);
/// "own code", "oneDNN (dnnl)", ...
std::string provider_name(const std::string& provider);
/// The class of style.css for a provider.
std::string provider_class(const std::string& provider);
/// "12 calls", "1 call".
std::string counted(size_t count, const std::string& what);
/// At most `most` bytes of a text that may have any length.
struct Budget {
  size_t bytes;
  /// `text`, or its begin, as far as the budget and `most` go; says where something was left out.
  std::string take(const std::string& text, size_t most);
};

/// The time of all kernels in one run, milliseconds; 0 where nothing was measured.
double total_milliseconds(const Report& report);
/// 10^9 operations in a second; nothing where they or the time are not known.
std::optional<double> gflops_of(const Report::Call& call);

/// Indices of kernels by function, and of stories by node.
struct Index {
  std::map<std::string, size_t> kernels, stories;
  explicit Index(const Report& report);
};

/// A cell with a bar of a share from 0 to 1.
std::string bar_cell(double share);

std::string graph_section(const Report& report, const Index& index, const PageOptions& options);
std::string times_section(const Report& report, const Index& index, const PageOptions& options);
std::string kernels_section(const Report& report, const Index& index, const PageOptions& options);
std::string decisions_section(const Report& report, const Index& index, const PageOptions& options);

}  // namespace tenon::page
