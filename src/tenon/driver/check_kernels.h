// SPDX-License-Identifier: Apache-2.0
// `tenon check --kernels`: compares kernels of one's own with the meaning of their operators.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/driver/kernel_files.h"

namespace tenon {

struct CheckKernels {
  KernelFiles kernels;
  int trials = 8;  // shapes tried for each kernel
  uint64_t seed = 0;
  std::vector<std::string> sizes;   // "n=512": of symbolic dimensions
  std::optional<double> tolerance;  // |a - b| <= tolerance (1 + max |b|), for kernels that
                                    // approximate; without it what rounding explains
  std::string target = "native";
};

/// Runs each kernel on random inputs of random shapes that its operator allows, and on the last of
/// them with extreme values, infinities and NaNs: in the interpreter, which sees every access, and
/// compiled, on one and on two threads; compares with the interpreter's meaning of the operator.
/// Prints a line for each kernel that is right, and the diagnostic of each that is not, to the
/// error stream.
/// \returns the exit status: 1 where a kernel is wrong. \throws CompileError what reading the files
/// finds.
int check_kernels(const CheckKernels& options);

}  // namespace tenon
