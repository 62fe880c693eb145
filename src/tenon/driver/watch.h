// SPDX-License-Identifier: Apache-2.0
// Watches a compilation from a second thread: it names the step that takes very long, or that takes
// more memory than it may.
#pragma once

#include <string>

#include "tenon/ir/module.h"

namespace tenon {

/// What a step may take before something is said.
struct StepLimits {
  int64_t memory = 0;   // bytes of the process's own
  double seconds = 20;  // of processor time
};

/// The step that is at work while it lives.
///
/// After `seconds` a warning (kSlowStep) names it. Where the process takes more memory than it may
/// an error (kTooMuchMemory) names it, and the process ends with status 1: nothing else would be
/// said before the system ends it.
class WatchedStep {
 public:
  WatchedStep(std::string name, StepLimits limits);
  ~WatchedStep();
  WatchedStep(const WatchedStep&) = delete;
  WatchedStep& operator=(const WatchedStep&) = delete;

 private:
  int64_t id_;
};

/// For a process that is not Tenon's own: nothing ends it. What the watch finds of a step waits for
/// tell_watched(), and memory counts from the begin of the step.
void watch_as_guest();
/// Warns of the steps at work on this thread that are slow. \throws CompileError (kTooMuchMemory).
void tell_watched();

/// For compiling `module`: of memory 1.75 GiB, and 32 for each byte of constants; no more
/// than the machine has. A program that is really large is known by its weights.
StepLimits limits_for(const IRModule& module);

}  // namespace tenon
