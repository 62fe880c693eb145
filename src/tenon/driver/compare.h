// Compares tensors element by element by the rules of the ONNX backend tests.
#pragma once

#include <optional>
#include <string>

#include "tenon/ir/constant.h"

namespace tenon {

/// |a - b| <= absolute + relative * |b|, or, with `whole`, <= whole * (1 + max |b|), where b is
/// what is expected. NaN equals NaN, an infinity itself. All zero: equal as numbers.
struct Tolerance {
  double relative = 0, absolute = 0;
  double whole = 0;
};
inline constexpr Tolerance kOnnxTolerance{1e-3, 1e-7, 0};
/// Sums of float32 in another order, and polynomials in place of libm: the error of either is a few
/// units in the last place times the square root of the terms, far below this share of the largest
/// value; what a wrong pass does lies far above it.
inline constexpr Tolerance kReassociated{0, 0, 1e-4};

/// Why `got` is not what is expected, naming the first wrong element, how many are wrong and the
/// largest error; nothing where it is.
std::optional<std::string> difference(const TensorData& got, const TensorData& expected,
                                      Tolerance tolerance);

/// Bit for bit, but for NaNs, which all equal one another.
std::optional<std::string> exact_difference(const TensorData& got, const TensorData& expected);

}  // namespace tenon
