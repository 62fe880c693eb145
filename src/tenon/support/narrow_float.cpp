// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/narrow_float.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tenon {

// The bits of a positive number in the unit of a shorter format, to the nearest, ties to even. The
// carry of a fraction that rounds up moves into the exponent by itself.
static uint64_t in_units(double magnitude, uint64_t unit, uint64_t bias) {
  const uint64_t bits = std::bit_cast<uint64_t>(magnitude) - bias;
  const uint64_t whole = bits / unit, rest = bits % unit;
  return whole + (rest > unit / 2 || (rest == unit / 2 && whole % 2 == 1) ? 1 : 0);
}

uint16_t double_to_half(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0) return sign | 0x7c00;
  if (magnitude < 0x1p-14) return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24));
  return sign | static_cast<uint16_t>(in_units(magnitude, kHalfUnit, kHalfBias));
}

uint16_t double_to_bfloat16(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7fc0;
  if (std::isinf(value)) return sign | 0x7f80;
  if (magnitude < 0x1p-126)
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 133)));
  const uint64_t bits = in_units(magnitude, kBFloatUnit, kBFloatBias);
  return sign | static_cast<uint16_t>(bits >= 0x7f80 ? 0x7f80 : bits);
}

}  // namespace tenon
