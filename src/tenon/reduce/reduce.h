// SPDX-License-Identifier: Apache-2.0
// Delta debugging: makes a module (or a text) that shows a fault as small as it can while the fault
// stays.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::reduce {

/// Whether a candidate still shows the fault. It is asked for modules that verify only.
using Shows = std::function<bool(const IRModule&)>;

/// One way to make a module smaller: it numbers the places where it applies, in a fixed order.
struct Step {
  std::string_view name;  // "bindings", for progress and statistics
  size_t (*places)(const IRModule& module);
  /// The module made smaller at places [begin, end); nothing where that is impossible. The result
  /// need not verify. \throws CompileError likewise where it is impossible.
  std::optional<IRModule> (*apply)(const IRModule& module, size_t begin, size_t end);
};

/// All steps, what removes most first.
const std::vector<Step>& steps();

struct Options {
  /// \throws CompileError for candidates that are no valid module.
  std::function<void(const IRModule&)> verify = {};
  /// Called after every candidate that still shows the fault.
  std::function<void(const IRModule&, std::string_view step)> progress = {};
  /// True: stop, and give the smallest so far.
  std::function<bool()> out_of_time = {};
};

struct Result {
  IRModule module;
  int64_t tried = 0, kept = 0;  // candidates asked for, and those that showed the fault
};

/// Applies all steps, in ever smaller parts, until none makes `module` smaller.
///
/// Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
Result reduce(IRModule module, const Shows& shows, const Options& options = {});

/// The same over a list of which any part may be left out: `shows(kept)` sees increasing indices
/// below `count`. Returns what is left.
std::vector<size_t> minimise(size_t count,
                             const std::function<bool(const std::vector<size_t>& kept)>& shows,
                             const std::function<bool()>& out_of_time = {});

/// A text by lines, then by characters of what is left.
std::string reduce_text(std::string text, const std::function<bool(const std::string&)>& shows,
                        const std::function<bool()>& out_of_time = {});

}  // namespace tenon::reduce
