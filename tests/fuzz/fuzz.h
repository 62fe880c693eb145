// SPDX-License-Identifier: Apache-2.0
// Readers of foreign files against seeded mutations of good ones: whatever the bytes are, a reader
// gives a result or a CompileError, in bounded time and memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tenon::fuzz {

struct Options {
  std::string name = "";  // in reports
  double seconds = 4;     // TENON_FUZZ_SECONDS overrides it
  int64_t most_cases = 20000;
  double seconds_per_case = 2;
  double least_refused = 0.1;  // of all cases: whether mutations do anything
  /// Words that mutations insert: keywords, numbers at limits, pieces of the format.
  std::vector<std::string> words = {};
  /// Seeds that the reader refuses are inputs like others; else one that is refused fails the test.
  bool seeds_may_fail = false;
};

/// Runs `reader` on mutations of the seeds and fails the test at the first that throws anything but
/// a CompileError, asks for more than 512 MiB at once, or takes too long. The input at fault is
/// written to a file, whose name is printed, also where the process is about to die.
void expect_only_diagnostics(const std::vector<std::string>& seeds, const Options& options,
                             const std::function<void(const std::string&)>& reader);

}  // namespace tenon::fuzz
