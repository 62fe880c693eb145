// 16-bit floats as numbers: what their bits mean, and which bits are nearest to a number.
#pragma once

#include <cstdint>

namespace tenon {

/// The value of an IEEE half ("float16").
double half_to_double(uint16_t bits);
/// The nearest half, ties to even, straight from the double (no second rounding through float32);
/// beyond 65504 infinity. NaN keeps its sign.
uint16_t double_to_half(double value);

/// The value of a bfloat16: the upper half of a float32.
double bfloat16_to_double(uint16_t bits);
/// The nearest bfloat16, as for halves.
uint16_t double_to_bfloat16(double value);

}  // namespace tenon
