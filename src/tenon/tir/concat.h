// SPDX-License-Identifier: Apache-2.0
// Kernels that join tensors along an axis.
#pragma once

#include <optional>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Attribute of a PrimFunc that joins its inputs along this axis, in their order, and does nothing
/// else. The result is the last parameter.
inline constexpr const char* kConcatAxis = "tir.concat_axis";

/// Bytes at multiples of which parts begin.
inline constexpr int64_t kConcatAlignment = 64;

/// Where the inputs of such a kernel lie in its result.
struct ConcatParts {
  size_t axis;
  std::vector<int64_t> starts;  // along the axis, one for each input
};

/// Nothing where the kernel has no such attribute, where its sizes are not constant, and where an
/// input is not one run of bytes of the result that begins at a multiple of kConcatAlignment.
std::optional<ConcatParts> concat_parts(const PrimFunc& kernel);

}  // namespace tenon::tir
