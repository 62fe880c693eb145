// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits and less as numbers: what their bits mean, and which bits are nearest to a
// number.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "tenon/support/dtype.h"

namespace tenon {

// Both formats have the fraction of a double cut short, and another bias of the exponent.
inline constexpr uint64_t kHalfUnit = uint64_t{1} << (52 - 10),
                          kHalfBias = uint64_t{1023 - 15} << 52;
inline constexpr uint64_t kBFloatUnit = uint64_t{1} << (52 - 7),
                          kBFloatBias = uint64_t{1023 - 127} << 52;

/// The value of an IEEE half ("float16").
inline double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = fraction * 0x1p-24;
  } else {
    value = std::bit_cast<double>(uint64_t{bits & 0x7fffU} * kHalfUnit + kHalfBias);
  }
  return bits & 0x8000 ? -value : value;
}

/// The nearest half, ties to even, straight from the double (no second rounding through float32);
/// beyond 65504 infinity. NaN keeps its sign.
uint16_t double_to_half(double value);

/// The value of a bfloat16: the upper half of a float32.
inline double bfloat16_to_double(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
/// The nearest bfloat16, as for halves.
uint16_t double_to_bfloat16(double value);

/// How the bits of a minifloat are to be read: a sign, exponent and fraction, with subnormal numbers
/// as IEEE 754 has them. float8_e8m0fnu has neither sign nor subnormal numbers: bits e, up to 254,
/// are 2^(e - bias).
struct MinifloatFormat {
  int exponent_bits, fraction_bits, bias;
  int largest;   // bits of the largest number
  int overflow;  // of what lies beyond it, and infinity: infinity, NaN, or the largest number
  // Of a positive NaN; in a `uz` format of all. float4_e2m1fn has none: of what NaN becomes, the zero
  // of the other sign.
  int nan;
  bool unsigned_zero;

  int sign() const { return 1 << (exponent_bits + fraction_bits); }
};
MinifloatFormat minifloat_format(DType dtype);

/// The largest finite value of a float of 16 bits or less.
double largest_narrow_float(DType dtype);
/// The value of a float of 16 bits or less.
double narrow_float_value(DType dtype, uint16_t bits);
/// The nearest number of such a type, ties to even. Of float8_e8m0fnu ties go up, what is positive
/// and below its numbers gives the least one, and what is not positive NaN.
uint16_t narrow_float_bits(DType dtype, double value);

}  // namespace tenon
