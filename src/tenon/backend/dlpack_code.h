// SPDX-License-Identifier: Apache-2.0
// The type codes of tensors at a program's boundary (runtime/abi.h).
#pragma once

#include "tenon/ir/node.h"

namespace tenon::backend {

/// TENON_DTYPE_*. \throws CompileError (kUnsupported) at a type that no tensor has.
uint8_t dlpack_code(DType dtype, const Origin& origin = {});
/// What a TENON_DTYPE_* stands for; void where it is none of them.
DType::Code code_of_dlpack(uint8_t code);

}  // namespace tenon::backend
