// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/time_kernels.h"

#include "tenon/support/interrupt.h"

namespace tenon {

TimedKernels time_kernels(const BuiltModel& built, const std::vector<Ref<TensorData>>& inputs,
                          int repeat, int threads) {
  if (!built.code)
    throw CompileError(kUnsupported, {}, "kernels of target `{}` are not timed; expected llvm",
                       built.request.target.str());
  TimedKernels out;
  LoweredModule lowered = built.lowered;
  InstrumentedModule instrumented = instrument(lowered.pipeline.module);
  lowered.pipeline.module = std::move(instrumented.module);
  out.calls = std::move(instrumented.calls);
  const auto program =
      link(generate(lowered, built.request, built.libraries.get()), built.libraries);
  program->set_threads(threads);
  BoundRun bound(program, inputs);
  bound.run();  // warms caches and threads
  reset_kernel_times(out.calls.size());
  for (int i = 0; i < repeat; ++i) {
    check_interrupt();
    out.runs.push_back(bound.run());
  }
  out.times = kernel_times();
  return out;
}

}  // namespace tenon
