// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/free_memory.h"

#include <malloc.h>

#include <cstddef>

// jemalloc's, where the program was linked with it: under any other allocator it is null.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));

namespace tenon {

void return_free_memory() noexcept {
  if (mallctl != nullptr) {
    mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: all arenas
    return;
  }
  malloc_trim(0);
}

}  // namespace tenon
