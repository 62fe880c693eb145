// SPDX-License-Identifier: Apache-2.0
// The values that kernels make of constants, many elements at a time. It is for weights, of which
// there are millions: filters of Winograd's forms, packings.
#pragma once

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"

namespace tenon::interp {

/// The result of R.call_tir of a PrimFunc of `module` on constants: bit for bit that of the
/// interpreter. Null where an argument is no constant, or the kernel has another form than
/// strided_steps.h knows. Within a DeferredWorkScope large results are made later.
Ref<TensorData> kernel_value(const IRModule& module, const graph::Call& call);

}  // namespace tenon::interp
