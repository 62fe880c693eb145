// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/concat.h"

#include <algorithm>

namespace tenon::tir {

std::optional<ConcatParts> concat_parts(const PrimFunc& kernel) {
  const auto axis = kernel.attrs.get<int64_t>(kConcatAxis);
  const std::vector<Ref<Buffer>>& buffers = kernel.buffers;
  if (!axis || buffers.size() < 2 ||
      std::any_of(buffers.begin(), buffers.end(), [](const auto& buffer) {
        return !buffer || !as_ints(buffer->shape) || !buffer->strides.empty();
      }))
    return std::nullopt;
  const Buffer& whole = *buffers.back();
  const std::vector<int64_t> sizes = *as_ints(whole.shape);
  ConcatParts parts{static_cast<size_t>(*axis), {}};
  if (parts.axis >= sizes.size() ||
      std::any_of(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(parts.axis),
                  [](int64_t size) { return size != 1; }))
    return std::nullopt;
  int64_t bytes = whole.dtype.bytes();  // of one place along the axis
  for (size_t d = parts.axis + 1; d < sizes.size(); ++d) bytes *= sizes[d];
  int64_t start = 0;
  for (size_t i = 0; i + 1 < buffers.size(); ++i) {
    std::vector<int64_t> own = *as_ints(buffers[i]->shape);
    if (own.size() != sizes.size() || buffers[i]->dtype != whole.dtype ||
        start * bytes % kConcatAlignment != 0)
      return std::nullopt;
    parts.starts.push_back(start);
    start += own[parts.axis];
    own[parts.axis] = sizes[parts.axis];
    if (own != sizes) return std::nullopt;
  }
  if (start != sizes[parts.axis]) return std::nullopt;
  return parts;
}

}  // namespace tenon::tir
