// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering F(m, 3): m neighbouring outputs of a filter of three taps by m + 2
// products instead of 3 m. In two dimensions F(m x m, 3 x 3) takes (m + 2)^2 instead of 9 m^2.
//
// With a patch d of m + 2 inputs and a filter g: y = A^T ((G g) * (B^T d)), * element by element.
// Source: Lavin and Gray, arXiv:1509.09308; points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity, as many as the
// form needs.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

struct WinogradForm {
  using Matrix = std::vector<std::vector<double>>;
  int64_t tile;   // outputs of a tile along an axis: m
  Matrix input;   // B^T: (m + 2) x (m + 2)
  Matrix filter;  // G: (m + 2) x 3, times `divisor`: whole numbers
  double divisor;
  Matrix output;   // A^T: m x (m + 2)
  double epsilon;  // largest error of an output, relative to the largest output of a layer

  int64_t points() const { return tile + 2; }
};

/// Null where there is no form of this tile. There are those of 2, 4 and 6.
const WinogradForm* winograd_form(int64_t tile);

/// Row `row` of the product of B^T (or G) with what `value` gives for its columns. Rows of opposite
/// points are the sum and the difference of the same two terms.
Expr point_of(const WinogradForm::Matrix& matrix, size_t row,
              const std::function<Expr(size_t)>& value);
/// The same of A^T, whose columns of opposite points are added and subtracted first.
Expr output_of(const WinogradForm::Matrix& matrix, size_t row,
               const std::function<Expr(size_t)>& value);

/// The sizes of a convolution that Schedule::winograd takes.
struct ConvolutionSizes {
  int64_t rows, columns;  // of outputs
  int64_t images = 1, inputs = 1, outputs = 1;
  int64_t lanes = 1;  // neighbouring outputs and inputs that are channels; 1: they are no channels

  int64_t tiles_across(int64_t tile) const { return (columns + tile - 1) / tile; }
  int64_t tiles(int64_t tile) const { return (rows + tile - 1) / tile * tiles_across(tile); }
};
/// Nothing where it does not take the block.
std::optional<ConvolutionSizes> convolution_sizes(const Block& block);

}  // namespace tenon::tir
