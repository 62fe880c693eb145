// SPDX-License-Identifier: Apache-2.0
// The kernels of a model that plans may change, and the parts of its graph that libraries may compute, each
// as a job of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/driver/commands.h"
#include "tenon/tune/search.h"

namespace tenon {

struct TunableKernels {
  std::vector<tune::Kernel> kernels;                      // one of each structure
  std::vector<std::pair<std::string, std::string>> left;  // others by name, and why
  int64_t constant_bytes = 0;                             // of the module
};

/// Runs the passes before the one that plans.
/// \param dims  of symbols in shapes: sizes to measure with; the others are kDefaultDim
TunableKernels tunable_kernels(const IRModule& prepared, const CompileRequest& request,
                               const std::map<std::string, int64_t>& dims);

/// The parts of the graph that libraries offer to compute, one of each structure, with all that do. What
/// is placed by hand is measured as well, and stays. Runs the passes before AnnotatePlacement.
std::vector<tune::Kernel> tunable_parts(const IRModule& prepared, const CompileRequest& request,
                                        const std::map<std::string, int64_t>& dims);

}  // namespace tenon
