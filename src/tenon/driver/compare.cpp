#include "tenon/driver/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

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

static std::optional<std::string> type_difference(const TensorData& got,
                                                  const TensorData& expected) {
  if (got.dtype == expected.dtype && got.shape == expected.shape) return std::nullopt;
  return fmt::format("is {} {}; expected {} {}", got.dtype.str(), str(got.shape),
                     expected.dtype.str(), str(expected.shape));
}

// `wrong(i)` is null where element i is right, else the size of its error (infinite where that has
// none).
static std::optional<std::string> report(
    const TensorData& got, const TensorData& expected,
    const std::function<std::optional<double>(int64_t)>& wrong) {
  int64_t first = -1, count = 0;
  double largest = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const auto error = wrong(i);
    if (!error) continue;
    if (first < 0) first = i;
    ++count;
    largest = std::max(largest, *error);
  }
  if (first < 0) return std::nullopt;
  const auto text = [&](const TensorData& tensor) {
    return tensor.dtype.is_float() ? fmt::format("{:.9g}", tensor.at_float(first))
                                   : std::to_string(tensor.at_int(first));
  };
  return fmt::format("element {} is {}; expected {} ({} of {} wrong, largest error {:.3g})",
                     place(got.shape, first), text(got), text(expected), count, got.elements(),
                     largest);
}

std::optional<std::string> difference(const TensorData& got, const TensorData& expected,
                                      Tolerance tolerance) {
  if (auto types = type_difference(got, expected)) return types;
  if (!got.dtype.is_float()) {  // exact also where 64 bits do not fit a double
    const auto apart = [](int64_t a, int64_t b) {
      return std::fabs(static_cast<double>(a) - static_cast<double>(b));
    };
    return report(got, expected, [&](int64_t i) -> std::optional<double> {
      const int64_t a = got.at_int(i), b = expected.at_int(i);
      if (a == b) return std::nullopt;
      const double bound = tolerance.absolute +
                           tolerance.relative * std::fabs(static_cast<double>(b)) + tolerance.whole;
      const double error = std::max(apart(a, b), 1.0);
      return error <= bound ? std::nullopt : std::optional(error);
    });
  }
  double whole = 0;
  if (tolerance.whole > 0) {
    double most = 0;
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double value = std::fabs(expected.at_float(i));
      if (std::isfinite(value)) most = std::max(most, value);
    }
    whole = tolerance.whole * (1 + most);
  }
  return report(got, expected, [&](int64_t i) -> std::optional<double> {
    const double a = got.at_float(i), b = expected.at_float(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) return std::nullopt;
    const double error = std::fabs(a - b);
    if (std::isfinite(a) && std::isfinite(b) &&
        error <= whole + tolerance.absolute + tolerance.relative * std::fabs(b))
      return std::nullopt;
    return std::isnan(error) ? INFINITY : error;
  });
}

std::optional<std::string> exact_difference(const TensorData& got, const TensorData& expected) {
  if (auto types = type_difference(got, expected)) return types;
  const auto a = got.data(), b = expected.data();
  if (std::ranges::equal(a, b)) return std::nullopt;
  const auto size = static_cast<size_t>(got.dtype.bytes());
  return report(got, expected, [&](int64_t i) -> std::optional<double> {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(a.data() + at, b.data() + at, size) == 0) return std::nullopt;
    const double x = got.at_float(i), y = expected.at_float(i);
    if (std::isnan(x) && std::isnan(y)) return std::nullopt;
    const double error = std::fabs(x - y);
    return std::isnan(error) ? INFINITY : error;
  });
}

}  // namespace tenon
