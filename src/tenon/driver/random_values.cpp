// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/random_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/script/constants.h"
#include "tenon/support/narrow_float.h"
#include "tenon/support/random.h"
#include "tenon/support/strings.h"

namespace tenon {

namespace {

using Kind = InputMeaning::Kind;

// The largest finite value and the least normal one.
struct Limits {
  double most, least;
};
Limits limits_of(DType dtype) {
  if (dtype == kFloat16) return {65504, 0x1p-14};
  if (dtype == kFloat32 || dtype == kBFloat16)
    return {static_cast<double>(std::numeric_limits<float>::max()) / 256, 0x1p-126};
  if (dtype == kFloat64) return {std::numeric_limits<double>::max(), 0x1p-1022};
  return {largest_narrow_float(dtype), std::ldexp(1.0, 1 - minifloat_format(dtype).bias)};
}

// Half of [-1, 1), a quarter of [-8, 8), an eighth whole numbers, an eighth over many powers of 2.
double scaled(Random& random, DType dtype) {
  const int64_t which = random.below(8);
  const double u = random.unit();
  if (which < 4) return 2 * u - 1;
  if (which < 6) return 16 * u - 8;
  if (which == 6) return std::floor(7 * u) - 3;
  const double highest = dtype.bits < 32 ? 4 : 8, lowest = -12;
  return random.sign() * std::exp2(lowest + (highest - lowest) * u);
}

double extreme(Random& random, DType dtype, double largest) {
  const Limits limits = limits_of(dtype);
  const double sign = random.sign();
  switch (random.below(6)) {
    case 0: return sign * 0.0;
    case 1: return sign * limits.least;
    case 2: return sign * limits.least / 4;  // subnormal
    case 3: return sign * 100;
    case 4: return sign * std::min(largest, limits.most) / 7;
    default: return sign * std::min(largest, limits.most);
  }
}

double float_value(Random& random, DType dtype, const RandomRange& range) {
  const bool plain = range.values == Values::kUniform;
  double value = plain ? 2 * random.unit() - 1 : scaled(random, dtype);
  const bool special = !plain && range.values != Values::kScales && random.below(8) == 0;
  if (special && range.values == Values::kExtreme) value = extreme(random, dtype, range.largest);
  if (special && range.values == Values::kInfinite) value = random.sign() * HUGE_VAL;
  if (special && range.values == Values::kNaN) value = std::nan("");
  if (dtype == kFloat8e8m0fnu) value = value == 0 ? 1 : std::fabs(value);  // has no others
  switch (range.kind) {
    case Kind::kDivisor: return value == 0 ? 1 : value;
    case Kind::kPositive: return value == 0 ? 1 : std::fabs(value);
    case Kind::kUnit: return std::clamp(value, -1.0, 1.0);
    default: return value;
  }
}

int64_t largest_integer(DType dtype) {
  const int bits = std::min<int>(dtype.bits - (dtype.is_uint() ? 0 : 1), 62);
  return (int64_t{1} << bits) - 1;
}

int64_t int_value(Random& random, DType dtype, const RandomRange& range) {
  const int64_t extent = std::max<int64_t>(1, range.extent);
  switch (range.kind) {
    case Kind::kIndex:
      return std::min(random.below(extent), largest_integer(dtype)) -
             (range.from_end && !dtype.is_uint() && random.below(2) ? extent : 0);
    case Kind::kCount: return std::min(random.below(extent + 1), largest_integer(dtype));
    case Kind::kShift: return random.below(dtype.bits);
    case Kind::kSteers: return random.below(2);
    default: break;
  }
  int64_t value = random.below(2);
  if (range.values != Values::kUniform) {
    const int64_t most = std::min<int64_t>(100, largest_integer(dtype));
    value = random.below(dtype.is_uint() ? 2 * most + 1 : most + 1);
    if (dtype.is_uint()) value = std::min(value, largest_integer(dtype));
    if (!dtype.is_uint() && random.below(2)) value = -value;
    if (range.values == Values::kExtreme && random.below(8) == 0)
      value = largest_integer(dtype) * (!dtype.is_uint() && random.below(2) ? -1 : 1);
  }
  const bool not_zero = range.kind == Kind::kDivisor || range.kind == Kind::kPositive;
  if (not_zero && value == 0) value = 1;
  return range.kind == Kind::kPositive ? std::abs(value) : value;
}

}  // namespace

Ref<TensorData> random_values(DType dtype, std::vector<int64_t> shape, uint64_t seed,
                              const RandomRange& range) {
  const int64_t size = std::max<int64_t>(1, dtype.bytes());
  const int64_t count = checked_elements(shape, size);
  constexpr int64_t kMostBytes = int64_t{1} << 36;
  if (count > kMostBytes / size)
    throw CompileError(kLimitExceeded, {}, "an input of shape {} would take more than 64 GiB",
                       str(shape));
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(count * dtype.bytes()));
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    bool known = true;
    if (dtype.is_string()) {
      const int64_t id = intern_text(fmt::format("text{}", random.bits() >> 60));
      const auto element = std::as_bytes(std::span(&id, 1));
      bytes.insert(bytes.end(), element.begin(), element.end());
    } else if (dtype.is_float())
      known = script::append_element(dtype, float_value(random, dtype, range), bytes);
    else if (dtype.is_bool())
      known = script::append_element(dtype, static_cast<int64_t>(random.bits() >> 63), bytes);
    else
      known = script::append_element(dtype, int_value(random, dtype, range), bytes);
    if (!known)
      throw CompileError(kUnsupported, {}, "random values of type {}; give a file", dtype.str());
  }
  return TensorData::owned(dtype, std::move(shape), std::move(bytes));
}

}  // namespace tenon
