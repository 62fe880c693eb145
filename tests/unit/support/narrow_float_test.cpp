// SPDX-License-Identifier: Apache-2.0
// 16-bit floats: every one of them, and what lies between two.
#include "tenon/support/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

struct Format {
  double (*wide)(uint16_t);
  uint16_t (*narrow)(double);
  uint16_t infinity;
};

// From one positive number to the next, to infinity: a half goes to the even one.
void expect_nearest(const Format& format) {
  for (uint16_t bits = 0; bits < format.infinity; ++bits) {
    const double value = format.wide(bits);
    EXPECT_EQ(format.narrow(value), bits);
    EXPECT_EQ(format.narrow(-value), bits | 0x8000);
    if (bits + 1 == format.infinity) break;
    const double next = format.wide(static_cast<uint16_t>(bits + 1)), half = (value + next) / 2;
    EXPECT_EQ(format.narrow(half), bits + bits % 2) << half;
    EXPECT_EQ(format.narrow(std::nextafter(half, value)), bits) << half;
    EXPECT_EQ(format.narrow(std::nextafter(half, next)), bits + 1) << half;
  }
}

TEST(NarrowFloat, HalvesAreTheNearest) {
  expect_nearest({half_to_double, double_to_half, 0x7c00});
  EXPECT_EQ(half_to_double(0x0001), 0x1p-24);
  EXPECT_EQ(half_to_double(0x0400), 0x1p-14);
  EXPECT_EQ(half_to_double(0x7bff), 65504);
  EXPECT_EQ(double_to_half(65519.99), 0x7bff);
  EXPECT_EQ(double_to_half(65520), 0x7c00);
  EXPECT_EQ(half_to_double(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(half_to_double(0x7e01)));
  EXPECT_EQ(double_to_half(-NAN), 0xfe00);
}

TEST(NarrowFloat, BFloatsAreTheNearest) {
  expect_nearest({bfloat16_to_double, double_to_bfloat16, 0x7f80});
  EXPECT_EQ(double_to_bfloat16(0x1.fep127), 0x7f7f);
  EXPECT_EQ(double_to_bfloat16(0x1.ffp127), 0x7f80);
  EXPECT_EQ(double_to_bfloat16(1e300), 0x7f80);
}

}  // namespace
}  // namespace tenon
