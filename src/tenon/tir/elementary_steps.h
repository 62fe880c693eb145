// SPDX-License-Identifier: Apache-2.0
// The two interpretations of the elementary functions' steps: `Numbers` computes, `Exprs` builds
// TensorIR. Used by elementary.cpp alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tenon/ir/expr.h"

namespace tenon::tir::math {

// ---- numbers, and expressions -------------------------------------------------------------------

// T is float or double.
template <typename T>
struct Numbers {
  using F = T;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using U = std::make_unsigned_t<I>;
  using M = bool;
  static constexpr bool kSingle = sizeof(T) == 4;
  static constexpr bool has_fma = true;
  bool narrow = false;  // float64 arithmetic on what are float32 numbers

  F c(double value) const { return static_cast<F>(value); }
  F let(F x) const { return x; }
  I let_int(I x) const { return x; }
  F fma(F a, F b, F x) const { return std::fma(a, b, x); }
  F select(M m, F a, F b) const { return m ? a : b; }
  I pick(M m, I a, I b) const { return m ? a : b; }
  // The constant goes first: what is not a number passes through.
  F at_most(F limit, F x) const { return limit < x ? limit : x; }
  F at_least(F limit, F x) const { return limit > x ? limit : x; }
  F abs(F x) const { return std::fabs(x); }
  F sqrt(F x) const { return std::sqrt(x); }
  F rint(F x) const { return std::nearbyint(x); }
  F floor(F x) const { return std::floor(x); }
  F copysign(F x, F s) const { return std::copysign(x, s); }
  M less(F a, F b) const { return a < b; }
  M equal(F a, F b) const { return a == b; }
  M same_int(I a, I b) const { return a == b; }
  M less_int(I a, I b) const { return a < b; }
  M both(M a, M b) const { return a && b; }
  M either(M a, M b) const { return a || b; }
  M isnan(F x) const { return x != x; }
  I bits(F x) const { return std::bit_cast<I>(x); }
  F real(I x) const { return std::bit_cast<F>(x); }
  I ci(int64_t value) const { return static_cast<I>(value); }
  I add(I a, I b) const { return static_cast<I>(static_cast<U>(a) + static_cast<U>(b)); }
  I sub(I a, I b) const { return static_cast<I>(static_cast<U>(a) - static_cast<U>(b)); }
  I mul(I a, I b) const { return static_cast<I>(static_cast<U>(a) * static_cast<U>(b)); }
  I held(I least, I x, I most) const { return std::min(std::max(x, least), most); }
  I shl(I a, I n) const { return static_cast<I>(static_cast<U>(a) << n); }
  I shr(I a, I n) const { return a >> n; }
  I land(I a, I b) const { return a & b; }
  I lor(I a, I b) const { return a | b; }
  F from_int(I a) const { return static_cast<F>(a); }
};

struct Exprs {
  using F = Expr;
  using I = Expr;
  using M = Expr;
  DType dtype;
  bool has_fma;
  bool narrow;
  bool kSingle;
  std::vector<std::pair<Ref<Var>, Expr>>* lets;

  Exprs(DType dtype, bool has_fma, bool narrow, std::vector<std::pair<Ref<Var>, Expr>>* lets)
      : dtype(dtype), has_fma(has_fma), narrow(narrow), kSingle(dtype.bits == 32), lets(lets) {}

  DType int_dtype() const { return (kSingle ? kInt32 : kInt64).with_lanes(dtype.lanes); }
  Expr c(double value) const { return imm(dtype, value); }
  Expr let(const Expr& x) const {
    if (x.as<Var>() || x.as<FloatImm>() || x.as<IntImm>()) return x;
    const auto v = make<Var>("t" + std::to_string(lets->size()), x->dtype);
    lets->emplace_back(v, x);
    return v;
  }
  Expr let_int(const Expr& x) const { return let(x); }
  Expr fma(const Expr& a, const Expr& b, const Expr& x) const {
    return has_fma ? call(IntrinsicId::kFma, {a, b, x}) : a * b + x;
  }
  Expr select(const Expr& m, const Expr& a, const Expr& b) const { return make<Select>(m, a, b); }
  Expr pick(const Expr& m, const Expr& a, const Expr& b) const { return select(m, a, b); }
  Expr at_most(const Expr& limit, const Expr& x) const { return min(limit, x); }
  Expr at_least(const Expr& limit, const Expr& x) const { return max(limit, x); }
  Expr abs(const Expr& x) const { return call(IntrinsicId::kFabs, {x}); }
  Expr sqrt(const Expr& x) const { return call(IntrinsicId::kSqrt, {x}); }
  Expr rint(const Expr& x) const { return call(IntrinsicId::kNearbyint, {x}); }
  Expr floor(const Expr& x) const { return call(IntrinsicId::kFloor, {x}); }
  Expr copysign(const Expr& x, const Expr& s) const { return call(IntrinsicId::kCopysign, {x, s}); }
  Expr less(const Expr& a, const Expr& b) const { return a < b; }
  Expr equal(const Expr& a, const Expr& b) const { return eq(a, b); }
  Expr same_int(const Expr& a, const Expr& b) const { return eq(a, b); }
  Expr less_int(const Expr& a, const Expr& b) const { return a < b; }
  Expr both(const Expr& a, const Expr& b) const { return logical_and(a, b); }
  Expr either(const Expr& a, const Expr& b) const { return logical_or(a, b); }
  Expr isnan(const Expr& x) const { return call(IntrinsicId::kIsnan, {x}); }
  Expr bits(const Expr& x) const { return call(IntrinsicId::kReinterpret, {x}, int_dtype()); }
  Expr real(const Expr& x) const { return call(IntrinsicId::kReinterpret, {x}, dtype); }
  Expr ci(int64_t value) const { return imm(int_dtype(), value); }
  Expr add(const Expr& a, const Expr& b) const { return a + b; }
  Expr sub(const Expr& a, const Expr& b) const { return a - b; }
  Expr mul(const Expr& a, const Expr& b) const { return a * b; }
  Expr held(const Expr& least, const Expr& x, const Expr& most) const {
    return min(max(x, least), most);
  }
  Expr shl(const Expr& a, int n) const { return shl(a, ci(n)); }
  Expr shl(const Expr& a, const Expr& n) const { return call(IntrinsicId::kShiftLeft, {a, n}); }
  Expr shr(const Expr& a, int n) const { return shr(a, ci(n)); }
  Expr shr(const Expr& a, const Expr& n) const { return call(IntrinsicId::kShiftRight, {a, n}); }
  Expr land(const Expr& a, const Expr& b) const { return call(IntrinsicId::kBitwiseAnd, {a, b}); }
  Expr lor(const Expr& a, const Expr& b) const { return call(IntrinsicId::kBitwiseOr, {a, b}); }
  Expr from_int(const Expr& a) const { return make<Cast>(dtype, a); }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// c[0] x^(n-1) + ... + c[n-1]
template <typename O, size_t N>
typename O::F polynomial(const O& o, const std::array<double, N>& coefficients,
                         const typename O::F& x) {
  typename O::F sum = o.c(coefficients[0]);
  for (size_t i = 1; i < N; ++i) sum = o.fma(sum, x, o.c(coefficients[i]));
  return sum;
}

template <typename O>
using F = typename O::F;

template <typename O>
F<O> negated(const O& o, const F<O>& x) {
  return o.c(-0.0) - x;
}

// ---- powers of two ------------------------------------------------------------------------------

// x + 1.5 * 2^(mantissa bits) holds the integer nearest to x in its low bits.
template <typename O>
double magic(const O& o) {
  return o.kSingle ? 0x1.8p23 : 0x1.8p52;
}
template <typename O>
typename O::I magic_bits(const O& o) {
  return o.ci(o.kSingle ? int64_t{0x4B400000} : int64_t{0x4338000000000000});
}

// 2^n, a normal number.
template <typename O>
F<O> power_of_two(const O& o, const typename O::I& n) {
  return o.real(o.shl(o.add(n, o.ci(o.kSingle ? 127 : 1023)), o.kSingle ? 23 : 52));
}

// y * 2^n, rounded once where the result is denormal: n is split in two, so that each factor is a
// normal number.
template <typename O>
F<O> scaled(const O& o, const F<O>& y, const typename O::I& n) {
  const auto half = o.let_int(o.shr(n, 1));
  return y * power_of_two(o, half) * power_of_two(o, o.sub(n, half));
}

}  // namespace tenon::tir::math
