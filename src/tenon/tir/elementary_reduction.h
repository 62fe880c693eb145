// SPDX-License-Identifier: Apache-2.0
// Range reduction of arguments of any size without error: remainders, and quarter turns. Used by
// elementary.cpp alone; all of it works in float64.
#pragma once

#include <array>

#include "tenon/tir/elementary_steps.h"

namespace tenon::tir::math {

// ---- remainders ---------------------------------------------------------------------------------

// x = mantissa * 2^exponent with the mantissa in [1, 2), for positive finite x; 0 has the least
// exponent of all.
template <typename O>
struct Parts {
  F<O> mantissa;
  typename O::I exponent;
};

template <typename O>
Parts<O> parts(const O& o, const F<O>& x) {
  const auto tiny = o.less(x, o.c(0x1p-1022));
  const auto bits = o.let_int(o.bits(o.select(tiny, x * o.c(0x1p54), x)));
  const auto biased = o.sub(o.shr(bits, 52), o.pick(tiny, o.ci(54), o.ci(0)));
  const auto fraction = o.land(bits, o.ci((int64_t{1} << 52) - 1));
  return {o.let(o.real(o.lor(fraction, o.ci(int64_t{1023} << 52)))),
          o.let_int(o.sub(biased, o.ci(1023)))};
}

// x - q * m for an integer q near x / m, exactly. The result, a multiple of the last place of x and
// m that is at most about m, is a number; so are the partial results where no fused
// multiply-add computes them: q has few bits then.
template <typename O>
F<O> less_multiple(const O& o, const F<O>& x, const F<O>& q, const F<O>& m) {
  if (o.narrow) return x - q * m;  // 24 and 29 bits
  if (o.has_fma) return o.fma(negated(o, q), m, x);
  // 25 bits times 26 and 27.
  const F<O> high = o.real(o.land(o.bits(m), o.ci(-(int64_t{1} << 27))));
  return x - q * high - q * (m - high);
}

// The remainder of x / y with the sign of x, exactly: long division of the mantissas, some bits of
// the quotient at a time, rounded to the nearest so that nothing has to be corrected in between.
template <typename O>
F<O> fmod(const O& o, const F<O>& x_argument, const F<O>& y_argument) {
  const F<O> x = o.let(x_argument), y = o.let(y_argument);
  const F<O> ax = o.let(o.abs(x)), ay = o.let(o.abs(y));
  const Parts<O> a = parts(o, ax), b = parts(o, ay);
  const auto gap = o.let_int(o.sub(a.exponent, b.exponent));
  const F<O> inverse = o.let(o.c(1.0) / b.mantissa);
  // The exponents of float32 numbers differ by at most 276, those of float64 numbers by 2097.
  const int64_t most = o.narrow ? 276 : 2097;
  const int64_t bits = o.narrow ? 28 : o.has_fma ? 48 : 24;
  F<O> rest = a.mantissa;
  for (int64_t done = 0; done <= most; done += bits) {
    const auto more = o.held(o.ci(0), o.sub(gap, o.ci(done)), o.ci(bits));
    const F<O> next = o.let(rest * o.real(o.shl(o.add(more, o.ci(1023)), 52)));
    rest = less_multiple(o, next, o.rint(next * inverse), b.mantissa);
  }
  rest = o.let(rest);
  const F<O> positive = o.let(o.select(o.less(rest, o.c(0.0)), rest + b.mantissa, rest));
  const F<O> value = o.select(o.less_int(gap, o.ci(0)), ax, scaled(o, positive, b.exponent));
  const auto proper = o.both(o.less(ax, o.c(kInfinity)), o.less(o.c(0.0), ay));
  return o.select(proper, o.copysign(value, x), o.c(kNan));
}

// The remainder that has the sign of y, as Python's `%`.
template <typename O>
F<O> floormod(const O& o, const F<O>& x, const F<O>& y_argument) {
  const F<O> y = o.let(y_argument);
  const F<O> rest = o.let(fmod(o, x, y));
  const auto down = o.both(o.less(rest, o.c(0.0)), o.less(o.c(0.0), y));
  const auto up = o.both(o.less(o.c(0.0), rest), o.less(y, o.c(0.0)));
  return o.select(o.either(down, up), rest + y, rest);
}

// ---- quarter turns ------------------------------------------------------------------------------

// x = (quadrant + 4 n) * pi / 2 + rest with |rest| <= pi / 4; the quadrant is in its two low bits.
template <typename O>
struct Quarter {
  F<O> rest;
  typename O::I quadrant;
};

// Words of a table from place `at` (below 2^bits) on; all selections, for there is no memory here.
template <typename O, size_t N>
std::vector<typename O::I> words_at(const O& o, const std::array<int64_t, N>& table,
                                    const typename O::I& at, int bits, size_t count) {
  std::vector<typename O::I> words;
  for (const int64_t word : table) words.push_back(o.ci(word));
  words.resize((size_t{1} << bits) + count - 1, o.ci(0));
  for (int bit = bits - 1; bit >= 0; --bit) {
    const size_t step = size_t{1} << bit;
    const auto stays = o.same_int(o.land(at, o.ci(int64_t{1} << bit)), o.ci(0));
    for (size_t i = 0; i + step < words.size(); ++i)
      words[i] = o.pick(stays, words[i], words[i + step]);
    words.resize(words.size() - step);
  }
  for (auto& word : words) word = o.let_int(word);
  return words;
}

// For float32 numbers from 2^20 on: the digits of 1 / (2 pi) that can make less than a turn, times
// the 24 bits of x, as a fraction of a turn in 64 bits. (Payne and Hanek, 1983.)
template <typename O>
Quarter<O> huge_single(const O& o, const F<O>& x) {
  static constexpr std::array<int64_t, 8> kDigits = {
      // 32 bits each
      0, 0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA};
  const auto bits = o.let_int(o.bits(x));
  const auto place = o.let_int(o.sub(o.shr(bits, 52), o.ci(1023 + 23 - 32)));  // of its last bit
  const auto fraction = o.land(o.shr(bits, 29), o.ci((1 << 23) - 1));
  const auto m = o.let_int(o.lor(fraction, o.ci(1 << 23)));
  const auto w = words_at(o, kDigits, o.let_int(o.shr(place, 5)), 3, 4);
  const auto shift = o.let_int(o.land(place, o.ci(31)));
  const auto high =
      o.lor(o.shl(o.lor(o.shl(w[0], 32), w[1]), shift), o.shr(w[2], o.sub(o.ci(32), shift)));
  const auto low = o.shr(o.shl(o.lor(o.shl(w[2], 32), w[3]), shift), 32);
  const auto carry = o.shr(o.mul(m, o.land(low, o.ci(0xFFFFFFFF))), 32);
  const auto turns = o.let_int(o.add(o.mul(m, high), carry));
  const auto quadrant = o.let_int(o.shr(o.add(turns, o.ci(int64_t{1} << 61)), 62));
  const auto rest = o.sub(turns, o.shl(quadrant, 62));
  return {o.let(o.from_int(rest) * o.c(0x1.921fb54442d18p-62)), quadrant};
}

// The same for float64 numbers: seven words of 28 bits times the 53 bits of x.
template <typename O>
Quarter<O> huge_double(const O& o, const F<O>& x) {
  static constexpr std::array<int64_t, 44> kDigits = {
      // of 1 / (8 pi)
      0,         0,         0x0A2F983, 0x6E4E441, 0x529FC27, 0x57D1F53, 0x4DDC0DB, 0x6295993,
      0xC439041, 0xFE5163A, 0xBDEBBC5, 0x61B7246, 0xE3A424D, 0xD2E0064, 0x92EEA09, 0xD1921CF,
      0xE1DEB1C, 0xB129A73, 0xEE88235, 0xF52EBB4, 0x484E99C, 0x7026B45, 0xF7E4139, 0x91D6398,
      0x35339F4, 0x9C845F8, 0xBBDF928, 0x3B1FF89, 0x7FFDE05, 0x980FEF2, 0xF118B5A, 0x0A6D1F6,
      0xD367ECF, 0x27CB09B, 0x74F463F, 0x669E5FE, 0xA2D7527, 0xBAC7EBE, 0x5F17B3D, 0x0739F78,
      0xA5292EA, 0x6BFB5FB, 0x11F8D5D, 0x0856033};
  constexpr int kBits = 28;
  const auto mask = o.ci((int64_t{1} << kBits) - 1);
  const auto bits = o.let_int(o.bits(x));
  const auto exponent = o.sub(o.shr(bits, 52), o.ci(1023 + 50 - 2 * kBits));
  const auto place = o.let_int(o.held(o.ci(0), exponent, o.ci(1030)));
  const auto word = o.let_int(o.shr(o.mul(place, o.ci(2341)), 16));  // place / 28, up to 1030
  const auto shift = o.let_int(o.sub(place, o.mul(word, o.ci(kBits))));
  const auto back = o.let_int(o.sub(o.ci(kBits), shift));
  const auto w = words_at(o, kDigits, word, 6, 8);
  std::array<typename O::I, 7> f;
  for (size_t i = 0; i < 7; ++i)
    f[i] = o.let_int(o.land(o.lor(o.shl(w[i], shift), o.shr(w[i + 1], back)), mask));
  const auto fraction = o.land(bits, o.ci((int64_t{1} << 52) - 1));
  const auto m = o.let_int(o.lor(fraction, o.ci(int64_t{1} << 52)));
  const auto m0 = o.let_int(o.land(m, mask)), m1 = o.let_int(o.shr(m, kBits));
  // Columns of the product from the last to the first; what is left of them is whole turns.
  std::array<typename O::I, 6> t;
  typename O::I carry = o.ci(0);
  for (size_t i = 6; i-- > 0;) {
    const auto sum = o.let_int(o.add(o.add(o.mul(f[i], m0), o.mul(f[i + 1], m1)), carry));
    t[i] = o.let_int(o.land(sum, mask));
    carry = o.shr(sum, kBits);
  }
  const auto quadrant = o.let_int(o.shr(o.add(t[0], o.ci(int64_t{1} << 25)), 26));
  const auto signed_high = o.sub(t[0], o.shl(quadrant, 26));
  const F<O> high = o.let(o.from_int(o.add(o.shl(signed_high, kBits), t[1])) * o.c(0x1p-54));
  const F<O> low = o.fma(o.from_int(t[4]), o.c(0x1p-138),
                         o.from_int(o.add(o.shl(t[2], kBits), t[3])) * o.c(0x1p-110));
  const F<O> tail = o.fma(high, o.c(0x1.1a62633145c07p-54), low * o.c(0x1.921fb54442d18p+0));
  return {o.let(o.fma(high, o.c(0x1.921fb54442d18p+0), tail)), quadrant};
}

// x - n * pi / 2, with pi / 2 in three parts.
template <typename O>
F<O> small_rest(const O& o, const F<O>& x, const F<O>& n) {
  if (o.has_fma) {
    F<O> r = o.fma(n, o.c(-1.5707963267948966192313), x);
    r = o.fma(n, o.c(-6.123233995736766e-17), r);
    return o.fma(n, o.c(1.4973849048591833e-33), r);
  }
  // Parts of 33 bits, so that the products with n, which has 20, are exact; what the sum of the
  // first two loses is added to the third. (FreeBSD's e_rem_pio2.c; Sun Microsystems, 1993.)
  const F<O> first = o.let(x - n * o.c(1.57079632673412561417e+00));
  const F<O> second = o.let(n * o.c(6.07710050630396597660e-11));
  const F<O> sum = o.let(first - second);
  return sum + (first - sum - second - n * o.c(2.02226624879595063154e-21));
}

template <typename O>
Quarter<O> quarter_turns(const O& o, const F<O>& argument) {
  const F<O> size = o.let(o.abs(argument));
  const auto is_small = o.less(size, o.c(o.has_fma ? 0x1p50 : 0x1p20));
  const F<O> x = o.let(o.select(is_small, argument, o.c(0.0)));
  const F<O> shifted = o.let(o.fma(x, o.c(6.36619772367581382433e-01), o.c(magic(o))));
  const F<O> n = o.let(shifted - o.c(magic(o)));
  const F<O> r = small_rest(o, x, n);
  const auto count = o.sub(o.bits(shifted), magic_bits(o));
  const Quarter<O> huge = o.narrow ? huge_single(o, size) : huge_double(o, size);
  // Of infinities and NaN nothing is left.
  const F<O> known = o.select(o.less(size, o.c(kInfinity)), huge.rest, o.c(kNan));
  const auto below = o.less(argument, o.c(0.0));
  const F<O> rest = o.select(below, negated(o, known), known);
  const auto quadrant = o.pick(below, o.sub(o.ci(0), huge.quadrant), huge.quadrant);
  return {o.let(o.select(is_small, r, rest)), o.let_int(o.pick(is_small, count, quadrant))};
}

}  // namespace tenon::tir::math
