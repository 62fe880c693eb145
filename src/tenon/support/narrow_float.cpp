#include "tenon/support/narrow_float.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tenon {

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

uint16_t double_to_half(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0) return sign | 0x7c00;
  if (magnitude < 0x1p-14) return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24));
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  // The carry of a fraction that rounds up to 2048 moves into the exponent by itself.
  const auto scaled = static_cast<int>(std::nearbyint(fraction * 2048.0));
  return sign | static_cast<uint16_t>(((exponent + 14) << 10) + (scaled - 1024));
}

double bfloat16_to_double(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t double_to_bfloat16(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7fc0;
  if (std::isinf(value)) return sign | 0x7f80;
  if (magnitude < 0x1p-126)
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 133)));
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);
  const auto scaled = static_cast<int>(std::nearbyint(fraction * 256.0));
  const int bits = ((exponent + 126) << 7) + (scaled - 128);
  return sign | static_cast<uint16_t>(bits >= 0x7f80 ? 0x7f80 : bits);
}

}  // namespace tenon
