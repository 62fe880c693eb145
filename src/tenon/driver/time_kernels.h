// SPDX-License-Identifier: Apache-2.0
// Measures each kernel of a model that was built, on inputs of the caller's.
#pragma once

#include <vector>

#include "tenon/driver/commands.h"
#include "tenon/driver/kernel_times.h"

namespace tenon {

struct TimedKernels {
  std::vector<InstrumentedCall> calls;
  std::vector<KernelTime> times;  // as many: of all timed runs
  std::vector<double> runs;       // seconds of each, with the marks that measure kernels
};

/// Generates the code anew with marks in it, runs it once and then `repeat` times.
/// \throws CompileError as link() and BoundRun do
TimedKernels time_kernels(const BuiltModel& built, const std::vector<Ref<TensorData>>& inputs,
                          int repeat, int threads);

}  // namespace tenon
