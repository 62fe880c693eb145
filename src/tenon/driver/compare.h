// SPDX-License-Identifier: Apache-2.0
// Compares tensors element by element: by the rules of the ONNX backend tests, bit for bit, or by
// what rounding explains.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/ir/constant.h"

namespace tenon {

/// |a - b| <= absolute + relative * |b| + whole * (1 + max |b|) + largest * max |b|, where b is
/// what is expected. NaN equals NaN, an infinity itself. All zero: equal as numbers.
struct Tolerance {
  double relative = 0, absolute = 0;
  double whole = 0;
  double largest = 0;
};
inline constexpr Tolerance kOnnxTolerance{1e-3, 1e-7, 0};

/// What one rounding to a float dtype changes at most, as a share of the value; 0 of others.
double unit_roundoff(DType dtype);

/// How far two right evaluations of one expression may be apart, with u = unit_roundoff(dtype):
/// 16 u |b|, a few roundings, and where sums of `terms` > 1 terms are in it 8 u sqrt(terms) max
/// |b|, what sums in another order differ by (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019:
/// their error grows as the root of the terms). Nothing for integers.
Tolerance rounding_tolerance(DType dtype, int64_t terms);

/// Makes spread[i] at least as large as |moved - nominal| of element i; infinite where one is a
/// number and the other is not. The tensors are of one type.
void add_spread(const TensorData& nominal, const TensorData& moved, std::vector<double>& spread);

/// Elements that are not what is expected.
struct Mismatch {
  std::string text;    // names the first, how many are wrong, the largest error
  int64_t first = -1;  // row-major; -1: the tensors are of different types
  int64_t count = 0;
  double largest = 0;
};
std::optional<Mismatch> mismatch(const TensorData& got, const TensorData& expected,
                                 Tolerance tolerance, std::span<const double> slack = {});

/// The largest |got - expected| of elements that are numbers in both.
double largest_error(const TensorData& got, const TensorData& expected);

/// Why `got` is not what is expected, naming the first wrong element, how many are wrong and the
/// largest error; nothing where it is. `slack`, where it is not empty, is more that each element
/// may be off by.
std::optional<std::string> difference(const TensorData& got, const TensorData& expected,
                                      Tolerance tolerance, std::span<const double> slack = {});

/// Bit for bit, but for NaNs, which all equal one another.
std::optional<std::string> exact_difference(const TensorData& got, const TensorData& expected);

}  // namespace tenon
