// SPDX-License-Identifier: Apache-2.0
// The scalar functions of generated C: for operations that C lacks, or that C leaves undefined
// where TensorIR does not.
#pragma once

#include <string>
#include <vector>

#include "tenon/support/dtype.h"

namespace tenon::c_backend {

/// `f32`, `i64`, `u8`, `h16` (float16, as its bits), `b16` (bfloat16, likewise); of vectors with
/// the lanes: `f32x8`.
std::string short_name(DType dtype);

struct ScalarFunction {
  std::string definition;          // of a static inline function
  std::vector<std::string> needs;  // other functions
  bool uses_memcpy = false;
};

/// By its name: an operation and the short names of its types, such as `max_f32`, `shl_i64`,
/// `cast_f32_i32`, `bits_f32_i32`. A name that is not of the table is a fault of Tenon.
ScalarFunction scalar_function(const std::string& name);

}  // namespace tenon::c_backend
