// SPDX-License-Identifier: Apache-2.0
// Copies between two views of different strides, in an order that suits the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::interp {

/// A dimension of a copy: how often, and how far apart in both memories (elements; of the source 0
/// repeats, below 0 goes backwards).
struct CopyDim {
  int64_t extent, to_stride, from_stride;
};

/// Copies the elements (of 1, 2, 4 or 8 bytes) of a box. The views lie inside their memories and do
/// not overlap.
void strided_copy(std::byte* to, const std::byte* from, std::vector<CopyDim> dims,
                  int64_t element_bytes);

}  // namespace tenon::interp
