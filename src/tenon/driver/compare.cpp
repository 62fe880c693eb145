// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "tenon/support/narrow_float.h"

namespace tenon {

static std::string place(const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  std::string text = "[";
  for (size_t d = 0; d < at.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(at[d]);
  return text + "]";
}

static std::optional<Mismatch> type_difference(const TensorData& got, const TensorData& expected) {
  if (got.dtype == expected.dtype && got.shape == expected.shape) return std::nullopt;
  return Mismatch{fmt::format("is {} {}; expected {} {}", got.dtype.str(), str(got.shape),
                              expected.dtype.str(), str(expected.shape))};
}

// `wrong(i)` is null where element i is right, else the size of its error (infinite where that has
// none).
static std::optional<Mismatch> report(const TensorData& got, const TensorData& expected,
                                      const std::function<std::optional<double>(int64_t)>& wrong) {
  Mismatch found;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const auto error = wrong(i);
    if (!error) continue;
    if (found.first < 0) found.first = i;
    ++found.count;
    found.largest = std::max(found.largest, *error);
  }
  if (found.first < 0) return std::nullopt;
  const auto text = [&](const TensorData& tensor) {
    return tensor.dtype.is_float() ? fmt::format("{:.9g}", tensor.at_float(found.first))
                                   : std::to_string(tensor.at_int(found.first));
  };
  found.text = fmt::format("element {} is {}; expected {} ({} of {} wrong, largest error {:.3g})",
                           place(got.shape, found.first), text(got), text(expected), found.count,
                           got.elements(), found.largest);
  return found;
}

static std::optional<std::string> text_of(std::optional<Mismatch> found) {
  return found ? std::optional(std::move(found->text)) : std::nullopt;
}

double unit_roundoff(DType dtype) {
  if (!dtype.is_float()) return 0;
  if (dtype == kFloat64) return 0x1p-53;
  if (dtype == kFloat32) return 0x1p-24;
  if (dtype == kFloat16) return 0x1p-11;
  return dtype == kBFloat16 ? 0x1p-8 : std::ldexp(0.5, -minifloat_format(dtype).fraction_bits);
}

// Below the least normal value roundings are absolute.
static double least_normal(DType dtype) {
  if (dtype == kFloat64) return std::numeric_limits<double>::min();
  if (dtype.is_minifloat()) return std::ldexp(1.0, 1 - minifloat_format(dtype).bias);
  return dtype == kFloat16 ? 0x1p-14 : static_cast<double>(std::numeric_limits<float>::min());
}

Tolerance rounding_tolerance(DType dtype, int64_t terms) {
  if (!dtype.is_float()) return {};
  constexpr double kRoundings = 16, kTimesRoot = 8;
  const double unit = unit_roundoff(dtype);
  // Minifloats are rounded to from float32: a float32 on the other side of a tie is one step away.
  if (dtype.is_minifloat()) return {2 * unit, 2 * unit * least_normal(dtype)};
  Tolerance tolerance{kRoundings * unit, kRoundings * unit * least_normal(dtype)};
  if (terms > 1) tolerance.largest = kTimesRoot * unit * std::sqrt(static_cast<double>(terms));
  return tolerance;
}

// As a number, where 64 bits of an integer need not be exact.
static double number_at(const TensorData& tensor, int64_t i) {
  return tensor.dtype.is_float() ? tensor.at_float(i) : static_cast<double>(tensor.at_int(i));
}

void add_spread(const TensorData& nominal, const TensorData& moved, std::vector<double>& spread) {
  spread.resize(static_cast<size_t>(nominal.elements()));
  for (size_t i = 0; i < spread.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double a = number_at(nominal, at), b = number_at(moved, at);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double apart = std::fabs(a - b);
    spread[i] = std::max(spread[i], std::isnan(apart) ? INFINITY : apart);
  }
}

static double largest_finite(const TensorData& tensor) {
  double most = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = std::fabs(tensor.at_float(i));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

double largest_error(const TensorData& got, const TensorData& expected) {
  double largest = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double error = std::fabs(number_at(got, i) - number_at(expected, i));
    if (std::isfinite(error)) largest = std::max(largest, error);
  }
  return largest;
}

std::optional<std::string> difference(const TensorData& got, const TensorData& expected,
                                      Tolerance tolerance, std::span<const double> slack) {
  return text_of(mismatch(got, expected, tolerance, slack));
}

std::optional<Mismatch> mismatch(const TensorData& got, const TensorData& expected,
                                 Tolerance tolerance, std::span<const double> slack) {
  if (auto types = type_difference(got, expected)) return types;
  const auto more = [&](int64_t i) { return slack.empty() ? 0.0 : slack[static_cast<size_t>(i)]; };
  if (!got.dtype.is_float()) {  // exact also where 64 bits do not fit a double
    const auto apart = [](int64_t a, int64_t b) {
      return std::fabs(static_cast<double>(a) - static_cast<double>(b));
    };
    return report(got, expected, [&](int64_t i) -> std::optional<double> {
      const int64_t a = got.at_int(i), b = expected.at_int(i);
      if (a == b) return std::nullopt;
      const double bound = tolerance.absolute +
                           tolerance.relative * std::fabs(static_cast<double>(b)) +
                           tolerance.whole + more(i);
      const double error = std::max(apart(a, b), 1.0);
      return error <= bound ? std::nullopt : std::optional(error);
    });
  }
  double all = tolerance.absolute;
  if (tolerance.whole > 0 || tolerance.largest > 0) {
    const double most = largest_finite(expected);
    all += tolerance.whole * (1 + most) + tolerance.largest * most;
  }
  return report(got, expected, [&](int64_t i) -> std::optional<double> {
    const double a = got.at_float(i), b = expected.at_float(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) return std::nullopt;
    const double error = std::fabs(a - b), slack_here = more(i);
    if (std::isfinite(a) && std::isfinite(b)) {
      if (error <= all + tolerance.relative * std::fabs(b) + slack_here) return std::nullopt;
    } else if (std::isinf(slack_here)) {
      return std::nullopt;  // rounding decides whether it is a number
    }
    return std::isnan(error) ? INFINITY : error;
  });
}

std::optional<std::string> exact_difference(const TensorData& got, const TensorData& expected) {
  if (auto types = type_difference(got, expected)) return text_of(types);
  const auto a = got.data(), b = expected.data();
  if (std::ranges::equal(a, b)) return std::nullopt;
  const auto size = static_cast<size_t>(got.dtype.bytes());
  const auto wrong = [&](int64_t i) -> std::optional<double> {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(a.data() + at, b.data() + at, size) == 0) return std::nullopt;
    const double x = got.at_float(i), y = expected.at_float(i);
    if (std::isnan(x) && std::isnan(y)) return std::nullopt;
    const double error = std::fabs(x - y);
    return std::isnan(error) ? INFINITY : error;
  };
  return text_of(report(got, expected, wrong));
}

}  // namespace tenon
