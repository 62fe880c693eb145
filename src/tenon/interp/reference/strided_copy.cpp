// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/reference/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tenon/support/check.h"
#include "tenon/support/parallel.h"

namespace tenon::interp {

// Elements of one side of a tile: two of 8 bytes fit the first-level cache many times over, and a
// cache line holds no more than a whole row of one.
static constexpr int64_t kTile = 64;

// Bytes from which on a part of a copy is worth a thread of its own.
static constexpr int64_t kLeastPart = int64_t{1} << 19;

// Mapped files hold elements at any address.
template <typename T>
static void copy_element(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, sizeof(T));
}

// Strides here are in bytes.
template <typename T>
static void copy_row(std::byte* to, const std::byte* from, const CopyDim& dim) {
  if (dim.to_stride == sizeof(T) && dim.from_stride == sizeof(T)) {
    std::memcpy(to, from, static_cast<size_t>(dim.extent) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < dim.extent; ++i)
    copy_element<T>(to + i * dim.to_stride, from + i * dim.from_stride);
}

// Tiles of the dimension that is dense in the source (`a`) and the one that is dense in the target
// (`b`), so that each cache line of either is touched in one go.
template <typename T>
static void copy_plane(std::byte* to, const std::byte* from, const CopyDim& a, const CopyDim& b) {
  for (int64_t i0 = 0; i0 < a.extent; i0 += kTile) {
    const int64_t i1 = std::min(a.extent, i0 + kTile);
    for (int64_t j0 = 0; j0 < b.extent; j0 += kTile) {
      const int64_t j1 = std::min(b.extent, j0 + kTile);
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j)
          copy_element<T>(to + i * a.to_stride + j * b.to_stride,
                          from + i * a.from_stride + j * b.from_stride);
    }
  }
}

template <typename T>
static void copy(std::byte* to, const std::byte* from, const std::vector<CopyDim>& dims) {
  if (dims.empty()) {
    copy_element<T>(to, from);
    return;
  }
  // The last dimension is the densest of the target; another may be the densest of the source.
  const CopyDim row = dims.back();
  size_t plane = dims.size();
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    const int64_t stride = std::abs(dims[d].from_stride);
    if (stride == 0 || stride >= std::abs(row.from_stride)) continue;
    if (plane == dims.size() || stride < std::abs(dims[plane].from_stride)) plane = d;
  }
  std::vector<CopyDim> outer;
  for (size_t d = 0; d + 1 < dims.size(); ++d)
    if (d != plane) outer.push_back(dims[d]);
  std::vector<int64_t> at(outer.size(), 0);
  for (;;) {
    if (plane < dims.size())
      copy_plane<T>(to, from, dims[plane], row);
    else
      copy_row<T>(to, from, row);
    size_t d = outer.size();
    while (d-- > 0) {
      to += outer[d].to_stride;
      from += outer[d].from_stride;
      if (++at[d] < outer[d].extent) break;
      to -= outer[d].to_stride * outer[d].extent;
      from -= outer[d].from_stride * outer[d].extent;
      at[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

// Without dimensions of extent 1, by falling stride in the target, neighbours joined where both
// sides go on without a gap.
static std::vector<CopyDim> normal(std::vector<CopyDim> dims) {
  std::erase_if(dims, [](const CopyDim& dim) { return dim.extent == 1; });
  std::sort(dims.begin(), dims.end(),
            [](const CopyDim& a, const CopyDim& b) { return a.to_stride > b.to_stride; });
  std::vector<CopyDim> joined;
  for (const CopyDim& dim : dims) {
    if (!joined.empty() && joined.back().to_stride == dim.to_stride * dim.extent &&
        joined.back().from_stride == dim.from_stride * dim.extent) {
      joined.back() = {joined.back().extent * dim.extent, dim.to_stride, dim.from_stride};
    } else {
      joined.push_back(dim);
    }
  }
  return joined;
}

static void copy_normal(std::byte* to, const std::byte* from, const std::vector<CopyDim>& dims,
                        int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return copy<uint8_t>(to, from, dims);
    case 2: return copy<uint16_t>(to, from, dims);
    case 4: return copy<uint32_t>(to, from, dims);
    case 8: return copy<uint64_t>(to, from, dims);
    default: unreachable("a copy of elements of another size");
  }
}

void strided_copy(std::byte* to, const std::byte* from, std::vector<CopyDim> dims,
                  int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (CopyDim& dim : dims) {
    if (dim.extent == 0) return;
    bytes *= dim.extent;
    dim.to_stride *= element_bytes;
    dim.from_stride *= element_bytes;
  }
  dims = normal(std::move(dims));
  const int64_t parts = dims.empty() ? 1 : std::min(dims[0].extent, bytes / kLeastPart);
  if (parts < 2) return copy_normal(to, from, dims, element_bytes);
  const CopyDim outer = dims[0];
  for_each_in_parallel(static_cast<size_t>(parts), [&](size_t part) {
    const auto number = static_cast<int64_t>(part);
    const int64_t begin = outer.extent * number / parts;
    std::vector<CopyDim> own = dims;
    own[0].extent = outer.extent * (number + 1) / parts - begin;
    copy_normal(to + begin * outer.to_stride, from + begin * outer.from_stride, own, element_bytes);
  });
}

}  // namespace tenon::interp
