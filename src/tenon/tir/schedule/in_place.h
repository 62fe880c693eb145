// SPDX-License-Identifier: Apache-2.0
// Kernels that may write their output over an input.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Whether `function` computes the same where parameters `input` and `output`, buffers of one shape
/// and element type, are one memory: no element of the input is read after the same element of the
/// output was stored. Told from the loops and blocks as they stand (run it on scheduled kernels);
/// false where it cannot be told, and where the function writes the input or stores nothing.
bool may_share_memory(const PrimFunc& function, size_t input, size_t output);

/// `function` without parameter `output`, whose buffer is that of `input` now.
/// Requires: may_share_memory.
Ref<PrimFunc> in_place(const PrimFunc& function, size_t input, size_t output);

}  // namespace tenon::tir
