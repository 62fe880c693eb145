// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/narrow_types.h"

#include <bit>
#include <cmath>

#include "tenon/support/narrow_float.h"

namespace tenon::tir {

namespace {

// Values with names, so that what is used twice is computed once.
class Steps {
 public:
  Expr let(const Expr& value) {
    if (value.as<Var>() || as_int(value)) return value;
    return lets_.emplace_back(var("n", value->dtype), value).first;
  }
  Expr around(Expr result) const {
    for (size_t i = lets_.size(); i-- > 0;)
      result = make<Let>(lets_[i].first, lets_[i].second, result);
    return result;
  }

 private:
  std::vector<std::pair<Ref<Var>, Expr>> lets_;
};

Expr bits_as(DType dtype, const Expr& x) { return call(IntrinsicId::kReinterpret, {x}, dtype); }
Expr shift_left(const Expr& x, int count) {
  return count == 0 ? x : call(IntrinsicId::kShiftLeft, {x, imm(x->dtype, int64_t{count})});
}
Expr shift_right(const Expr& x, int count) {
  return count == 0 ? x : call(IntrinsicId::kShiftRight, {x, imm(x->dtype, int64_t{count})});
}
Expr bit_and(const Expr& x, int64_t mask) {
  return call(IntrinsicId::kBitwiseAnd, {x, imm(x->dtype, mask)});
}
Expr bit_or(const Expr& x, const Expr& y) { return call(IntrinsicId::kBitwiseOr, {x, y}); }
Expr bit_xor(const Expr& x, const Expr& y) { return call(IntrinsicId::kBitwiseXor, {x, y}); }

constexpr int kFraction = 23, kBias = 127;  // of float32
constexpr int64_t kNanBits = 0x7fc00000, kInfinityBits = 0x7f800000;

// What a minifloat is in float32: always exact.
Expr widened_float(const Expr& x) {
  const DType from = x->dtype, u32 = kUInt32.with_lanes(from.lanes),
              f32 = kFloat32.with_lanes(from.lanes);
  Steps steps;
  const auto number = [&](int64_t value) { return imm(u32, value); };
  const Expr bits = steps.let(cast(u32, bits_as(from.storage(), x)));
  if (from.element() == kFloat8e8m0fnu) {
    const Expr power = select(eq(bits, number(0)), number(0x00400000), shift_left(bits, kFraction));
    return steps.around(bits_as(f32, select(eq(bits, number(255)), number(kNanBits), power)));
  }
  const MinifloatFormat format = minifloat_format(from);
  const int fraction = format.fraction_bits, sign = format.sign();
  const Expr magnitude = steps.let(bit_and(bits, sign - 1));
  const Expr moved = steps.let(shift_left(magnitude, kFraction - fraction));
  // A subnormal number gets an implicit one, which is taken off again: no subnormal operand, which
  // processors are slow with.
  const Expr normal = moved + number(int64_t{kBias - format.bias} << kFraction);
  const Expr with_one = moved + number(int64_t{kBias + 1 - format.bias} << kFraction);
  const Expr subnormal =
      bits_as(u32, bits_as(f32, with_one) - imm(f32, std::ldexp(1.0, 1 - format.bias)));
  Expr result = select(magnitude < number(int64_t{1} << fraction), subnormal, normal);
  const bool has_infinity = format.overflow > format.largest && format.overflow != format.nan;
  if (has_infinity)
    result = select(eq(magnitude, number(format.overflow)), number(kInfinityBits), result);
  const int last_number = has_infinity ? format.overflow : format.largest;
  if (last_number < sign - 1)
    result = select(magnitude > number(last_number), number(kNanBits), result);
  result = bit_or(result, shift_left(bit_and(bits, sign), 31 - (format.exponent_bits + fraction)));
  if (format.unsigned_zero) result = select(eq(bits, number(format.nan)), number(kNanBits), result);
  return steps.around(bits_as(f32, result));
}

// The nearest minifloat of a float32.
Expr narrowed_float(DType to, const Expr& x) {
  const DType u32 = kUInt32.with_lanes(to.lanes), f32 = kFloat32.with_lanes(to.lanes);
  Steps steps;
  const auto number = [&](int64_t value) { return imm(u32, value); };
  const auto finish = [&](const Expr& result) {
    return steps.around(bits_as(to, cast(to.storage(), result)));
  };
  const Expr all = steps.let(bits_as(u32, x));
  if (to.element() == kFloat8e8m0fnu) {
    // Half a unit is added to normal numbers, for ties to go up; below them it is a little less.
    const Expr half =
        select(all < number(int64_t{1} << kFraction), number(0x3fffff), number(0x400000));
    const Expr power = shift_right(all + half, kFraction);
    // Zero, what has a sign, infinity, NaN: one comparison without a sign.
    const Expr is_number = (all - number(1)) < number(kInfinityBits - 1);
    return finish(select(is_number, power, number(255)));
  }
  const MinifloatFormat format = minifloat_format(to);
  const int cut = kFraction - format.fraction_bits;
  const Expr magnitude = steps.let(bit_and(all, 0x7fffffff));
  const Expr sign =
      bit_and(shift_right(all, 31 - (format.exponent_bits + format.fraction_bits)), format.sign());
  // To nearest, ties to even, in integers; a subnormal result by an addition whose last place is
  // that of the result.
  const Expr odd = bit_and(shift_right(magnitude, cut), 1);
  const int64_t rebias = int64_t{kBias - format.bias} << kFraction;
  const Expr normal =
      shift_right(magnitude - number(rebias) + number((int64_t{1} << (cut - 1)) - 1) + odd, cut);
  const double magic = std::ldexp(1.0, kFraction + 1 - format.bias - format.fraction_bits);
  const auto magic_bits = std::bit_cast<uint32_t>(static_cast<float>(magic));
  const Expr subnormal =
      bits_as(u32, bits_as(f32, magnitude) + imm(f32, magic)) - number(int64_t{magic_bits});
  const Expr least_normal = number(rebias + (int64_t{1} << kFraction));
  const Expr finite = steps.let(select(magnitude < least_normal, subnormal, normal));
  Expr beyond = number(format.overflow);
  if (format.overflow != format.nan)
    beyond = select(magnitude > number(kInfinityBits), number(format.nan), beyond);
  const Expr is_finite = finite <= number(format.largest);
  if (!format.unsigned_zero) return finish(bit_xor(select(is_finite, finite, beyond), sign));
  const Expr has_sign = select(eq(finite, number(0)), number(0), bit_xor(finite, sign));
  return finish(select(is_finite, has_sign, beyond));
}

// The lowest bits, as the storage of an integer of that many bits.
Expr wrapped(DType to, const Expr& x) {
  if (to.is_uint()) return bit_and(x, (int64_t{1} << to.bits) - 1);
  return shift_right(shift_left(x, 8 - to.bits), 8 - to.bits);
}

/// The type that values of a narrow type are computed with in.
DType compute_dtype(DType dtype) {
  return dtype.is_minifloat() ? kFloat32.with_lanes(dtype.lanes) : dtype.storage();
}

Expr widened(const Expr& x) {
  if (x->dtype.is_minifloat()) return widened_float(x);
  return x->dtype.is_narrow() ? wrapped(x->dtype, bits_as(x->dtype.storage(), x)) : x;
}

// From the type that was computed in, or, of integers, any other.
Expr narrowed(DType to, const Expr& x) {
  if (to.is_minifloat()) return narrowed_float(to, x);
  if (!to.is_narrow()) return x;
  if (!x->dtype.is_float()) return bits_as(to, wrapped(to, cast(to.storage(), x)));
  const auto limit = [&](int bits, int64_t offset) {
    return imm(to.storage(), (int64_t{1} << bits) + offset);
  };
  const Expr whole = cast(to.storage(), x);  // saturates, as this must
  if (to.is_uint()) return bits_as(to, min(whole, limit(to.bits, -1)));
  return bits_as(to, min(max(whole, imm(to.storage(), -(int64_t{1} << (to.bits - 1)))),
                         limit(to.bits - 1, -1)));
}

// Rounds towards zero to a float32, but for the last bit, which is set where anything was cut off:
// then the next rounding is as from the number itself.
Expr to_odd(const Expr& x) {
  const DType u64 = kUInt64.with_lanes(x->dtype.lanes);
  constexpr int64_t kCut = (int64_t{1} << 29) - 1;
  Steps steps;
  const Expr bits = steps.let(bits_as(u64, x));
  const Expr last = select(eq(bit_and(bits, kCut), imm(u64, int64_t{0})), imm(u64, int64_t{0}),
                           imm(u64, kCut + 1));
  const Expr kept = bits_as(x->dtype, bit_or(bit_and(bits, ~kCut), last));
  return steps.around(cast(kFloat32.with_lanes(x->dtype.lanes), kept));
}

std::optional<Expr> without(const Cast& node) {
  const DType from = node.value->dtype, to = node.dtype;
  if (from.element() == kFloat64 && to.element() == kFloat16) return cast(to, to_odd(node.value));
  if (!from.is_narrow() && !to.is_narrow()) return std::nullopt;
  Expr value = widened(node.value);
  if (to.is_minifloat()) value = cast(compute_dtype(to), value);
  return to.is_narrow() ? narrowed(to, value) : cast(to, value);
}

// The set or leading bits of an integer of less than 8 bits are those of its own bits.
Expr counted_bits(const Call& node) {
  const Expr x = node.arg(0);
  const DType u8 = kUInt8.with_lanes(x->dtype.lanes);
  const Expr own = bit_and(bits_as(u8, x), (int64_t{1} << x->dtype.bits) - 1);
  const Expr count = make<Call>(node.op, std::vector<NodePtr>{own}, kVoid, node.origin);
  const bool leading = node.is(IntrinsicId::kClz);
  return narrowed(node.dtype, leading ? count - int64_t{8 - x->dtype.bits} : count);
}

std::optional<Expr> without(const Call& node) {
  using enum IntrinsicId;
  // The others move their operands, or are about memory.
  const bool computes = node.op && (node.op->id <= kQMultiplyShift || node.is(kCheckIndex));
  if (!computes) return std::nullopt;
  bool narrow = node.dtype.is_narrow();
  for (size_t i = 0; i < node.args.size(); ++i) narrow |= node.arg(i)->dtype.is_narrow();
  if (!narrow) return std::nullopt;
  if (node.is(kClz) || node.is(kPopcount)) return counted_bits(node);
  std::vector<NodePtr> args;
  for (size_t i = 0; i < node.args.size(); ++i) args.push_back(widened(node.arg(i)));
  const DType result = node.result.is_narrow() ? compute_dtype(node.result) : node.result;
  const Expr wide = make<Call>(node.op, std::move(args), result, node.origin);
  return node.dtype.is_narrow() ? narrowed(node.dtype, wide) : wide;
}

}  // namespace

std::optional<Expr> without_narrow_arithmetic(const Expr& expr) {
  if (const auto* node = expr.as<Cast>()) return without(*node);
  if (const auto* node = expr.as<Call>()) return without(*node);
  const auto* node = expr.as<Binary>();
  if (!node || !node->lhs->dtype.is_narrow()) return std::nullopt;
  const Expr wide = make<Binary>(node->op, widened(node->lhs), widened(node->rhs), node->origin);
  return is_comparison(node->op) ? wide : narrowed(node->dtype, wide);
}

}  // namespace tenon::tir
