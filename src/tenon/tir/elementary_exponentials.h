// SPDX-License-Identifier: Apache-2.0
// Steps of the exponentials, and of what is one with them. Used by elementary.cpp alone.
#pragma once

#include <algorithm>
#include <array>

#include "tenon/tir/elementary_steps.h"

namespace tenon::tir::math {

// Coefficients of e^(factor r) from those of e^r: highest power first.
template <size_t N>
std::array<double, N> of_multiple(std::array<double, N> coefficients, double factor) {
  double power = 1;
  for (size_t i = N; i-- > 0; power *= factor) coefficients[i] *= power;
  return coefficients;
}

// e^(factor r) for |factor r| <= ln(2) / 2.
template <typename O>
F<O> exp_reduced(const O& o, const F<O>& r, double factor = 1) {
  if (o.kSingle)  // of the least largest relative error, 3.1e-9 (Lawson's algorithm)
    return polynomial(o,
                      of_multiple<7>({1.3814602031e-3, 8.3687152157e-3, 4.1668387885e-2,
                                      1.6666520645e-1, 4.9999993449e-1, 1.0, 1.0},
                                     factor),
                      r);
  std::array<double, 14> taylor{};
  double factorial = 1;
  for (size_t i = 0; i < 14; ++i) {
    if (i > 0) factorial *= static_cast<double>(i);
    taylor[13 - i] = 1 / factorial;
  }
  return polynomial(o, of_multiple(taylor, factor), r);
}

template <typename O>
int64_t bias(const O& o) {
  return o.kSingle ? 127 : 1023;
}
template <typename O>
int mantissa_bits(const O& o) {
  return o.kSingle ? 23 : 52;
}

// mantissa * 2^exponent, with a mantissa between 0.7 and 1.42. The low bits of `shifted` hold the
// exponent and what was added to it.
template <typename O>
struct Power {
  F<O> mantissa;
  typename O::I shifted;
};

// e^(factor x), also where that is beyond the numbers of the type: for |factor x| up to some
// thousands. `factor` is a power of two or minus one, so that it goes into the constants without an error.
template <typename O>
Power<O> exp_parts(const O& o, const F<O>& x, int64_t added, double factor = 1) {
  const F<O> zero = o.c(magic(o) + static_cast<double>(added));
  const F<O> shifted = o.let(o.fma(x, o.c(1.44269504088896341 * factor), zero));
  const F<O> n = o.let(shifted - zero);
  const double high = o.kSingle ? 0.693359375 : 6.93147180369123816490e-01;
  const double low = o.kSingle ? -2.12194440e-4 : 1.90821492927058770002e-10;
  const F<O> r = o.let(o.fma(n, o.c(-low / factor), o.fma(n, o.c(-high / factor), x)));
  return {exp_reduced(o, r, factor), o.let_int(o.bits(shifted))};
}

// 2^n as a number, of bits whose low ones hold n and the bias.
template <typename O>
F<O> power_of_biased(const O& o, const typename O::I& biased) {
  return o.real(o.shl(biased, mantissa_bits(o)));
}

// e^(factor x) where that is far from the ends of the range: for |factor x| up to 87.3 (float32) or
// 708.3.
template <typename O>
F<O> exp_normal(const O& o, const F<O>& x, double factor = 1) {
  const Power<O> power = exp_parts(o, x, bias(o), factor);
  return power.mantissa * power_of_biased(o, power.shifted);
}

// The same and one, rounded once; infinity where the exponent is 128 (1024).
template <typename O>
F<O> one_plus_exp(const O& o, const F<O>& x, double factor) {
  const Power<O> power = exp_parts(o, x, bias(o), factor);
  return o.fma(power.mantissa, power_of_biased(o, power.shifted), o.c(1.0));
}

// The exponent is split in two, so that each factor is a normal number and a denormal result is
// rounded once. Each half has the bias of its own: the least exponent makes a factor of 0. What
// rounds to 0 is computed from there, as products below the least normal number take a processor a
// hundred cycles or more, and masked scores of attention are all of that kind.
template <typename O>
F<O> exp(const O& o, const F<O>& argument) {
  const double most = o.kSingle ? 89 : 710, least = o.kSingle ? -176 : -1418;
  const F<O> x = o.let(o.at_least(o.c(least), o.at_most(o.c(most), argument)));
  const Power<O> power = exp_parts(o, x, 2 * bias(o));
  const auto half = o.let_int(o.shr(power.shifted, 1));
  return power.mantissa * power_of_biased(o, half) * power_of_biased(o, o.sub(power.shifted, half));
}

template <typename O>
F<O> exp2(const O& o, const F<O>& argument) {
  const F<O> x = o.let(o.at_least(o.c(-1076.0), o.at_most(o.c(1025.0), argument)));
  const F<O> shifted = o.let(x + o.c(magic(o)));
  const F<O> r = o.let((x - (shifted - o.c(magic(o)))) * o.c(0.693147180559945309417));
  return scaled(o, exp_reduced(o, r), o.let_int(o.sub(o.bits(shifted), magic_bits(o))));
}

template <typename O>
F<O> exp10(const O& o, const F<O>& argument) {
  const F<O> x = o.let(o.at_least(o.c(-325.0), o.at_most(o.c(309.0), argument)));
  const F<O> shifted = o.let(o.fma(x, o.c(3.32192809488736234787), o.c(magic(o))));
  const F<O> n = o.let(shifted - o.c(magic(o)));
  // x - n log10(2) in two parts, then to base e.
  const F<O> rest =
      o.fma(n, o.c(2.8037281277851704e-18), o.fma(n, o.c(-0.30102999566398119802), x));
  const F<O> r = o.let(rest * o.c(2.30258509299404568402));
  return scaled(o, exp_reduced(o, r), o.let_int(o.sub(o.bits(shifted), magic_bits(o))));
}

// numerator / (1 + e^(factor x)) for a negative factor. Where the quotient of 1 would be below the
// least normal number it is 0: -infinity gates what it is multiplied with, and quotients below that
// number take a processor long.
template <typename O>
F<O> logistic(const O& o, const F<O>& argument, double factor, const F<O>& numerator) {
  const F<O> x = o.let(argument);
  const double least = o.kSingle ? 87.3 : 708.3;
  // Where e^(factor x) is infinite, and where it is lost beside 1.
  const double infinite = (o.kSingle ? 128 : 1024) * 0.693147180559945309417;
  const F<O> y = o.let(o.select(o.less(x, o.c(least / factor)), o.c(infinite / factor),
                                o.at_most(o.c(-80.0 / factor), x)));
  return numerator / one_plus_exp(o, y, factor);
}

template <typename O>
F<O> sigmoid(const O& o, const F<O>& x) {
  return logistic(o, x, -1, o.c(1.0));
}

// 1 + erf(scale x) of float32, for a positive scale: e = erfc(scale |x|) or 2 - e, where log2(e) is a
// polynomial in |x|. Up to 4 / scale it has the least largest error in e, 1.6e-8 (Lawson's algorithm).
// Beyond, where e is below 2^-25, it falls to -127 at last / scale, for which the power of two is 0.
template <typename O>
F<O> one_plus_erf(const O& o, const F<O>& argument, double scale) {
  constexpr std::array<double, 9> kLog2{
      -4.535861165337948e-05, 4.455078160738545e-04,  -1.4894424480272979e-03,
      -7.746277391603268e-04, 2.8253678770304963e-02, -1.4848161372166238e-01,
      -9.184163935875703e-01, -1.6279085930368793,    0.0};
  constexpr double last = 7.051166;
  const F<O> x = o.let(argument);
  const F<O> t = o.let(o.at_most(o.c(last / scale), o.abs(x)));
  const std::array<double, 9> scaled = of_multiple(kLog2, scale);
  std::array<double, 8> by_t{};  // log2(e) / t
  std::copy_n(scaled.begin(), by_t.size(), by_t.begin());
  const F<O> quotient = o.let(polynomial(o, by_t, t));
  const F<O> zero = o.c(magic(o) + static_cast<double>(bias(o)));
  const F<O> shifted = o.let(o.fma(quotient, t, zero));
  const F<O> r = o.let(o.fma(quotient, t, zero - shifted));
  const F<O> mantissa = exp_reduced(o, r, 0.693147180559945309417);
  const F<O> e = o.let(mantissa * power_of_biased(o, o.bits(shifted)));
  return o.select(o.less_int(o.bits(x), o.ci(0)), e, o.c(2.0) - e);
}

}  // namespace tenon::tir::math
