// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/elementary.h"

#include <array>
#include <functional>

#include "tenon/tir/elementary_exponentials.h"
#include "tenon/tir/elementary_reduction.h"

namespace tenon::tir {

namespace {

using namespace math;

// ---- logarithms ---------------------------------------------------------------------------------

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for positive finite x; f = m - 1.
template <typename O>
struct Split {
  F<O> f, e;
};

template <typename O>
Split<O> split(const O& o, const F<O>& x) {
  const int mantissa = o.kSingle ? 23 : 52;
  const auto tiny = o.less(x, o.c(o.kSingle ? 0x1p-126 : 0x1p-1022));
  const F<O> up = o.c(o.kSingle ? 0x1p25 : 0x1p54);
  const F<O> normal = o.let(o.select(tiny, x * up, x));
  // Distance from sqrt(1/2) in units of the exponent.
  const auto root = o.ci(o.kSingle ? int64_t{0x3f3504f3} : int64_t{0x3fe6a09e667f3bcd});
  const auto distance = o.let_int(o.sub(o.bits(normal), root));
  const auto exponent = o.let_int(o.shr(distance, mantissa));
  const F<O> m = o.real(o.sub(o.bits(normal), o.shl(exponent, mantissa)));
  const F<O> lowered = o.select(tiny, o.c(o.kSingle ? -25.0 : -54.0), o.c(0.0));
  return {o.let(m - o.c(1.0)), o.let(o.from_int(exponent) + lowered)};
}

// log(1 + f) = f - f * f / 2 + rest; gives the rest.
template <typename O>
F<O> log_rest(const O& o, const F<O>& f) {
  if (o.kSingle) {  // Cephes
    const F<O> p = polynomial<O, 9>(
        o,
        {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
         -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1},
        f);
    return p * (f * f) * f;
  }
  // Source: FreeBSD's e_log.c (Sun Microsystems, 1993).
  const F<O> s = o.let(f / (o.c(2.0) + f));
  const F<O> z = o.let(s * s);
  const F<O> p = polynomial<O, 7>(
      o,
      {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
       2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
       6.666666666666735130e-01},
      z);
  return s * o.fma(o.c(0.5) * f, f, p * z);
}

// Values at 0, infinity, below 0 and of NaN.
template <typename O>
F<O> log_edges(const O& o, const F<O>& x, const F<O>& result) {
  const F<O> large = o.select(o.less(x, o.c(kInfinity)), result, x);  // infinity, NaN
  const F<O> low = o.select(o.equal(x, o.c(0.0)), o.c(-kInfinity), o.c(kNan));
  return o.select(o.either(o.less(o.c(0.0), x), o.isnan(x)), large, low);
}

template <typename O>
F<O> log(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const Split<O> s = split(o, x);
  const F<O> rest = log_rest(o, s.f);
  const F<O> half = o.c(0.5) * s.f * s.f;
  if (o.kSingle) {
    const F<O> low = o.fma(s.e, o.c(-2.12194440e-4), rest) - half;
    return log_edges(o, x, o.fma(s.e, o.c(0.693359375), s.f + low));
  }
  const F<O> low = o.fma(s.e, o.c(1.90821492927058770002e-10), rest) - half;
  return log_edges(o, x, o.fma(s.e, o.c(6.93147180369123816490e-01), s.f + low));
}

template <typename O>
F<O> log2(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const Split<O> s = split(o, x);
  const F<O> natural = s.f - (o.c(0.5) * s.f * s.f - log_rest(o, s.f));
  return log_edges(o, x, o.fma(natural, o.c(1.44269504088896341), s.e));
}

template <typename O>
F<O> log10(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const Split<O> s = split(o, x);
  const F<O> natural = s.f - (o.c(0.5) * s.f * s.f - log_rest(o, s.f));
  const F<O> low =
      o.fma(s.e, o.c(3.69423907715893078616e-13), natural * o.c(4.34294481903251827651e-01));
  return log_edges(o, x, o.fma(s.e, o.c(3.01029995663611771306e-01), low));
}

template <typename O>
F<O> log1p(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> u = o.let(o.c(1.0) + x);
  const F<O> corrected = log(o, u) - ((u - o.c(1.0)) - x) / u;
  const F<O> finite = o.select(o.less(u, o.c(kInfinity)), corrected, u);
  const F<O> result = o.select(o.equal(u, o.c(0.0)), o.c(-kInfinity), finite);
  return o.select(o.equal(u, o.c(1.0)), x, result);
}

// ---- hyperbolic and error functions -------------------------------------------------------------

// e^x - 1 for x >= 0.
template <typename O>
F<O> expm1_positive(const O& o, const F<O>& x) {
  std::array<double, 15> taylor{};
  double factorial = 1;
  for (size_t i = 0; i < 15; ++i) {
    factorial *= static_cast<double>(i + 1);
    taylor[14 - i] = 1 / factorial;
  }
  const F<O> small = polynomial(o, taylor, x) * x;
  return o.select(o.less(x, o.c(0.5)), small, exp(o, x) - o.c(1.0));
}

template <typename O>
F<O> tanh(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> magnitude = o.let(o.abs(x));
  if (o.kSingle) {  // Cephes
    const F<O> z = o.let(x * x);
    const F<O> p = polynomial<O, 5>(o,
                                    {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                                     1.33314422036e-1, -3.33332819422e-1},
                                    z);
    const F<O> small = o.fma(p * z, x, x);
    // From 10 on the result rounds to 1.
    const F<O> held = o.let(o.at_most(o.c(10.0), magnitude));
    const F<O> large = o.c(1.0) - o.c(2.0) / one_plus_exp(o, held, 2);
    return o.select(o.less(magnitude, o.c(0.625)), small, o.copysign(large, x));
  }
  const F<O> t = o.let(expm1_positive(o, o.let(o.at_most(o.c(40.0), magnitude + magnitude))));
  return o.copysign(t / (t + o.c(2.0)), x);
}

template <typename O>
F<O> sinh(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> magnitude = o.let(o.abs(x));
  const F<O> t = o.let(expm1_positive(o, magnitude));
  const F<O> moderate = o.c(0.5) * (t + t / (t + o.c(1.0)));
  const F<O> root = o.let(exp(o, o.let(o.c(0.5) * magnitude)));
  const F<O> large = o.c(0.5) * root * root;
  return o.copysign(o.select(o.less(o.c(22.0), magnitude), large, moderate), x);
}

template <typename O>
F<O> cosh(const O& o, const F<O>& argument) {
  const F<O> magnitude = o.let(o.abs(argument));
  const F<O> root = o.let(exp(o, o.let(o.c(0.5) * magnitude)));
  const F<O> square = o.let(root * root);
  const F<O> large = o.c(0.5) * root * root;
  const F<O> moderate = o.c(0.5) * (square + o.c(1.0) / square);
  return o.select(o.less(o.c(22.0), magnitude), large, moderate);
}

template <typename O>
F<O> asinh(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> magnitude = o.let(o.abs(x));
  const F<O> z = o.let(magnitude * magnitude);
  const F<O> near = log1p(o, magnitude + z / (o.c(1.0) + o.sqrt(o.c(1.0) + z)));
  const F<O> far = log(o, magnitude) + o.c(0.693147180559945309417);
  return o.copysign(o.select(o.less(o.c(1e8), magnitude), far, near), x);
}

template <typename O>
F<O> acosh(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> t = o.let(x - o.c(1.0));
  const F<O> near = log1p(o, t + o.sqrt(t * (t + o.c(2.0))));
  const F<O> far = log(o, x) + o.c(0.693147180559945309417);
  const F<O> result = o.select(o.less(o.c(1e8), x), far, near);
  return o.select(o.less(x, o.c(1.0)), o.c(kNan), result);
}

template <typename O>
F<O> atanh(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> magnitude = o.let(o.abs(x));
  const F<O> ratio = (magnitude + magnitude) / (o.c(1.0) - magnitude);
  const F<O> inside = o.c(0.5) * log1p(o, ratio);
  const F<O> result = o.select(o.equal(magnitude, o.c(1.0)), o.c(kInfinity), inside);
  return o.select(o.less(o.c(1.0), magnitude), o.c(kNan), o.copysign(result, x));
}

// float32. Below 0.93 an odd polynomial, above it 1 - e^polynomial. Source: N. Juffa's erff.
template <typename O>
F<O> erf_single(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  // Beyond 4 the result is 1. What is not a number takes the branch below 0.93.
  const F<O> t = o.let(o.at_most(o.c(4.0), o.abs(x)));
  const F<O> s = o.let(t * t);
  const F<O> small = o.fma(polynomial<O, 6>(o,
                                            {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2,
                                             1.12819925e-1, -3.76125336e-1, 1.28379166e-1},
                                            s),
                           x, x);
  F<O> r = o.fma(o.c(-1.72853470e-5), t, o.c(3.83197126e-4));
  r = o.fma(r, s, o.fma(o.c(-3.88396438e-3), t, o.c(2.42546219e-2)));
  r = o.fma(r, t, o.c(-1.06777877e-1));
  r = o.fma(r, t, o.c(-6.34846687e-1));
  r = o.fma(r, t, o.c(-1.28717512e-1));
  const F<O> tail = o.let(o.fma(r, t, negated(o, t)));
  const F<O> large = o.copysign(o.c(1.0) - exp_normal(o, tail), x);
  return o.select(o.less(o.c(0.927734375), t), large, small);
}

// float64. Source: FreeBSD's s_erf.c (Sun Microsystems, 1993).
template <typename O>
F<O> erf_double(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> t = o.let(o.abs(x));
  const F<O> z = o.let(x * x);
  const F<O> tiny_p = polynomial<O, 5>(
      o,
      {-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
       -3.25042107247001499370e-01, 1.28379167095512558561e-01},
      z);
  const F<O> tiny_q = polynomial<O, 6>(
      o,
      {-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
       6.50222499887672944485e-02, 3.97917223959155352819e-01, 1.0},
      z);
  const F<O> below = o.fma(x, tiny_p / tiny_q, x);
  const F<O> s = o.let(t - o.c(1.0));
  const F<O> mid_p = polynomial<O, 7>(
      o,
      {-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
       3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01,
       -2.36211856075265944077e-03},
      s);
  const F<O> mid_q = polynomial<O, 7>(
      o,
      {1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01,
       7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01, 1.0},
      s);
  const F<O> middle = o.c(8.45062911510467529297e-01) + mid_p / mid_q;
  const F<O> u = o.let(o.c(1.0) / z);
  const F<O> ra = polynomial<O, 8>(
      o,
      {-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02,
       -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01,
       -6.93858572707181764372e-01, -9.86494403484714822705e-03},
      u);
  const F<O> sa = polynomial<O, 9>(
      o,
      {-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02,
       4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02,
       1.37657754143519042600e+02, 1.96512716674392571292e+01, 1.0},
      u);
  const F<O> rb = polynomial<O, 7>(
      o,
      {-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02,
       -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01,
       -9.86494292470009928597e-03},
      u);
  const F<O> sb = polynomial<O, 8>(
      o,
      {-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03,
       3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02,
       3.03380607434824582924e+01, 1.0},
      u);
  const F<O> ratio = o.select(o.less(t, o.c(2.857142857142857)), ra / sa, rb / sb);
  // 1 - e^(-x^2 - 0.5625 + ratio) / x: the tail is small, so x^2 need not be split.
  const F<O> tail = exp(o, o.let(ratio - o.c(0.5625) - z)) / t;
  const F<O> above = o.c(1.0) - tail;
  const F<O> large =
      o.select(o.less(o.c(6.0), t), o.c(1.0), o.select(o.less(t, o.c(1.25)), middle, above));
  const F<O> result = o.select(o.less(t, o.c(0.84375)), below, o.copysign(large, x));
  return o.select(o.isnan(x), x, result);
}

template <typename O>
F<O> erf(const O& o, const F<O>& x) {
  return o.kSingle ? erf_single(o, x) : erf_double(o, x);
}

// ---- trigonometric functions (float64) ----------------------------------------------------------

template <typename O>
struct Turn {
  F<O> sine, cosine;       // of the rest, |rest| <= pi / 4
  typename O::I quadrant;  // in its two low bits
};

// Coefficients of sine and cosine: FreeBSD's k_sin.c, k_cos.c (Sun Microsystems, 1993).
template <typename O>
Turn<O> turn(const O& o, const F<O>& x) {
  const Quarter<O> reduced = quarter_turns(o, x);
  const F<O>& r = reduced.rest;
  const F<O> z = o.let(r * r);
  const F<O> s = polynomial<O, 6>(
      o,
      {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
       -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01},
      z);
  const F<O> c = polynomial<O, 6>(
      o,
      {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
       2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02},
      z);
  return {o.let(o.fma(s * z, r, r)), o.let(o.fma(c * z, z, o.fma(z, o.c(-0.5), o.c(1.0)))),
          reduced.quadrant};
}

template <typename O>
F<O> of_quadrant(const O& o, const Turn<O>& t, int64_t offset) {
  const auto q = o.let_int(o.add(t.quadrant, o.ci(offset)));
  const F<O> value = o.let(o.select(o.same_int(o.land(q, o.ci(1)), o.ci(0)), t.sine, t.cosine));
  return o.select(o.same_int(o.land(q, o.ci(2)), o.ci(0)), value, negated(o, value));
}

template <typename O>
F<O> sin(const O& o, const F<O>& x) {
  return of_quadrant(o, turn(o, o.let(x)), 0);
}
template <typename O>
F<O> cos(const O& o, const F<O>& x) {
  return of_quadrant(o, turn(o, o.let(x)), 1);
}
template <typename O>
F<O> tan(const O& o, const F<O>& x) {
  const Turn<O> t = turn(o, o.let(x));
  return of_quadrant(o, t, 0) / of_quadrant(o, t, 1);
}

// Source: FreeBSD's s_atan.c (Sun Microsystems, 1993). For x >= 0.
template <typename O>
F<O> atan_positive(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const auto pick = [&](const F<O>& a, const F<O>& b, const F<O>& c, const F<O>& d, const F<O>& e) {
    return o.select(
        o.less(x, o.c(0.4375)), a,
        o.select(o.less(x, o.c(0.6875)), b,
                 o.select(o.less(x, o.c(1.1875)), c, o.select(o.less(x, o.c(2.4375)), d, e))));
  };
  const F<O> one = o.c(1.0);
  const F<O> above = pick(x, x + x - one, x - one, x - o.c(1.5), o.c(-1.0));
  const F<O> below = pick(one, o.c(2.0) + x, x + one, o.fma(o.c(1.5), x, one), x);
  const F<O> high = pick(o.c(0.0), o.c(4.63647609000806093515e-01), o.c(7.85398163397448278999e-01),
                         o.c(9.82793723247329054082e-01), o.c(1.57079632679489655800e+00));
  const F<O> low = pick(o.c(0.0), o.c(2.26987774529616870924e-17), o.c(3.06161699786838301793e-17),
                        o.c(1.39033110312309984516e-17), o.c(6.12323399573676603587e-17));
  const F<O> t = o.let(above / below);
  const F<O> z = o.let(t * t);
  const F<O> p = polynomial<O, 11>(
      o,
      {1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
       -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
       9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01,
       -1.99999999998764832476e-01, 3.33333333333329318027e-01},
      z);
  return high + (t - (t * (p * z) - low));
}

template <typename O>
F<O> atan(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  return o.copysign(atan_positive(o, o.abs(x)), x);
}

template <typename O>
F<O> atan2(const O& o, const F<O>& y_argument, const F<O>& x_argument) {
  const F<O> y = o.let(y_argument), x = o.let(x_argument);
  const F<O> ay = o.let(o.abs(y)), ax = o.let(o.abs(x));
  const auto steep = o.less(ax, ay);
  // Of two zeros or two infinities the quotient is 0 or 1.
  const F<O> equal_value = o.select(o.equal(ax, o.c(0.0)), o.c(0.0), o.c(1.0));
  const F<O> divided = o.select(steep, ax, ay) / o.select(steep, ay, ax);
  const F<O> quotient = o.let(o.select(o.equal(ax, ay), equal_value, divided));
  const F<O> angle = o.let(atan_positive(o, quotient));
  const F<O> folded = o.let(o.select(steep, o.c(1.57079632679489655800e+00) - angle, angle));
  // The sign of x counts for zeros too.
  const auto left = o.less(o.copysign(o.c(1.0), x), o.c(0.0));
  const F<O> half_turn =
      o.c(3.14159265358979311600e+00) - (folded - o.c(1.2246467991473531772e-16));
  return o.copysign(o.select(left, half_turn, folded), y);
}

template <typename O>
F<O> asin(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> other = o.sqrt((o.c(1.0) - x) * (o.c(1.0) + x));
  return o.select(o.less(o.c(1.0), o.abs(x)), o.c(kNan), atan2(o, x, other));
}

template <typename O>
F<O> acos(const O& o, const F<O>& argument) {
  const F<O> x = o.let(argument);
  const F<O> other = o.sqrt((o.c(1.0) - x) * (o.c(1.0) + x));
  return o.select(o.less(o.c(1.0), o.abs(x)), o.c(kNan), atan2(o, other, x));
}

// ---- two arguments (float64) --------------------------------------------------------------------

template <typename O>
F<O> pow(const O& o, const F<O>& x_argument, const F<O>& y_argument) {
  const F<O> x = o.let(x_argument), y = o.let(y_argument);
  const F<O> magnitude = o.let(o.abs(x));
  const F<O> product = o.let(exp(o, o.let(y * log(o, magnitude))));
  // A whole x to a whole power is whole: exact while the error of the product is below one half.
  const auto is_whole = [&](const F<O>& v) { return o.equal(o.floor(v), v); };
  const auto exact = o.both(o.both(is_whole(x), is_whole(y)),
                            o.both(o.less(o.c(-0.5), y), o.less(product, o.c(1e12))));
  const F<O> power = o.let(o.select(exact, o.rint(product), product));
  const auto whole = o.equal(o.floor(y), y);
  const F<O> half = o.let(y * o.c(0.5));
  const auto even = o.equal(o.floor(half), half);
  // Negative x: y must be whole; an odd one keeps the sign.
  const F<O> signed_power = o.select(even, power, o.copysign(power, x));
  const auto negative = o.both(o.less(x, o.c(0.0)), o.less(magnitude, o.c(kInfinity)));
  const F<O> any = o.select(whole, signed_power, o.select(negative, o.c(kNan), power));
  const auto is_one = o.either(o.either(o.equal(y, o.c(0.0)), o.equal(x, o.c(1.0))),
                               o.both(o.equal(x, o.c(-1.0)), o.equal(o.abs(y), o.c(kInfinity))));
  return o.select(is_one, o.c(1.0), o.select(o.isnan(x), x, o.select(o.isnan(y), y, any)));
}

template <typename O>
F<O> hypot(const O& o, const F<O>& x, const F<O>& y) {
  const F<O> a = o.let(o.abs(x)), b = o.let(o.abs(y));
  const auto swaps = o.less(a, b);
  const F<O> most = o.let(o.select(swaps, b, a)), least = o.select(swaps, a, b);
  const F<O> ratio = o.let(least / most);
  const F<O> result = most * o.sqrt(o.fma(ratio, ratio, o.c(1.0)));
  const F<O> usual = o.select(o.equal(most, o.c(0.0)), o.c(0.0), result);
  const auto infinite = o.either(o.equal(a, o.c(kInfinity)), o.equal(b, o.c(kInfinity)));
  const F<O> number = o.select(o.either(o.isnan(a), o.isnan(b)), o.c(kNan), usual);
  return o.select(infinite, o.c(kInfinity), number);
}

// ---- the table ----------------------------------------------------------------------------------

// A function of float32 numbers. The fused multiply-adds in it are instructions where the processor
// has them; elsewhere the C library computes the same bits.
using FloatFunction = float (*)(float);

template <float (*kFunction)(const Numbers<float>&, const float&)>
float by_library(float x) {
  return kFunction({}, x);
}
#ifdef __x86_64__
template <float (*kFunction)(const Numbers<float>&, const float&)>
[[gnu::target("fma"), gnu::flatten]] float by_instructions(float x) {
  return kFunction({}, x);
}
template <float (*kFunction)(const Numbers<float>&, const float&)>
FloatFunction on_numbers() {
  return __builtin_cpu_supports("fma") ? by_instructions<kFunction> : by_library<kFunction>;
}
#else
template <float (*kFunction)(const Numbers<float>&, const float&)>
FloatFunction on_numbers() {
  return by_library<kFunction>;
}
#endif

/// An elementary function of one or of two arguments; of neither where it is none.
template <typename O>
struct Row {
  F<O> (*one)(const O&, const F<O>&) = nullptr;
  F<O> (*two)(const O&, const F<O>&, const F<O>&) = nullptr;
};

template <typename O>
Row<O> row_of(IntrinsicId id) {
  switch (id) {
    case IntrinsicId::kExp: return {exp<O>, nullptr};
    case IntrinsicId::kLog: return {log<O>, nullptr};
    case IntrinsicId::kTanh: return {tanh<O>, nullptr};
    case IntrinsicId::kErf: return {erf<O>, nullptr};
    case IntrinsicId::kSigmoid: return {sigmoid<O>, nullptr};
    case IntrinsicId::kExp2: return {exp2<O>, nullptr};
    case IntrinsicId::kExp10: return {exp10<O>, nullptr};
    case IntrinsicId::kLog1p: return {log1p<O>, nullptr};
    case IntrinsicId::kLog2: return {log2<O>, nullptr};
    case IntrinsicId::kLog10: return {log10<O>, nullptr};
    case IntrinsicId::kSin: return {sin<O>, nullptr};
    case IntrinsicId::kCos: return {cos<O>, nullptr};
    case IntrinsicId::kTan: return {tan<O>, nullptr};
    case IntrinsicId::kAsin: return {asin<O>, nullptr};
    case IntrinsicId::kAcos: return {acos<O>, nullptr};
    case IntrinsicId::kAtan: return {atan<O>, nullptr};
    case IntrinsicId::kSinh: return {sinh<O>, nullptr};
    case IntrinsicId::kCosh: return {cosh<O>, nullptr};
    case IntrinsicId::kAsinh: return {asinh<O>, nullptr};
    case IntrinsicId::kAcosh: return {acosh<O>, nullptr};
    case IntrinsicId::kAtanh: return {atanh<O>, nullptr};
    case IntrinsicId::kPow: return {nullptr, pow<O>};
    case IntrinsicId::kAtan2: return {nullptr, atan2<O>};
    case IntrinsicId::kHypot: return {nullptr, hypot<O>};
    case IntrinsicId::kFmod: return {nullptr, fmod<O>};
    // Operations that processors have, and what computes nothing.
    case IntrinsicId::kSqrt:
    case IntrinsicId::kRsqrt:
    case IntrinsicId::kFloor:
    case IntrinsicId::kCeil:
    case IntrinsicId::kTrunc:
    case IntrinsicId::kRound:
    case IntrinsicId::kNearbyint:
    case IntrinsicId::kFabs:
    case IntrinsicId::kAbs:
    case IntrinsicId::kCopysign:
    case IntrinsicId::kLdexp:
    case IntrinsicId::kNextafter:
    case IntrinsicId::kFma:
    case IntrinsicId::kIsnan:
    case IntrinsicId::kIsinf:
    case IntrinsicId::kIsfinite:
    case IntrinsicId::kShiftLeft:
    case IntrinsicId::kShiftRight:
    case IntrinsicId::kBitwiseAnd:
    case IntrinsicId::kBitwiseOr:
    case IntrinsicId::kBitwiseXor:
    case IntrinsicId::kBitwiseNot:
    case IntrinsicId::kPopcount:
    case IntrinsicId::kClz:
    case IntrinsicId::kDot4:
    case IntrinsicId::kQMultiplyShift:
    case IntrinsicId::kMinValue:
    case IntrinsicId::kMaxValue:
    case IntrinsicId::kInfinity:
    case IntrinsicId::kNumThreads:
    case IntrinsicId::kIfThenElse:
    case IntrinsicId::kLikely:
    case IntrinsicId::kCheckIndex:
    case IntrinsicId::kAssume:
    case IntrinsicId::kUndef:
    case IntrinsicId::kRet:
    case IntrinsicId::kReinterpret:
    case IntrinsicId::kAddressOf:
    case IntrinsicId::kTvmAccessPtr:
    case IntrinsicId::kPrefetch:
    case IntrinsicId::kIsnullptr:
    case IntrinsicId::kVectorlow:
    case IntrinsicId::kVectorhigh:
    case IntrinsicId::kVectorcombine:
    case IntrinsicId::kMaskedLoad:
    case IntrinsicId::kMaskedStore:
    case IntrinsicId::kCallExtern:
    case IntrinsicId::kCallPureExtern:
    case IntrinsicId::kCallPacked:
    case IntrinsicId::kCallCpacked:
    case IntrinsicId::kCallLlvmIntrin:
    case IntrinsicId::kCallLlvmPureIntrin:
    case IntrinsicId::kCallIntrin:
    case IntrinsicId::kTvmTuple: return {};
  }
  unreachable("an intrinsic");
}

}  // namespace

bool is_elementary(IntrinsicId id) {
  const auto row = row_of<Numbers<double>>(id);
  return row.one || row.two;
}

// Those of float32 that are computed in their own precision, not in float64: the others give null.
FloatFunction elementary_of_float(IntrinsicId id) {
  using N = Numbers<float>;
  static const std::pair<IntrinsicId, FloatFunction> kFunctions[] = {
      {IntrinsicId::kExp, on_numbers<exp<N>>()},         {IntrinsicId::kLog, on_numbers<log<N>>()},
      {IntrinsicId::kTanh, on_numbers<tanh<N>>()},       {IntrinsicId::kErf, on_numbers<erf<N>>()},
      {IntrinsicId::kSigmoid, on_numbers<sigmoid<N>>()},
  };
  for (const auto& [known, function] : kFunctions)
    if (known == id) return function;
  return nullptr;
}

static double of_doubles(Numbers<double> o, IntrinsicId id, double x, double y) {
  const auto row = row_of<Numbers<double>>(id);
  check(row.one || row.two, "not an elementary function");
  return row.one ? row.one(o, x) : row.two(o, x, y);
}

double elementary(IntrinsicId id, double x, double y) { return of_doubles({}, id, x, y); }

float elementary(IntrinsicId id, float x, float y) {
  if (const FloatFunction function = elementary_of_float(id)) return function(x);
  return static_cast<float>(of_doubles({.narrow = true}, id, x, y));
}

double elementary_floormod(double x, double y) { return floormod(Numbers<double>{}, x, y); }

float elementary_floormod(float x, float y) {
  return static_cast<float>(floormod(Numbers<double>{.narrow = true}, double{x}, double{y}));
}

static Expr with_lets(const std::vector<std::pair<Ref<Var>, Expr>>& lets, Expr result) {
  for (size_t i = lets.size(); i-- > 0;) result = make<Let>(lets[i].first, lets[i].second, result);
  return result;
}

// `own_precision`: float32 is computed in float32. `narrow`: the arguments are float32 numbers.
static Expr of_exprs(const Row<Exprs>& row, const std::vector<Expr>& args,
                     ElementaryOptions options, bool own_precision, bool narrow) {
  check((row.one || row.two) && !args.empty(), "not an elementary function");
  const DType dtype = args[0]->dtype;
  const auto through = [&](DType other, bool narrow) {
    std::vector<Expr> wide;
    for (const Expr& arg : args) wide.push_back(tenon::cast(other.with_lanes(dtype.lanes), arg));
    return tenon::cast(dtype, of_exprs(row, wide, options, own_precision, narrow));
  };
  if (dtype.element() != kFloat32 && dtype.element() != kFloat64) return through(kFloat32, false);
  if (dtype.element() == kFloat32 && !own_precision) return through(kFloat64, true);
  std::vector<std::pair<Ref<Var>, Expr>> lets;
  const Exprs o(dtype, options.fma, narrow, &lets);
  const Expr x = o.let(args[0]);
  const Expr result = row.one ? row.one(o, x) : row.two(o, x, o.let(args.at(1)));
  return with_lets(lets, result);
}

Expr elementary(IntrinsicId id, const std::vector<Expr>& args, ElementaryOptions options) {
  return of_exprs(row_of<Exprs>(id), args, options, elementary_of_float(id) != nullptr, false);
}

Expr elementary_floormod(const Expr& x, const Expr& y, ElementaryOptions options) {
  return of_exprs({nullptr, floormod<Exprs>}, {x, y}, options, false, false);
}

// `steps` of x, with what they give names to around them.
static Expr of_float32(const Expr& x, ElementaryOptions options,
                       const std::function<Expr(const Exprs&, const Expr&)>& steps) {
  check(x->dtype.element() == kFloat32, "a function of float32");
  std::vector<std::pair<Ref<Var>, Expr>> lets;
  const Exprs o(x->dtype, options.fma, false, &lets);
  return with_lets(lets, steps(o, x));
}

Expr one_plus_erf(const Expr& x, double scale, ElementaryOptions options) {
  return of_float32(x, options, [&](const Exprs& o, const Expr& argument) {
    return one_plus_erf<Exprs>(o, argument, scale);
  });
}

float one_plus_erf(float x, double scale) { return one_plus_erf<Numbers<float>>({}, x, scale); }

Expr logistic(const Expr& x, double factor, const Expr& numerator, ElementaryOptions options) {
  return of_float32(x, options, [&](const Exprs& o, const Expr& argument) {
    return logistic<Exprs>(o, argument, factor, numerator);
  });
}

float logistic(float x, double factor, float numerator) {
  return logistic<Numbers<float>>({}, x, factor, numerator);
}

}  // namespace tenon::tir
