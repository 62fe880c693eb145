// SPDX-License-Identifier: Apache-2.0
// Pictures from bytes: of the formats without a library, values; of all, that damage is no image.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tenon/runtime/registry.h"
#include "tenon/runtime/tensor.h"

namespace tenon::runtime {
namespace {

// What the library calls the size of a picture; nothing where there is no library.
std::optional<std::pair<int64_t, int64_t>> size_of(const std::string& bytes) {
  const auto function = find_packed("tenon.image.decode_size");
  if (!function) return std::nullopt;
  std::string copy = bytes;
  int64_t length = static_cast<int64_t>(copy.size()), two = 2, size[2] = {-1, -1};
  DLTensor in{}, out{};
  in.data = copy.data();
  in.ndim = out.ndim = 1;
  in.shape = &length;
  out.data = size;
  out.shape = &two;
  TenonValue arg{}, result{};
  arg.pointer = &in;
  result.pointer = &out;
  EXPECT_EQ(function->function(&arg, nullptr, 1, &result, nullptr, nullptr), 0);
  return std::pair(size[0], size[1]);
}

std::string little(uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}
std::string bmp(uint32_t width, uint32_t height, uint32_t bits, const std::string& rest) {
  return "BM" + little(0, 8) + little(54, 4) + little(40, 4) + little(width, 4) +
         little(height, 4) + little(1, 2) + little(bits, 2) + std::string(24, 0) + rest;
}

using Size = std::pair<int64_t, int64_t>;

TEST(Images, SizesOfFiles) {
  if (!size_of("")) GTEST_SKIP() << "built without libraries of pictures";
  EXPECT_EQ(size_of(bmp(2, 1, 24, std::string(8, 7))), Size(1, 2));
  EXPECT_EQ(size_of("P5 3 2 255\nabcdef"), Size(2, 3));
  EXPECT_EQ(size_of("P1\n# a comment\n2 2\n01 10"), Size(2, 2));
}

TEST(Images, DamagedFilesAreNone) {
  if (!size_of("")) GTEST_SKIP() << "built without libraries of pictures";
  const std::string begins[] = {"\xff\xd8\xff",
                                std::string("\x89PNG\r\n\x1a\n"),
                                "BM",
                                std::string("RIFF\xff\xff\xff\xffWEBPVP8 "),
                                std::string("II*\0", 4),
                                std::string("MM\0*", 4),
                                std::string("\xff\x4f\xff\x51"),
                                std::string("\0\0\0\x0cjP  \r\n\x87\n", 12),
                                "P6 ",
                                ""};
  for (const std::string& begin : begins)
    for (const char filler : {'\0', '\xff', '1', '\x40'})
      for (const size_t length : {0, 1, 7, 64, 1000})
        EXPECT_EQ(size_of(begin + std::string(length, filler)), Size(0, 0)) << begin << length;
  // More pixels than there are bytes, and than fit in any number.
  EXPECT_EQ(size_of(bmp(0x7fffffff, 0x7fffffff, 24, "")), Size(0, 0));
  EXPECT_EQ(size_of(bmp(1, 0x80000000, 1, "")), Size(0, 0));
  EXPECT_EQ(size_of("P6 4294967295 4294967295 255\nabc"), Size(0, 0));
  EXPECT_EQ(size_of("P5 0 4 255\nabc"), Size(0, 0));
  EXPECT_EQ(size_of("P2 2 2 99\n1 2 3"), Size(0, 0));
  EXPECT_EQ(size_of("P2 1 1 99\n100"), Size(0, 0));
}

}  // namespace
}  // namespace tenon::runtime
