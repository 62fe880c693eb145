// SPDX-License-Identifier: Apache-2.0
// Measures each kernel of a program: `main` reports the time before every call that it makes.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/ir/module.h"

namespace tenon {

/// The symbol that instrumented programs call; the command-line program exports it.
using backend::kKernelMark;

struct InstrumentedModule {
  IRModule module;
  std::vector<std::string> calls;  // what each call runs: `kernel [origin]`
};

/// A lowered module whose entry function (and the pieces that it was cut into) reports before each
/// call of a kernel, and at its end. It computes the same.
InstrumentedModule instrument(const IRModule& lowered);

/// Clears what was recorded on this thread, and makes room for `calls` calls.
void reset_kernel_times(size_t calls);

struct KernelTime {
  double fastest = 0;  // seconds
  int64_t runs = 0;
};
/// For each call of the instrumented module; since the last reset, on this thread.
const std::vector<KernelTime>& kernel_times();

}  // namespace tenon
