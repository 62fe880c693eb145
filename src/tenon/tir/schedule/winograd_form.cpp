// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/winograd_form.h"

namespace tenon::tir {

const WinogradForm* winograd_form(int64_t tile) {
  static const WinogradForm kTwo = {
      .tile = 2,
      .input = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}},
      .filter = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}},
      .divisor = 2,
      .output = {{1, 1, 1, 0}, {0, 1, -1, 1}},
      .epsilon = 1e-6,
  };
  static const WinogradForm kFour = {
      .tile = 4,
      .input = {{4, 0, -5, 0, 1, 0},
                {0, -4, -4, 1, 1, 0},
                {0, 4, -4, -1, 1, 0},
                {0, -2, -1, 2, 1, 0},
                {0, 2, -1, -2, 1, 0},
                {0, 4, 0, -5, 0, 1}},
      .filter = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 24}},
      .divisor = 24,
      .output = {{1, 1, 1, 1, 1, 0},
                 {0, 1, -1, 2, -2, 0},
                 {0, 1, 1, 4, 4, 0},
                 {0, 1, -1, 8, -8, 1}},
      .epsilon = 1e-5,
  };
  static const WinogradForm kSix = {
      .tile = 6,
      .input = {{1, 0, -5.25, 0, 5.25, 0, -1, 0},
                {0, 1, 1, -4.25, -4.25, 1, 1, 0},
                {0, -1, 1, 4.25, -4.25, -1, 1, 0},
                {0, 0.5, 0.25, -2.5, -1.25, 2, 1, 0},
                {0, -0.5, 0.25, 2.5, -1.25, -2, 1, 0},
                {0, 2, 4, -2.5, -5, 0.5, 1, 0},
                {0, -2, 4, 2.5, -5, -0.5, 1, 0},
                {0, -1, 0, 5.25, 0, -5.25, 0, 1}},
      .filter = {{90, 0, 0},
                 {-20, -20, -20},
                 {-20, 20, -20},
                 {1, 2, 4},
                 {1, -2, 4},
                 {64, 32, 16},
                 {64, -32, 16},
                 {0, 0, 90}},
      .divisor = 90,
      .output = {{1, 1, 1, 1, 1, 1, 1, 0},
                 {0, 1, -1, 2, -2, 0.5, -0.5, 0},
                 {0, 1, 1, 4, 4, 0.25, 0.25, 0},
                 {0, 1, -1, 8, -8, 0.125, -0.125, 0},
                 {0, 1, 1, 16, 16, 0.0625, 0.0625, 0},
                 {0, 1, -1, 32, -32, 0.03125, -0.03125, 1}},
      .epsilon = 2e-5,
  };
  for (const WinogradForm* form : {&kTwo, &kFour, &kSix})
    if (form->tile == tile) return form;
  return nullptr;
}

// `sum` and `factor * value`, where there is a sum already.
static Expr plus(const Expr& sum, double factor, const Expr& value) {
  if (factor == 0) return sum;
  if (!sum) return factor == 1 ? value : imm(value->dtype, factor) * value;
  if (factor == 1) return sum + value;
  if (factor == -1) return sum - value;
  return sum + imm(value->dtype, factor) * value;
}

Expr point_of(const WinogradForm::Matrix& matrix, size_t row,
              const std::function<Expr(size_t)>& value) {
  const bool is_pair = row > 0 && row + 1 < matrix.size();
  const size_t first = is_pair && row % 2 == 0 ? row - 1 : row;
  const std::vector<double>& factors = matrix[first];
  Expr even, odd;
  for (size_t i = 0; i < factors.size(); ++i) {
    Expr& sum = is_pair && i % 2 == 1 ? odd : even;
    sum = plus(sum, factors[i], value(i));
  }
  if (!is_pair) return even;
  return row == first ? even + odd : even - odd;
}

Expr output_of(const WinogradForm::Matrix& matrix, size_t row,
               const std::function<Expr(size_t)>& value) {
  const std::vector<double>& factors = matrix[row];
  Expr sum = plus({}, factors.front(), value(0));
  for (size_t i = 1; i + 1 < factors.size(); i += 2) {
    if (factors[i] == 0) continue;
    const bool adds = factors[i] == factors[i + 1];
    sum = plus(sum, factors[i], adds ? value(i) + value(i + 1) : value(i) - value(i + 1));
  }
  return plus(sum, factors.back(), value(factors.size() - 1));
}

}  // namespace tenon::tir
