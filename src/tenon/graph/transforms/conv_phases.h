// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions as convolutions. Element `stride * (i + j) + phase` of the result (before
// it is cut out) sums tap `stride * j + phase` of the elements i of data: each phase is a convolution
// of its own, of the same data, and no product is one with the zeros between the elements of data.
#pragma once

#include <array>
#include <optional>

#include "tenon/graph/builder.h"

namespace tenon::graph {

struct ConvPhases {
  std::array<int64_t, 2> stride, taps, begin;  // along height and width
  int64_t channels;                            // of the result
  std::array<Expr, 2> whole, extent;           // of all phases; of what is cut out of them

  /// Zeros around the data: before height and width, then after them.
  std::vector<int64_t> padding() const;
};

/// The phases of a transposed convolution of planar data and constant weights in float32, of one
/// group, without dilation. `data`: the type of its planar data. Nothing where it is another one.
std::optional<ConvPhases> phases_of(const Call& call, const Ref<TensorType>& data);

/// Its weights as filters [phases * channels, I, taps, taps] of a convolution, where the channels of a
/// phase are filled up to a multiple of `lanes` by zeros.
Value filters_of(const TensorData& weights, const ConvPhases& phases, int64_t lanes);

/// The result [N, channels / lanes, H, W, lanes], of the convolution with those filters [N, phases *
/// channels / lanes, H, W, lanes].
Value side_by_side(BlockBuilder& builder, const Value& filtered, const ConvPhases& phases,
                   const std::string& name);

}  // namespace tenon::graph
