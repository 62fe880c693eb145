// SPDX-License-Identifier: Apache-2.0
// 16-bit floats as numbers: what their bits mean, and which bits are nearest to a number.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

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

}  // namespace tenon
