// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/narrow_float.h"

#include <algorithm>
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

MinifloatFormat minifloat_format(DType dtype) {
  switch (dtype.code) {
    case DType::Code::kFloat8e4m3fnuz: return {4, 3, 8, 0x7f, 0x80, 0x80, true};
    case DType::Code::kFloat8e5m2: return {5, 2, 15, 0x7b, 0x7c, 0x7e, false};
    case DType::Code::kFloat8e5m2fnuz: return {5, 2, 16, 0x7f, 0x80, 0x80, true};
    case DType::Code::kFloat8e8m0fnu: return {8, 0, 127, 254, 255, 255, false};
    case DType::Code::kFloat4e2m1fn: return {2, 1, 1, 7, 7, 8, false};
    default: return {4, 3, 7, 0x7e, 0x7f, 0x7f, false};
  }
}

static double power_of_two_value(int bits) {
  return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
}

static uint16_t power_of_two_bits(double value) {
  if (!(value > 0) || std::isinf(value)) return 255;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  // The steps below 2^-126 are those of float32, of which there is one more.
  if (value < 0x1p-126) return value > 0x1p-127 ? 1 : 0;
  const int bits = exponent - 1 + 127 + (fraction >= 0.75 ? 1 : 0);
  return static_cast<uint16_t>(std::min(bits, 255));
}

double largest_narrow_float(DType dtype) {
  switch (dtype.code) {
    case DType::Code::kFloat: return half_to_double(0x7bff);
    case DType::Code::kBFloat: return bfloat16_to_double(0x7f7f);
    default:
      return narrow_float_value(dtype, static_cast<uint16_t>(minifloat_format(dtype).largest));
  }
}

double narrow_float_value(DType dtype, uint16_t bits) {
  if (dtype.code == DType::Code::kFloat) return half_to_double(bits);
  if (dtype.code == DType::Code::kBFloat) return bfloat16_to_double(bits);
  if (dtype.code == DType::Code::kFloat8e8m0fnu) return power_of_two_value(bits & 255);
  const MinifloatFormat format = minifloat_format(dtype);
  const int magnitude = bits & (format.sign() - 1), sign = bits & format.sign();
  if (format.unsigned_zero && magnitude == 0 && sign)
    return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  if (magnitude > format.largest) {
    value = magnitude == format.overflow && magnitude != format.nan
                ? std::numeric_limits<double>::infinity()
                : std::numeric_limits<double>::quiet_NaN();
  } else {
    const int unit = 1 << format.fraction_bits, exponent = magnitude / unit;
    const int fraction = magnitude % unit + (exponent > 0 ? unit : 0);
    value = std::ldexp(fraction, std::max(exponent, 1) - format.bias - format.fraction_bits);
  }
  return sign ? -value : value;
}

uint16_t narrow_float_bits(DType dtype, double value) {
  if (dtype.code == DType::Code::kFloat) return double_to_half(value);
  if (dtype.code == DType::Code::kBFloat) return double_to_bfloat16(value);
  if (dtype.code == DType::Code::kFloat8e8m0fnu) return power_of_two_bits(value);
  const MinifloatFormat format = minifloat_format(dtype);
  const double magnitude = std::fabs(value);
  int bits = format.overflow;
  if (std::isnan(value)) {
    bits = format.nan;
  } else if (magnitude <= 0x1p17) {  // above every largest number
    const int least = 1 - format.bias;
    const int exponent = std::max(magnitude == 0 ? least : std::ilogb(magnitude), least);
    // In units of the last place, ties to even; what rounds up moves into the next exponent.
    const double units = std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent));
    bits = ((exponent - least) << format.fraction_bits) + static_cast<int>(units);
    if (bits > format.largest) bits = format.overflow;
  }
  if (format.unsigned_zero && (bits == 0 || bits == format.nan)) return static_cast<uint16_t>(bits);
  return static_cast<uint16_t>(bits ^ (std::signbit(value) ? format.sign() : 0));
}

}  // namespace tenon
