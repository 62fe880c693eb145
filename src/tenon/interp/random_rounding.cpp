// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/random_rounding.h"

#include <cmath>

#include "tenon/interp/scalar.h"
#include "tenon/support/narrow_float.h"
#include "tenon/tir/elementary.h"

namespace tenon::interp {

// The distance to the next value, at most, as a share of the value.
static double last_place(DType dtype) {
  if (dtype == kFloat64) return 0x1p-52;
  if (dtype == kFloat32) return 0x1p-23;
  if (dtype == kFloat16) return 0x1p-10;
  return dtype == kBFloat16 ? 0x1p-7 : std::ldexp(1.0, -minifloat_format(dtype).fraction_bits);
}

double RandomRounding::move(DType dtype, double value, double units) {
  if (value == 0 || !std::isfinite(value)) return value;
  double share = static_cast<double>(random_.bits() >> 11) * 0x1p-52 - 1;  // in [-1, 1)
  if (std::fabs(value) == 1) share = -std::fabs(share);  // the limit of tanh, erf and others
  const double moved = round_float(dtype, value * (1 + units * last_place(dtype) * share));
  return std::isfinite(moved) ? moved : value;
}

Slot RandomRounding::binary(BinaryOp op, DType dtype, Slot a, Slot b, Slot result) {
  if (!dtype.is_float()) return result;
  const long double x = a.f, y = b.f;
  long double exact = 0;
  switch (op) {
    case BinaryOp::kAdd: exact = x + y; break;
    case BinaryOp::kSub: exact = x - y; break;
    case BinaryOp::kMul: exact = x * y; break;
    case BinaryOp::kDiv: exact = x / y; break;
    default: return result;
  }
  if (exact == static_cast<long double>(result.f)) return result;
  return {.f = move(dtype, result.f, 1)};
}

Slot RandomRounding::cast(DType to, DType from, Slot value, Slot result) {
  if (!to.is_float()) return result;
  const double exact = from.is_float() ? value.f : static_cast<double>(value.i);
  if (exact == result.f) return result;
  return {.f = move(to, result.f, 1)};
}

Slot RandomRounding::intrinsic(IntrinsicId id, DType dtype, Slot a, Slot b, Slot c, Slot result) {
  if (!dtype.is_float()) return result;
  if (id == IntrinsicId::kFma) {
    const long double exact = static_cast<long double>(a.f) * b.f + c.f;
    return exact == static_cast<long double>(result.f) ? result
                                                       : Slot{.f = move(dtype, result.f, 1)};
  }
  if (id == IntrinsicId::kSqrt) {
    const long double root = result.f;
    return root * root == static_cast<long double>(a.f) ? result
                                                        : Slot{.f = move(dtype, result.f, 1)};
  }
  const bool is_rounded =
      id == IntrinsicId::kRsqrt || (tir::is_elementary(id) && id != IntrinsicId::kFmod);
  // exp(0), log(1) and the like are exact.
  if (!is_rounded || a.f == 0 || a.f == 1) return result;
  return {.f = move(dtype, result.f, 2)};
}

}  // namespace tenon::interp
