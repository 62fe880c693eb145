// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>

namespace tenon {
namespace {

constexpr size_t kRoom = 8 * kPageBytes;

/// A mapping of kRoom bytes, all of them 1.
struct Mapping {
  std::byte* data = static_cast<std::byte*>(
      mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Mapping() { std::fill_n(data, kRoom, std::byte{1}); }
  ~Mapping() { munmap(data, kRoom); }
};

TEST(Pages, AreZeroAtFirst) {
  const Pages pages(3 * kPageBytes);
  EXPECT_TRUE(std::all_of(pages.data(), pages.data() + 3 * kPageBytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(Pages, MoveWithWhatStandsInThem) {
  const Mapping mapping;
  const size_t size = 2 * kPageBytes + 100;
  auto pages = std::make_unique<Pages>(size);
  for (size_t i = 0; i < size; ++i) pages->data()[i] = static_cast<std::byte>(i % 251);
  ASSERT_TRUE(pages->move_to(mapping.data + kPageBytes));
  EXPECT_EQ(pages->data(), nullptr);
  pages.reset();  // and are the mapping's
  for (size_t i = 0; i < size; ++i)
    ASSERT_EQ(mapping.data[kPageBytes + i], static_cast<std::byte>(i % 251)) << i;
  EXPECT_EQ(mapping.data[kPageBytes - 1], std::byte{1});
  EXPECT_EQ(mapping.data[kPageBytes + size], std::byte{0});  // the last one is moved whole
  EXPECT_EQ(mapping.data[4 * kPageBytes], std::byte{1});
}

TEST(Pages, ThatCannotMoveLeaveZerosAndNoHole) {
  const Mapping mapping;
  Pages pages(kPageBytes);
  ASSERT_EQ(munmap(pages.data(), kPageBytes), 0);  // nothing is there to be moved
  const bool moved = pages.move_to(mapping.data + kPageBytes);
  // Something again, for it to free.
  (void)mmap(pages.data(), kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  EXPECT_FALSE(moved);
  EXPECT_EQ(mapping.data[kPageBytes - 1], std::byte{1});
  EXPECT_EQ(mapping.data[kPageBytes], std::byte{0});
  EXPECT_EQ(mapping.data[2 * kPageBytes], std::byte{1});
}

TEST(Pages, StayWhereThePlaceIsNoPage) {
  const Mapping mapping;
  Pages pages(kPageBytes);
  pages.data()[7] = std::byte{42};
  EXPECT_THROW((void)pages.move_to(mapping.data + 8), std::bad_alloc);
  ASSERT_NE(pages.data(), nullptr);
  EXPECT_EQ(pages.data()[7], std::byte{42});
}

}  // namespace
}  // namespace tenon
