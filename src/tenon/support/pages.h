// SPDX-License-Identifier: Apache-2.0
// Memory of whole pages of the system, which moves to another address without a copy.
#pragma once

#include <cstddef>

namespace tenon {

/// Of x86-64, on which alone programs are linked in process.
inline constexpr size_t kPageBytes = 4096;

/// Zero at first; freed with the object.
class Pages {
 public:
  /// \throws std::bad_alloc
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// Null once they have moved.
  std::byte* data() const { return data_; }

  /// Moves them, the last one whole, to `place`: the start of a page of a private mapping of the
  /// caller's, which owns them from then on. \returns false where the system does not: these pages are as
  /// before, those at `place` are zero. \throws std::bad_alloc where `place` cannot be mapped
  bool move_to(std::byte* place);

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
};

}  // namespace tenon
