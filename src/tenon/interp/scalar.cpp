// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "tenon/support/narrow_float.h"
#include "tenon/tir/elementary.h"

namespace tenon::interp {

// ---- narrow floats ------------------------------------------------------------------------------

double round_float(DType dtype, double value) {
  if (dtype.bits < 32) return narrow_float_value(dtype, narrow_float_bits(dtype, value));
  return dtype == kFloat32 ? static_cast<float>(value) : value;
}

int64_t wrap_int(DType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << dtype.bits) - 1;
  const uint64_t low = static_cast<uint64_t>(value) & mask;
  if (dtype.is_uint() || !(low >> (dtype.bits - 1))) return static_cast<int64_t>(low);
  return static_cast<int64_t>(low | ~mask);
}

// ---- operations ---------------------------------------------------------------------------------

static Slot float_binary(BinaryOp op, DType dtype, double a, double b) {
  // Sums, products and quotients of float32 values computed in double and rounded are those of
  // float32 arithmetic.
  const auto value = [&](double v) { return Slot{.f = round_float(dtype, v)}; };
  const auto truth = [](bool v) { return Slot{.i = v}; };
  switch (op) {
    case BinaryOp::kAdd: return value(a + b);
    case BinaryOp::kSub: return value(a - b);
    case BinaryOp::kMul: return value(a * b);
    case BinaryOp::kDiv: return value(a / b);
    case BinaryOp::kMod: return value(std::fmod(a, b));
    case BinaryOp::kFloorDiv: return value(std::floor(round_float(dtype, a / b)));
    case BinaryOp::kFloorMod: {
      const double r = std::fmod(a, b);
      return value(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    case BinaryOp::kMin: return Slot{.f = std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a};
    case BinaryOp::kMax: return Slot{.f = std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a};
    case BinaryOp::kEQ: return truth(a == b);
    case BinaryOp::kNE: return truth(a != b);
    case BinaryOp::kLT: return truth(a < b);
    case BinaryOp::kLE: return truth(a <= b);
    case BinaryOp::kGT: return truth(a > b);
    case BinaryOp::kGE: return truth(a >= b);
    case BinaryOp::kAnd:
    case BinaryOp::kOr: break;
  }
  unreachable("a logical operation on floats");
}

Slot apply_binary(BinaryOp op, DType dtype, Slot a, Slot b, const Origin& origin) {
  if (dtype.is_float()) return float_binary(op, dtype, a.f, b.f);
  const auto value = fold_int(op, dtype, a.i, b.i);
  if (!value) throw CompileError(kRunFailed, origin, "division by zero");
  return {.i = *value};
}

// Floats narrower than float32, except float16, are rounded from float32 whatever the source type.
static double to_narrow_step(DType to, double value) {
  return to.bits < 32 && to != kFloat16 ? static_cast<float>(value) : value;
}

Slot apply_cast(DType to, DType from, Slot value) {
  if (from.is_float()) {
    if (to.is_float()) return {.f = round_float(to, to_narrow_step(to, value.f))};
    if (to.is_bool()) return {.i = value.f != 0};
    if (std::isnan(value.f)) return {.i = 0};
    const double whole = std::trunc(value.f);
    if (to.is_uint()) {
      const double most = std::ldexp(1.0, to.bits);
      if (whole <= 0) return {.i = 0};
      if (whole >= most) return {.i = wrap_int(to, -1)};
      return {.i = static_cast<int64_t>(static_cast<uint64_t>(whole))};
    }
    const double most = std::ldexp(1.0, to.bits - 1);
    if (whole >= most) return {.i = static_cast<int64_t>((uint64_t{1} << (to.bits - 1)) - 1)};
    if (whole < -most) return {.i = -static_cast<int64_t>(uint64_t{1} << (to.bits - 2)) * 2};
    return {.i = static_cast<int64_t>(whole)};
  }
  if (to.is_float()) {
    // An integer of 64 bits goes to float32 in one rounding, not through double, and to narrower
    // floats through that.
    if (to.bits <= 32)
      return {.f = round_float(to, from.is_uint()
                                       ? static_cast<float>(static_cast<uint64_t>(value.i))
                                       : static_cast<float>(value.i))};
    return {.f = from.is_uint() ? static_cast<double>(static_cast<uint64_t>(value.i))
                                : static_cast<double>(value.i)};
  }
  return {.i = wrap_int(to, value.i)};
}

// What rounds or is exact in every dtype; null for others.
template <typename T>
static T (*exact_function(IntrinsicId id))(T) {
  using enum IntrinsicId;
  if (id == kSqrt) return [](T x) { return std::sqrt(x); };
  if (id == kFloor) return [](T x) { return std::floor(x); };
  if (id == kCeil) return [](T x) { return std::ceil(x); };
  if (id == kTrunc) return [](T x) { return std::trunc(x); };
  if (id == kRound || id == kNearbyint) return [](T x) { return std::nearbyint(x); };
  if (id == kFabs || id == kAbs) return [](T x) { return std::fabs(x); };
  return nullptr;
}

static float float_rsqrt(float x) { return 1.0F / std::sqrt(x); }

FloatFunction float_function(IntrinsicId id) {
  if (id == IntrinsicId::kRsqrt) return float_rsqrt;
  const FloatFunction exact = exact_function<float>(id);
  return exact ? exact : tir::elementary_of_float(id);
}

[[noreturn]] static void no_meaning(IntrinsicId id, DType dtype, const Origin& origin) {
  throw CompileError(kUnsupported, origin, "`T.{}` of {} cannot be interpreted", intrinsic(id).name,
                     dtype.str());
}

/// A negative power is the reciprocal towards zero.
static uint64_t integer_power(DType dtype, int64_t a, int64_t b) {
  if (dtype.is_int() && b < 0 && a != 1 && a != -1) return 0;
  uint64_t result = 1, base = static_cast<uint64_t>(a);
  for (auto e = static_cast<uint64_t>(b); e > 0; e >>= 1, base *= base)
    if (e & 1) result *= base;
  return result;
}

static Slot integer_intrinsic(IntrinsicId id, DType dtype, Slot a, Slot b, const Origin& origin) {
  using enum IntrinsicId;
  const auto bits = static_cast<uint64_t>(a.i);
  const auto value = [&](uint64_t v) {
    return Slot{.i = wrap_int(dtype, static_cast<int64_t>(v))};
  };
  const bool inside = b.i >= 0 && b.i < dtype.bits;  // of a shift
  const uint64_t own = dtype.bits >= 64 ? bits : bits & ((uint64_t{1} << dtype.bits) - 1);
  switch (id) {
    case kAbs:
    case kFabs: return a.i < 0 && !dtype.is_uint() ? value(0 - bits) : a;
    case kBitwiseAnd: return value(bits & static_cast<uint64_t>(b.i));
    case kBitwiseOr: return value(bits | static_cast<uint64_t>(b.i));
    case kBitwiseXor: return value(bits ^ static_cast<uint64_t>(b.i));
    case kBitwiseNot: return value(~bits);
    case kShiftLeft: return inside ? value(bits << b.i) : Slot{.i = 0};
    case kShiftRight:
      if (dtype.is_uint()) return inside ? value(bits >> b.i) : Slot{.i = 0};
      return Slot{.i = a.i >> std::clamp<int64_t>(b.i, 0, 63)};
    case kPopcount: return Slot{.i = std::popcount(own)};
    case kClz: return Slot{.i = std::countl_zero(own) - (64 - dtype.bits)};
    case kFloor:
    case kCeil:
    case kRound:
    case kTrunc:
    case kNearbyint: return a;
    case kPow: return value(integer_power(dtype, a.i, b.i));
    case kNumThreads: return Slot{.i = 1};
    case kIsnan:
    case kIsinf: return Slot{.i = 0};
    case kIsfinite: return Slot{.i = 1};
    // Of floats only.
    case kExp:
    case kLog:
    case kTanh:
    case kErf:
    case kSigmoid:
    case kExp2:
    case kExp10:
    case kLog1p:
    case kLog2:
    case kLog10:
    case kSin:
    case kCos:
    case kTan:
    case kAsin:
    case kAcos:
    case kAtan:
    case kSinh:
    case kCosh:
    case kAsinh:
    case kAcosh:
    case kAtanh:
    case kAtan2:
    case kHypot:
    case kFmod:
    case kSqrt:
    case kRsqrt:
    case kCopysign:
    case kLdexp:
    case kNextafter:
    case kFma:
    // Of any dtype (apply_intrinsic), and what the resolver turns into other code.
    case kDot4:
    case kQMultiplyShift:
    case kMinValue:
    case kMaxValue:
    case kInfinity:
    case kIfThenElse:
    case kLikely:
    case kCheckIndex:
    case kAssume:
    case kUndef:
    case kRet:
    case kReinterpret:
    case kAddressOf:
    case kTvmAccessPtr:
    case kPrefetch:
    case kIsnullptr:
    case kVectorlow:
    case kVectorhigh:
    case kVectorcombine:
    case kMaskedLoad:
    case kMaskedStore:
    case kCallExtern:
    case kCallPureExtern:
    case kCallPacked:
    case kCallCpacked:
    case kCallLlvmIntrin:
    case kCallLlvmPureIntrin:
    case kCallIntrin:
    case kTvmTuple: break;
  }
  no_meaning(id, dtype, origin);
}

static double multiply_add(DType dtype, double a, double b, double c) {
  if (dtype != kFloat32) return std::fma(a, b, c);
  return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

static Slot float_intrinsic(IntrinsicId id, DType dtype, DType from, Slot a, Slot b, Slot c,
                            const Origin& origin) {
  using enum IntrinsicId;
  const auto value = [&](double v) { return Slot{.f = round_float(dtype, v)}; };
  switch (id) {
    case kIsnan: return {.i = std::isnan(a.f)};
    case kIsinf: return {.i = std::isinf(a.f)};
    case kIsfinite: return {.i = std::isfinite(a.f)};
    case kFma: return value(multiply_add(dtype, a.f, b.f, c.f));
    case kRsqrt:
      if (dtype == kFloat64) return {.f = 1.0 / std::sqrt(a.f)};
      return value(float_rsqrt(static_cast<float>(a.f)));
    case kFmod: return value(std::fmod(a.f, b.f));
    case kCopysign: return value(std::copysign(a.f, b.f));
    case kLdexp:
      return value(std::ldexp(a.f, static_cast<int>(std::clamp<int64_t>(b.i, -100000, 100000))));
    case kNextafter:
      if (dtype != kFloat32) break;
      return {.f = std::nextafter(static_cast<float>(a.f), static_cast<float>(b.f))};
    case kSqrt:
    case kFloor:
    case kCeil:
    case kTrunc:
    case kRound:
    case kNearbyint:
    case kFabs:
    case kAbs: return value(exact_function<double>(id)(a.f));
    case kExp:
    case kLog:
    case kTanh:
    case kErf:
    case kSigmoid:
    case kExp2:
    case kExp10:
    case kLog1p:
    case kLog2:
    case kLog10:
    case kSin:
    case kCos:
    case kTan:
    case kAsin:
    case kAcos:
    case kAtan:
    case kSinh:
    case kCosh:
    case kAsinh:
    case kAcosh:
    case kAtanh:
    case kPow:
    case kAtan2:
    case kHypot:
      // The very steps of generated code; 16-bit floats go through float32 there too.
      if (dtype == kFloat64) return {.f = tir::elementary(id, a.f, b.f)};
      return value(tir::elementary(id, static_cast<float>(a.f), static_cast<float>(b.f)));
    // Of integers only.
    case kShiftLeft:
    case kShiftRight:
    case kBitwiseAnd:
    case kBitwiseOr:
    case kBitwiseXor:
    case kBitwiseNot:
    case kPopcount:
    case kClz:
    case kDot4:
    case kQMultiplyShift:
    case kNumThreads:
    // Of any dtype (apply_intrinsic), and what the resolver turns into other code.
    case kMinValue:
    case kMaxValue:
    case kInfinity:
    case kIfThenElse:
    case kLikely:
    case kCheckIndex:
    case kAssume:
    case kUndef:
    case kRet:
    case kReinterpret:
    case kAddressOf:
    case kTvmAccessPtr:
    case kPrefetch:
    case kIsnullptr:
    case kVectorlow:
    case kVectorhigh:
    case kVectorcombine:
    case kMaskedLoad:
    case kMaskedStore:
    case kCallExtern:
    case kCallPureExtern:
    case kCallPacked:
    case kCallCpacked:
    case kCallLlvmIntrin:
    case kCallLlvmPureIntrin:
    case kCallIntrin:
    case kTvmTuple: break;
  }
  no_meaning(id, from, origin);
}

static Slot reinterpret_bits(DType to, DType from, Slot value, const Origin& origin) {
  if (to.storage().bits != from.storage().bits)
    throw CompileError(kDTypeMismatch, origin, "`T.reinterpret` of {} as {}", from.str(), to.str());
  std::byte memory[8] = {};
  write_element(from, memory, value);
  return read_element(to, memory);
}

static Slot limit_of(IntrinsicId id, DType dtype) {
  if (dtype.is_float()) {
    double greatest = std::numeric_limits<double>::max();
    if (dtype == kFloat32) greatest = std::numeric_limits<float>::max();
    if (dtype.bits < 32) greatest = largest_narrow_float(dtype);
    if (id == IntrinsicId::kInfinity) greatest = std::numeric_limits<double>::infinity();
    return {.f = round_float(dtype, id == IntrinsicId::kMinValue ? -greatest : greatest)};
  }
  if (dtype.is_uint() || dtype.is_bool())
    return {.i = id == IntrinsicId::kMinValue ? 0 : wrap_int(dtype, -1)};
  const auto greatest = static_cast<int64_t>((uint64_t{1} << (dtype.bits - 1)) - 1);
  return {.i = id == IntrinsicId::kMinValue ? -greatest - 1 : greatest};
}

// "{value}" and "{bound}" by their numbers, as a running program reports them.
static std::string filled_in(std::string message, int64_t value, int64_t bound) {
  for (const auto& [mark, number] : {std::pair("{value}", value), std::pair("{bound}", bound)})
    if (const size_t at = message.find(mark); at != std::string::npos)
      message.replace(at, std::string_view(mark).size(), std::to_string(number));
  return message;
}

/// Of bytes that are signed where their word is; modulo 2 to the bits of the result.
static Slot dot4(DType result, DType left, int64_t a, int64_t b) {
  const auto byte = [](DType word, int64_t value, int i) {
    return wrap_int(word.is_int() ? kInt8 : kUInt8, value >> (8 * i));
  };
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += byte(left, a, i) * byte(result, b, i);
  return {.i = wrap_int(result, sum)};
}

// Those of every dtype here, the others by the kind of their first operand.
Slot apply_intrinsic(IntrinsicId id, DType dtype, DType from, Slot a, Slot b, Slot c,
                     const Origin& origin) {
  using enum IntrinsicId;
  if (id == kDot4 && dtype.is_integer()) return dot4(dtype, from, a.i, b.i);
  if (id == kReinterpret) return reinterpret_bits(dtype, from, a, origin);
  if (id == kMinValue || id == kMaxValue || id == kInfinity) return limit_of(id, dtype);
  if (id == kUndef) return {.i = 0};
  if (id == kCheckIndex) {
    if (a.i >= 0 && a.i < b.i) return a;
    throw CompileError(kOutOfBounds, origin, "{}",
                       filled_in(reinterpret_cast<const char*>(c.i), a.i, b.i));
  }
  return from.is_float() ? float_intrinsic(id, dtype, from, a, b, c, origin)
                         : integer_intrinsic(id, from, a, b, origin);
}

// ---- memory -------------------------------------------------------------------------------------

template <typename T>
static T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <typename T>
static void store_as(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

static constexpr int key_of(DType dtype) { return static_cast<int>(dtype.code) << 8 | dtype.bits; }

Slot read_element(DType dtype, const std::byte* at) {
  switch (key_of(dtype)) {
    case key_of(kFloat32): return {.f = load_as<float>(at)};
    case key_of(kFloat64): return {.f = load_as<double>(at)};
    case key_of(kFloat16): return {.f = half_to_double(load_as<uint16_t>(at))};
    case key_of(kBFloat16): return {.f = bfloat16_to_double(load_as<uint16_t>(at))};
    case key_of(kFloat8e4m3fn):
    case key_of(kFloat8e4m3fnuz):
    case key_of(kFloat8e5m2):
    case key_of(kFloat8e5m2fnuz):
    case key_of(kFloat8e8m0fnu):
    case key_of(kFloat4e2m1fn): return {.f = narrow_float_value(dtype, load_as<uint8_t>(at))};
    case key_of(kBool): return {.i = load_as<uint8_t>(at) != 0};
    case key_of(kInt64): return {.i = load_as<int64_t>(at)};
    case key_of(kInt32): return {.i = load_as<int32_t>(at)};
    case key_of(kInt16): return {.i = load_as<int16_t>(at)};
    case key_of(kInt8): return {.i = load_as<int8_t>(at)};
    default: break;
  }
  if (dtype.bits == 64) return {.i = static_cast<int64_t>(load_as<uint64_t>(at))};
  if (dtype.bits == 32) return {.i = load_as<uint32_t>(at)};
  if (dtype.bits == 16) return {.i = load_as<uint16_t>(at)};
  return {.i = wrap_int(dtype, load_as<uint8_t>(at))};
}

void write_element(DType dtype, std::byte* at, Slot value) {
  switch (key_of(dtype)) {
    case key_of(kFloat32): return store_as(at, static_cast<float>(value.f));
    case key_of(kFloat64): return store_as(at, value.f);
    case key_of(kFloat16): return store_as(at, double_to_half(value.f));
    case key_of(kBFloat16): return store_as(at, double_to_bfloat16(value.f));
    case key_of(kBool): return store_as(at, static_cast<uint8_t>(value.i != 0));
    default: break;
  }
  if (dtype.is_minifloat())
    return store_as(at, static_cast<uint8_t>(narrow_float_bits(dtype, value.f)));
  if (dtype.bits == 64) return store_as(at, value.i);
  if (dtype.bits == 32) return store_as(at, static_cast<int32_t>(value.i));
  if (dtype.bits == 16) return store_as(at, static_cast<int16_t>(value.i));
  store_as(at, static_cast<int8_t>(value.i));
}

}  // namespace tenon::interp
