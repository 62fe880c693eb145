// SPDX-License-Identifier: Apache-2.0
// Helpers for convolutions and pools: layouts, padding, the extents of sliding windows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/graph/layout.h"
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

/// The letters of the spatial axes of a rank: "W", "HW", "DHW".
std::string spatial_letters(size_t rank);

/// The value of a layout attribute whose axes are `letters` in any order, perhaps with blocks.
/// \throws CompileError (kBadAttribute).
Layout parse_layout(const Call& call, const std::string& attr, const std::string& text,
                    const std::string& letters);

/// The values of attribute `name`, a number for each spatial axis (one number stands for all), each
/// at least `least`. \throws CompileError (kBadAttribute).
std::vector<int64_t> along_axes(const Call& call, const std::string& name,
                                std::vector<int64_t> values, size_t rank, int64_t least);
/// Padding before and after along each spatial axis, from 1, rank or 2 * rank numbers.
struct Padding {
  std::vector<int64_t> before, after;
  bool any() const;
};
Padding padding_of(const Call& call, const std::vector<int64_t>& values, size_t rank);

/// An index along an axis that is perhaps split in blocks: `outer * block + inner`.
struct AxisIndex {
  Expr outer, inner;  // inner null: no blocks
  int64_t block = 1;

  Expr whole() const { return inner ? outer * block + inner : outer; }
  Expr outer_of(int64_t size) const;
  Expr inner_of(int64_t size) const;
};
/// The index along `letter` at `at` of a tensor of `layout`.
AxisIndex axis_index(const Layout& layout, const Indices& at, char letter);
/// The index into a tensor of `layout`, given one along each axis.
Indices join_index(const Layout& layout, const std::map<char, AxisIndex>& along);

/// `x` with `before` and `extent` along each spatial axis, `value` where x has no element: x itself
/// where nothing is added. `stride` places the elements that far apart (transposed convolution).
Operand padded(KernelOf& kernel, const Operand& x, const Layout& layout,
               const std::vector<Expr>& before, const std::vector<Expr>& extents, const Expr& value,
               const std::vector<int64_t>& stride = {});

/// The number of windows along an axis; that one fits is assumed (assumed_dims.h) where the extents
/// are symbols. \throws CompileError (kShapeMismatch) where none fits.
Expr window_count(const Call& call, const Expr& extent, int64_t before, int64_t after,
                  const Expr& size, int64_t stride, int64_t dilation, bool ceil_mode);

/// The index of each of `extents` that the row-major index `flat` stands for.
Indices apart(Expr flat, const std::vector<Expr>& extents);

}  // namespace tenon::graph
