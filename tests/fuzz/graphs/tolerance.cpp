#include "tolerance.h"

#include <algorithm>
#include <cmath>

#include "tenon/driver/compare.h"

namespace tenon::fuzz {

// The distance from 1 to the next number of the dtype.
static double unit_of(DType dtype) {
  if (dtype == kFloat64) return 0x1p-52;
  if (dtype == kFloat32) return 0x1p-23;
  return dtype == kFloat16 ? 0x1p-10 : 0x1p-7;
}

std::optional<std::string> wrong_output(const Network& network, size_t index,
                                        const TensorData& got) {
  const TensorData& expected = *network.outputs[index];
  if (network.exact[index] || !expected.dtype.is_float())
    return difference(got, expected, Tolerance{0, 0, 0});
  // Most are this near: the units of the largest value.
  const double near = 4 * unit_of(expected.dtype);
  const auto wrong = difference(got, expected, Tolerance{0, 0, near});
  if (!wrong || got.dtype != expected.dtype || got.shape != expected.shape) return wrong;
  if (!network.disturbed) return wrong;

  constexpr int kRuns = 4;
  constexpr double kUnits = 4, kFactor = 16;
  std::vector<double> apart(static_cast<size_t>(expected.elements()), 0.0);
  double most = 0;
  for (int64_t i = 0; i < expected.elements(); ++i)
    if (std::isfinite(expected.at_float(i))) most = std::max(most, std::fabs(expected.at_float(i)));
  for (int run = 0; run < kRuns; ++run) {
    const auto outputs = network.disturbed(kUnits, static_cast<uint64_t>(run) + 1);
    const TensorData& other = *outputs[index];
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double d = std::fabs(other.at_float(i) - expected.at_float(i));
      double& known = apart[static_cast<size_t>(i)];
      known = std::isnan(d) ? INFINITY : std::max(known, d);
    }
  }
  int64_t count = 0, first = -1;
  double worst = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = got.at_float(i), b = expected.at_float(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double bound = kFactor * apart[static_cast<size_t>(i)] + near * (1 + most);
    const double error = std::fabs(a - b);
    if (error <= bound) continue;
    worst = std::max(worst, std::isnan(error) ? INFINITY : error / bound);
    if (first < 0) first = i;
    ++count;
  }
  if (first < 0) return std::nullopt;
  return fmt::format("element {} is {:.9g}; expected {:.9g} within {:.3g} ({} of {} wrong)", first,
                     got.at_float(first), expected.at_float(first),
                     kFactor * apart[static_cast<size_t>(first)] + near * (1 + most), count,
                     expected.elements());
}

}  // namespace tenon::fuzz
