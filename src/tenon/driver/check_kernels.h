// SPDX-License-Identifier: Apache-2.0
// `tenon check --kernels`: compares kernels of one's own with the meaning of their operators.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/driver/kernel_files.h"
#include "tenon/support/diagnostics.h"

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

/// What the check found of a kernel.
struct KernelVerdict {
  std::string kernel, op;
  std::vector<std::string> calls;       // that were tried: "x float32 (5, 7), axis=-1"
  std::optional<double> largest_error;  // none: the operator has no body to compare with
  std::string not_compiled;           // why it ran in the interpreter only; empty: it was compiled
  std::string beside;                 // what else is worth saying; may be empty
  std::optional<CompileError> fault;  // what is wrong with it

  /// "my_softmax: ok, nn.softmax of 8 shapes, largest error 1e-07", of one without a fault.
  std::string str() const;
};

/// Runs each kernel on random inputs of random shapes that its operator allows, and on the last of
/// them with extreme values, infinities and NaNs: in the interpreter, which sees every access, and
/// compiled, on one and on two threads; compares with the interpreter's meaning of the operator.
/// \param begin  called with the name of each kernel before it is checked; may be null.
/// \param end    called with what was found of it.
/// \throws CompileError what reading the files finds.
void check_kernels(const CheckKernels& options,
                   const std::function<void(const std::string& kernel)>& begin,
                   const std::function<void(const KernelVerdict&)>& end);

/// Prints a line for each kernel that is right, and the diagnostic of each that is not, to the
/// error stream.
/// \returns the exit status: 1 where a kernel is wrong.
int check_kernels(const CheckKernels& options);

}  // namespace tenon
