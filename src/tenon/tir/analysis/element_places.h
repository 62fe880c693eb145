// SPDX-License-Identifier: Apache-2.0
// Addresses of elements relative to their buffer's pointer, and of lanes of vector indices.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Lane `i` of a vector expression; null where that has no form of its own.
Expr lane_of(const Expr& vector, int64_t i);

/// Elements from the pointer of a buffer to the end of the last one, as int64.
Expr span_of(const Buffer& buffer);

/// Elements from the pointer of a buffer to this one, as int64.
Expr place_of(const BufferLoad& element);

/// What T.tvm_access_ptr(type, data, offset, extent, mode) points to.
/// \throws CompileError (kBadArgument) where that is no dtype, or an argument is missing.
DType element_of_access_ptr(const Call& call);

}  // namespace tenon::tir
