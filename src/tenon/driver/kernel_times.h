// SPDX-License-Identifier: Apache-2.0
// Measures each kernel of a program: `main` reports the time before every call that it makes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/driver/program_plan.h"
#include "tenon/ir/module.h"

namespace tenon {

/// The symbol that instrumented programs call; the command-line program exports it.
using backend::kKernelMark;

struct InstrumentedCall {
  std::string kernel;
  Origin origin;
  std::string str() const;  // `kernel [origin]`
};

struct InstrumentedModule {
  IRModule module;
  std::vector<InstrumentedCall> calls;  // what each call runs
};

/// A lowered module whose entry function (and the pieces that it was cut into) reports before each
/// call of a kernel, and at its end. It computes the same. A parallel loop around calls is one call,
/// of the kernel that it calls first, and so is a kernel that calls others.
InstrumentedModule instrument(const IRModule& lowered);

/// For each call of an instrumented module, the index of the same call in the plan; -1 where it has
/// none. Calls of one kernel for one node are the same in their order.
std::vector<int64_t> planned_calls(const std::vector<InstrumentedCall>& calls,
                                   const ProgramPlan& plan);

using KernelClock = std::chrono::steady_clock;

/// One run of one call.
struct KernelEvent {
  int64_t call;
  KernelClock::time_point begin, end;
};

/// Clears what was recorded on this thread, and makes room for `calls` calls.
/// \param most_events  that are kept of the single runs, from the first on; others count only
void reset_kernel_times(size_t calls, size_t most_events = 0);

struct KernelTime {
  double fastest = 0;  // seconds
  int64_t runs = 0;
};
/// For each call of the instrumented module; since the last reset, on this thread.
const std::vector<KernelTime>& kernel_times();
/// The runs in their order; since the last reset, on this thread.
const std::vector<KernelEvent>& kernel_events();

/// Milliseconds that a call takes in one of `runs` runs: the fastest time of the call, as often as
/// a run makes it. Means would show what else the machine did.
double milliseconds_of(const KernelTime& kernel, size_t runs);

}  // namespace tenon
