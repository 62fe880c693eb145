// SPDX-License-Identifier: Apache-2.0
// Placement of kernels: which matches of back ends' patterns over TensorIR are taken, by the rules
// by which AnnotatePlacement chooses among matches over graphs. docs/placement.md is the guide.
#pragma once

#include "tenon/graph/transforms/split_call_tir_by_pattern.h"

namespace tenon::tune {

/// For the back ends that may be used, those that user placement names, and the module's own
/// patterns.
graph::SplitOptions kernel_placement(const IRModule& module);

/// ConvertLayout, which leaves plain what such a pattern takes: in the kernel of a convolution or
/// product on packed weights no pattern would find it again.
IRModule convert_layout_beside_kernels(IRModule module);

/// Whether the back end or pattern has a pattern over TensorIR.
bool has_kernel_pattern(const std::string& backend_or_pattern);

}  // namespace tenon::tune
