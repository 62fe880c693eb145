// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

namespace tenon {
namespace {

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsFreed = true;
#elif defined(__has_feature)
constexpr bool kKeepsFreed = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kKeepsFreed = false;
#endif

TEST(FreeMemory, GoesBackToTheSystem) {
  if (kKeepsFreed) GTEST_SKIP() << "a sanitizer's allocator keeps what is freed";
  constexpr size_t kBlock = 1000, kBlocks = 64000;
  std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
  for (auto& block : blocks) block = std::make_unique<char[]>(kBlock);
  const std::unique_ptr<char[]> last = std::make_unique<char[]>(kBlock);  // ends the heap
  const int64_t before = resident_bytes();
  blocks.clear();
  return_free_memory();
  EXPECT_LT(resident_bytes(), before - int64_t{kBlock * kBlocks / 2});
  EXPECT_EQ(last[0], 0);
}

}  // namespace
}  // namespace tenon
