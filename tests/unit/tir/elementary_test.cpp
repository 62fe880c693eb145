// SPDX-License-Identifier: Apache-2.0
// Errors of the elementary functions against the C library's in a wider type, in units in the last
// place.
#include "tenon/tir/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace tenon::tir {
namespace {

double ulp_of(float x) {
  const float magnitude = std::fabs(x);
  if (!(magnitude < std::numeric_limits<float>::infinity())) return 1;
  return static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) -
         static_cast<double>(magnitude);
}
double ulp_of(double x) {
  return std::nextafter(std::fabs(x), std::numeric_limits<double>::infinity()) - std::fabs(x);
}

template <typename T>
bool agree_on_edges(T got, long double want) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(static_cast<T>(want))) return got == static_cast<T>(want);
  return std::isfinite(got);
}

struct Case {
  const char* name;
  long double (*reference)(long double);
  double most_single, most_double;  // units in the last place
};

const Case kCases[] = {
    {"exp", std::exp, 1.1, 1.6},    {"log", std::log, 1.1, 1.6},
    {"tanh", std::tanh, 1.5, 3},    {"erf", std::erf, 1.2, 2.5},
    {"exp2", std::exp2, 0.51, 1.6}, {"log1p", std::log1p, 0.51, 2.5},
    {"log2", std::log2, 0.51, 2.5}, {"log10", std::log10, 0.51, 2.5},
    {"sin", std::sin, 0.51, 1.6},   {"cos", std::cos, 0.51, 1.6},
    {"tan", std::tan, 0.51, 4},     {"asin", std::asin, 0.51, 4},
    {"acos", std::acos, 0.51, 4},   {"atan", std::atan, 0.51, 1.6},
    {"sinh", std::sinh, 0.51, 4},   {"cosh", std::cosh, 0.51, 4},
    {"asinh", std::asinh, 0.51, 4}, {"acosh", std::acosh, 0.51, 4},
    {"atanh", std::atanh, 0.51, 4},
};

class Elementary : public testing::TestWithParam<Case> {};

TEST_P(Elementary, SingleIsAccurateOverTheWholeRange) {
  const Case& c = GetParam();
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 19997) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const long double want = c.reference(x);
    const float got = elementary(find_intrinsic(c.name)->id, x);
    ASSERT_TRUE(agree_on_edges(got, want)) << c.name << "(" << x << ") = " << got;
    if (!std::isfinite(got)) continue;
    const double error =
        static_cast<double>(std::fabs(got - want)) / ulp_of(static_cast<float>(want));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  EXPECT_LE(worst, c.most_single) << c.name << " at " << at;
}

TEST_P(Elementary, DoubleIsAccurateAtUsualArguments) {
  const Case& c = GetParam();
  double worst = 0, at = 0;
  for (int i = -60000; i < 60000; ++i) {
    const double x =
        std::copysign(std::exp(static_cast<double>(i % 20000) * 0.0007), i) * (i % 3 ? 1.0 : 0.01);
    const long double want = c.reference(x);
    const double got = elementary(find_intrinsic(c.name)->id, x);
    ASSERT_TRUE(agree_on_edges(got, want)) << c.name << "(" << x << ") = " << got;
    if (!std::isfinite(got) || std::fabs(want) < 1e-300L) continue;
    const double error =
        static_cast<double>(std::fabs(got - want)) / ulp_of(static_cast<double>(want));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  EXPECT_LE(worst, c.most_double) << c.name << " at " << at;
}

INSTANTIATE_TEST_SUITE_P(All, Elementary, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(ElementaryPairs, MatchTheLibrary) {
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {0.f,  -0.f,  1.f,    -1.f,   2.f,   -2.f, 0.5f, -0.5f,        3.f,
                          -3.f, 1e30f, -1e30f, 1e-30f, 7.25f, inf,  -inf, std::nanf("")};
  for (const float x : values)
    for (const float y : values) {
      const auto expect = [&](const char* name, double want) {
        const float got = elementary(find_intrinsic(name)->id, x, y),
                    rounded = static_cast<float>(want);
        if (std::isnan(rounded)) {
          EXPECT_TRUE(std::isnan(got)) << name << "(" << x << ", " << y << ") = " << got;
        } else {
          EXPECT_EQ(got, rounded) << name << "(" << x << ", " << y << ")";
          EXPECT_EQ(std::signbit(got), std::signbit(rounded))
              << name << "(" << x << ", " << y << ")";
        }
      };
      expect("pow", std::pow(static_cast<double>(x), static_cast<double>(y)));
      expect("atan2", std::atan2(static_cast<double>(x), static_cast<double>(y)));
      expect("hypot", std::hypot(static_cast<double>(x), static_cast<double>(y)));
      expect("fmod", std::fmod(static_cast<double>(x), static_cast<double>(y)));
    }
}

// Numbers of every exponent, with mantissas from one generator.
std::vector<double> of_all_sizes(int least, int most) {
  std::vector<double> out;
  uint64_t state = 1;
  for (int exponent = least; exponent <= most; ++exponent) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double mantissa = 1 + static_cast<double>(state >> 12) * 0x1p-52;
    out.push_back(std::ldexp(state >> 11 & 1 ? -mantissa : mantissa, exponent));
  }
  return out;
}

TEST(Turns, OfHugeArgumentsAreAccurate) {
  std::vector<double> huge = of_all_sizes(50, 1023);
  huge.push_back(0x1p50);
  huge.push_back(std::numeric_limits<double>::max());
  huge.push_back(0x1.6ac5b262ca1ffp+849);  // the double that is nearest to a multiple of pi / 2
  huge.push_back(-0x1.6ac5b262ca1ffp+849);
  for (const double x : huge) {
    const long double wide = x;
    EXPECT_NEAR(elementary(IntrinsicId::kSin, x), static_cast<double>(std::sin(wide)),
                1.6 * ulp_of(static_cast<double>(std::sin(wide))))
        << x;
    EXPECT_NEAR(elementary(IntrinsicId::kCos, x), static_cast<double>(std::cos(wide)),
                1.6 * ulp_of(static_cast<double>(std::cos(wide))))
        << x;
  }
}

TEST(Remainders, AreExact) {
  for (const double x : of_all_sizes(-1074, 1023))
    for (const double y : {1.0, -0.7, 3.0, 0x1p-1074, -0x1.8p-1030, 1e300, 6.5}) {
      EXPECT_EQ(elementary(IntrinsicId::kFmod, x, y), std::fmod(x, y)) << x << " and " << y;
      EXPECT_EQ(elementary(IntrinsicId::kFmod, y, x), std::fmod(y, x)) << y << " and " << x;
    }
  for (const double x : of_all_sizes(-149, 127))
    for (const float y : {1.0f, -0.7f, 3.0f, 0x1p-149f, -0x1.8p-130f, 1e30f}) {
      const auto narrow = static_cast<float>(x);
      EXPECT_EQ(elementary(IntrinsicId::kFmod, narrow, y), std::fmod(narrow, y))
          << x << " and " << y;
      EXPECT_EQ(elementary(IntrinsicId::kFmod, y, narrow), std::fmod(y, narrow))
          << y << " and " << x;
    }
  EXPECT_EQ(elementary_floormod(-7.5, 2.0), 0.5);
  EXPECT_EQ(elementary_floormod(7.5, -2.0), -0.5);
  EXPECT_EQ(elementary_floormod(7.5f, 2.0f), 1.5f);
}

TEST(Pow, OfWholeNumbersIsWhole) {
  for (int x = -12; x <= 12; ++x) {
    double want = 1;
    for (int y = 0; y <= 11; ++y, want *= x)
      EXPECT_EQ(elementary(IntrinsicId::kPow, static_cast<double>(x), static_cast<double>(y)), want)
          << x << " to the power " << y;
  }
}

TEST(Sigmoid, IsAccurateInAbsoluteTerms) {
  for (float x = -120; x < 120; x += 0.0371f) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(x)));
    EXPECT_NEAR(elementary(IntrinsicId::kSigmoid, x), want, 1e-7);
  }
  EXPECT_TRUE(std::isnan(elementary(IntrinsicId::kSigmoid, std::nanf(""))));
}

// Largest errors of `computed` above and below 0 against `wanted`, in units of 2^-23.
std::pair<double, double> errors_of(const std::function<float(float)>& computed,
                                    const std::function<double(double)>& wanted) {
  std::pair<double, double> worst{0, 0};
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 19997) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const float got = computed(x);
    EXPECT_EQ(std::isnan(got), std::isnan(x)) << x;
    if (std::isnan(x)) continue;
    double& of_sign = std::signbit(x) ? worst.second : worst.first;
    of_sign = std::max(of_sign, std::fabs(got - wanted(x)) * 0x1p23);
  }
  return worst;
}

TEST(OnePlusErf, IsAsAccurateAsTheSum) {
  for (const double scale : {1.0, std::sqrt(0.5), 1 / 1.4142135, 0.01, 30.0}) {
    const auto wanted = [&](double x) { return std::erfc(-x * scale); };
    const auto joined = errors_of([&](float x) { return one_plus_erf(x, scale); }, wanted);
    const auto summed = errors_of(
        [&](float x) { return 1 + elementary(IntrinsicId::kErf, x * static_cast<float>(scale)); },
        wanted);
    EXPECT_LE(joined.first, 1.17) << scale;
    EXPECT_LE(joined.second, 0.65) << scale;
    EXPECT_LE(joined.first, summed.first + 0.2) << scale;
    EXPECT_LE(joined.second, summed.second + 0.2) << scale;
  }
  for (const float x : {7.1f, 100.f, 3e38f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(one_plus_erf(x, 1), 2.f) << x;
    EXPECT_EQ(one_plus_erf(-x, 1), 0.f) << x;
  }
  EXPECT_EQ(one_plus_erf(0.f, 1), 1.f);
  EXPECT_EQ(one_plus_erf(-0.f, 1), 1.f);
}

TEST(OnePlusTanh, IsAccurateDownToItsEnd) {
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 19997) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= -43.6f) || std::isinf(x)) continue;
    const double want = 2 / (1 + std::exp(-2 * static_cast<double>(x)));
    const double error = std::fabs(logistic(x, -2, 2) - want) / ulp_of(static_cast<float>(want));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  EXPECT_LE(worst, 2.4) << at;
  for (const float x : {-43.7f, -1e30f, -std::numeric_limits<float>::infinity()})
    EXPECT_EQ(logistic(x, -2, 2), 0.f);
  EXPECT_EQ(logistic(std::numeric_limits<float>::infinity(), -2, 2), 2.f);
  EXPECT_TRUE(std::isnan(logistic(std::nanf(""), -2, 2)));
}

TEST(Exp, EndsInDenormalNumbersAndZero) {
  for (float x = -110; x < -86; x += 0.00731f) {
    const double want = std::exp(static_cast<double>(x));
    EXPECT_NEAR(elementary(IntrinsicId::kExp, x), want, 1.1 * ulp_of(static_cast<float>(want)))
        << x;
  }
  for (const float x :
       {-104.f, -150.f, -175.5f, -176.5f, -1e4f, -3e38f, -std::numeric_limits<float>::infinity()})
    EXPECT_EQ(elementary(IntrinsicId::kExp, x), 0.f) << x;
  for (const double x :
       {-746.0, -1000.0, -1417.5, -1418.5, -1e300, -std::numeric_limits<double>::infinity()})
    EXPECT_EQ(elementary(IntrinsicId::kExp, x), 0.0) << x;
}

TEST(Sigmoid, IsAccurateDownToItsEnd) {
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 19997) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= -87.3f) || std::isinf(x)) continue;
    const double want = 1 / (1 + std::exp(-static_cast<double>(x)));
    const double error =
        std::fabs(elementary(IntrinsicId::kSigmoid, x) - want) / ulp_of(static_cast<float>(want));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  EXPECT_LE(worst, 2.4) << at;
  EXPECT_GT(elementary(IntrinsicId::kSigmoid, -87.3f), 1e-38f);
  for (const float x : {-87.4f, -1e30f, -std::numeric_limits<float>::infinity()})
    EXPECT_EQ(elementary(IntrinsicId::kSigmoid, x), 0.f);
  EXPECT_EQ(elementary(IntrinsicId::kSigmoid, std::numeric_limits<float>::infinity()), 1.f);
}

}  // namespace
}  // namespace tenon::tir
