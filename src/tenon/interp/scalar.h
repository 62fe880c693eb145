// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic of the interpreter: exact, one element type at a time.
#pragma once

#include <cstddef>

#include "tenon/interp/code.h"

namespace tenon::interp {

/// `value` rounded to the nearest value of a float dtype (itself where that is float64).
double round_float(DType dtype, double value);
/// `value` wrapped to the width of an integer dtype.
int64_t wrap_int(DType dtype, int64_t value);

/// One operation on operands of `dtype`. \throws CompileError (kRunFailed) at a division by zero of
/// integers.
Slot apply_binary(BinaryOp op, DType dtype, Slot a, Slot b, const Origin& origin);
/// Conversion; float to integer truncates and saturates, NaN gives 0.
Slot apply_cast(DType to, DType from, Slot value);
/// An intrinsic of up to three operands; `from` is the dtype of the first.
Slot apply_intrinsic(IntrinsicId id, DType dtype, DType from, Slot a, Slot b, Slot c,
                     const Origin& origin);

/// An intrinsic of one float32 that gives a float32; null for others.
FloatFunction float_function(IntrinsicId id);

/// An element in memory, as a slot holds it.
Slot read_element(DType dtype, const std::byte* at);
void write_element(DType dtype, std::byte* at, Slot value);

}  // namespace tenon::interp
