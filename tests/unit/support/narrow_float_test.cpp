// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits and less: every one of them, and what lies between two.
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

// The value of bits by the definition of a format without NaN and infinity.
double plain_value(int exponent_bits, int fraction_bits, int bias, int bits) {
  const int unit = 1 << fraction_bits, exponent = bits / unit % (1 << exponent_bits);
  const double fraction = static_cast<double>(bits % unit) / unit;
  const double value =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return bits >> (exponent_bits + fraction_bits) ? -value : value;
}

// Positive numbers have the bits from 0 to `largest`.
void expect_minifloat(DType dtype, int exponent_bits, int fraction_bits, int bias, int largest) {
  SCOPED_TRACE(dtype.str());
  const int sign = 1 << (exponent_bits + fraction_bits);
  const auto value = [&](int bits) {
    return plain_value(exponent_bits, fraction_bits, bias, bits);
  };
  const bool one_zero = dtype == kFloat8e4m3fnuz || dtype == kFloat8e5m2fnuz;
  const auto expect_bits = [&](double number, int bits) {
    EXPECT_EQ(narrow_float_bits(dtype, number), bits) << number;
    const int negative = one_zero && bits == 0 ? 0 : bits | sign;
    EXPECT_EQ(narrow_float_bits(dtype, -number), negative) << -number;
  };
  for (int bits = 0; bits <= largest; ++bits) {
    EXPECT_EQ(narrow_float_value(dtype, static_cast<uint16_t>(bits)), value(bits));
    if (bits > 0 || !one_zero) {
      EXPECT_EQ(narrow_float_value(dtype, static_cast<uint16_t>(bits | sign)), -value(bits));
    }
    expect_bits(value(bits), bits);
    if (bits == largest) break;
    const double half = (value(bits) + value(bits + 1)) / 2;
    expect_bits(half, bits + bits % 2);
    expect_bits(std::nextafter(half, 0), bits);
    expect_bits(std::nextafter(half, 1e9), bits + 1);
  }
  EXPECT_EQ(largest_narrow_float(dtype), value(largest));
}

TEST(NarrowFloat, MinifloatsAreTheNearest) {
  expect_minifloat(kFloat8e4m3fn, 4, 3, 7, 0x7e);
  expect_minifloat(kFloat8e4m3fnuz, 4, 3, 8, 0x7f);
  expect_minifloat(kFloat8e5m2, 5, 2, 15, 0x7b);
  expect_minifloat(kFloat8e5m2fnuz, 5, 2, 16, 0x7f);
  expect_minifloat(kFloat4e2m1fn, 2, 1, 1, 7);
}

// What is no number, by the tables of the formats.
TEST(NarrowFloat, WhatMinifloatsHaveBeyondTheLargest) {
  struct Row {
    DType dtype;
    double last, first;  // rounds to the largest, rounds beyond it
    int beyond, minus_beyond, nan, minus_nan;
  };
  for (const Row& row : {Row{kFloat8e4m3fn, 464, 464.1, 0x7f, 0xff, 0x7f, 0xff},
                         Row{kFloat8e4m3fnuz, 247.9, 248, 0x80, 0x80, 0x80, 0x80},
                         Row{kFloat8e5m2, 61439, 61440, 0x7c, 0xfc, 0x7e, 0xfe},
                         Row{kFloat8e5m2fnuz, 61439, 61440, 0x80, 0x80, 0x80, 0x80}}) {
    SCOPED_TRACE(row.dtype.str());
    const double largest = largest_narrow_float(row.dtype);
    const auto round = [&](double x) {
      return narrow_float_value(row.dtype, narrow_float_bits(row.dtype, x));
    };
    EXPECT_EQ(round(row.last), largest);
    EXPECT_EQ(round(-row.last), -largest);
    for (const double x : {row.first, 1e30, double{INFINITY}}) {
      EXPECT_EQ(narrow_float_bits(row.dtype, x), row.beyond) << x;
      EXPECT_EQ(narrow_float_bits(row.dtype, -x), row.minus_beyond) << x;
    }
    EXPECT_EQ(narrow_float_bits(row.dtype, NAN), row.nan);
    EXPECT_EQ(narrow_float_bits(row.dtype, -NAN), row.minus_nan);
    for (const int bits : {row.nan, row.minus_nan})
      EXPECT_TRUE(std::isnan(narrow_float_value(row.dtype, static_cast<uint16_t>(bits))));
  }
  EXPECT_EQ(narrow_float_value(kFloat8e5m2, 0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(narrow_float_value(kFloat8e5m2, 0x7d)));
  EXPECT_EQ(narrow_float_bits(kFloat4e2m1fn, 1e30), 7);
  EXPECT_EQ(narrow_float_bits(kFloat4e2m1fn, -INFINITY), 15);
  EXPECT_EQ(narrow_float_bits(kFloat4e2m1fn, NAN), 8);
  EXPECT_EQ(narrow_float_bits(kFloat4e2m1fn, -NAN), 0);
}

TEST(NarrowFloat, PowersOfTwo) {
  for (int bits = 0; bits < 255; ++bits) {
    const double value = std::ldexp(1.0, bits - 127);
    EXPECT_EQ(narrow_float_value(kFloat8e8m0fnu, static_cast<uint16_t>(bits)), value);
    EXPECT_EQ(narrow_float_bits(kFloat8e8m0fnu, value), bits);
    if (bits == 0) continue;
    EXPECT_EQ(narrow_float_bits(kFloat8e8m0fnu, 1.5 * value), bits + 1);
    EXPECT_EQ(narrow_float_bits(kFloat8e8m0fnu, std::nextafter(1.5 * value, 0)), bits);
  }
  EXPECT_EQ(narrow_float_bits(kFloat8e8m0fnu, 0x1p-149), 0);
  EXPECT_EQ(narrow_float_bits(kFloat8e8m0fnu, 0x1.4p-127), 1);
  for (const double x : {0.0, -0.0, -1.0, double{INFINITY}, double{NAN}, 0x1p128})
    EXPECT_EQ(narrow_float_bits(kFloat8e8m0fnu, x), 255) << x;
  EXPECT_TRUE(std::isnan(narrow_float_value(kFloat8e8m0fnu, 255)));
}

}  // namespace
}  // namespace tenon
