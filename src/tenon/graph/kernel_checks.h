// SPDX-License-Identifier: Apache-2.0
// Conditions of kernels that the program which calls Tenon decides (register_condition). Internal to
// graph/.
#pragma once

#include "tenon/graph/kernels.h"

namespace tenon::graph {

/// Why the condition that a kernel names in `op_check` keeps it from a call; nothing where it names
/// none, or that holds.
std::optional<KernelRefusal> registered_refusal(const OperatorKernel& kernel,
                                                const OperatorCall& call,
                                                const std::optional<Target>& target);

}  // namespace tenon::graph
