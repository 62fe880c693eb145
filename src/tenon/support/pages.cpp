// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/pages.h"

#include <sys/mman.h>

#include <new>

namespace tenon {

Pages::Pages(size_t bytes) : bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
  void* data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
}

Pages::~Pages() {
  if (data_) munmap(data_, bytes_);
}

bool Pages::move_to(std::byte* place) {
  if (mremap(data_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED) {
    data_ = nullptr;
    return true;
  }
  // The pages at `place` may be gone already: the caller's mapping has no hole.
  if (mmap(place, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    throw std::bad_alloc();
  return false;
}

}  // namespace tenon
