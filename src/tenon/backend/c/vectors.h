// SPDX-License-Identifier: Apache-2.0
// Vector operations of generated C. Each function here returns the name of a macro or function of
// the prelude.
#pragma once

#include "tenon/backend/c/prelude.h"
#include "tenon/ir/expr.h"

namespace tenon::c_backend {

/// A scalar expression of $0 and $1 for an operation on `element` (which is float32 where 16-bit
/// floats are meant), as TensorIR defines it. For integer division the divisor is not zero.
/// `index`: signed arithmetic stays in range. `no_nan`: which operand is known to be a number (0
/// or 1; -1: neither).
struct BinaryTraits {
  bool index = false;
  bool nonnegative = false;  // both operands
  int no_nan = -1;
};
std::string binary_pattern(Prelude& prelude, BinaryOp op, DType element, BinaryTraits traits);

std::string vector_binary(Prelude& prelude, BinaryOp op, DType dtype, BinaryTraits traits);
std::string vector_splat(Prelude& prelude, DType dtype);
std::string vector_ramp(Prelude& prelude, DType dtype);      // (base, stride)
std::string vector_select(Prelude& prelude, DType dtype);    // (mask, a, b)
std::string vector_not(Prelude& prelude, int lanes);         // of a mask
std::string vector_fma(Prelude& prelude, DType dtype);       // (a, b, c)
std::string vector_copysign(Prelude& prelude, DType dtype);  // (magnitude, sign)
std::string vector_cast(Prelude& prelude, DType from, DType to);
std::string vector_bits(Prelude& prelude, DType from, DType to);
/// `sqrt`, `fabs`, `floor`, `ceil`, `trunc`, `rint` of floats.
std::string vector_unary(Prelude& prelude, const std::string& name, DType dtype);
std::string vector_load(Prelude& prelude, DType dtype);         // (pointer)
std::string vector_store(Prelude& prelude, DType dtype);        // (pointer, value)
std::string vector_load_every(Prelude& prelude, DType dtype);   // (pointer, stride)
std::string vector_store_every(Prelude& prelude, DType dtype);  // (pointer, stride, value)
std::string vector_gather(Prelude& prelude, DType dtype, DType index);
std::string vector_scatter(Prelude& prelude, DType dtype, DType index);
std::string masked_load(Prelude& prelude, DType dtype);   // (pointer, mask, otherwise)
std::string masked_store(Prelude& prelude, DType dtype);  // (pointer, mask, value)
/// Picks lanes of one or two vectors.
std::string vector_pick(Prelude& prelude, const std::vector<DType>& from,
                        const std::vector<int64_t>& lanes);
std::string any_zero(Prelude& prelude, DType dtype);

/// A scalar expression of $0 that converts; nothing changes where the types are one in C.
std::string cast_pattern(Prelude& prelude, DType from, DType to);

}  // namespace tenon::c_backend
