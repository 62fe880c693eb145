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
  if (dtype == kBFloat16) return bfloat16_to_double(double_to_bfloat16(value));
  if (dtype == kFloat16) return half_to_double(double_to_half(value));
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

Slot apply_cast(DType to, DType from, Slot value) {
  if (from.is_float()) {
    if (to.is_float()) return {.f = round_float(to, value.f)};
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
    // An integer of 64 bits goes to float32 in one rounding, not through double.
    if (to == kFloat32)
      return {.f = from.is_uint() ? static_cast<float>(static_cast<uint64_t>(value.i))
                                  : static_cast<float>(value.i)};
    const double whole = from.is_uint() ? static_cast<double>(static_cast<uint64_t>(value.i))
                                        : static_cast<double>(value.i);
    return {.f = round_float(to, whole)};
  }
  return {.i = wrap_int(to, value.i)};
}

// What rounds or is exact in every dtype; null where it is an elementary function.
template <typename T>
static T (*exact_function(std::string_view name))(T) {
  if (name == "sqrt") return [](T x) { return std::sqrt(x); };
  if (name == "floor") return [](T x) { return std::floor(x); };
  if (name == "ceil") return [](T x) { return std::ceil(x); };
  if (name == "trunc") return [](T x) { return std::trunc(x); };
  if (name == "round" || name == "nearbyint") return [](T x) { return std::nearbyint(x); };
  if (name == "fabs" || name == "abs") return [](T x) { return std::fabs(x); };
  return nullptr;
}

static float float_rsqrt(float x) { return 1.0F / std::sqrt(x); }

FloatFunction float_function(std::string_view name) {
  if (name == "rsqrt") return float_rsqrt;
  const FloatFunction exact = exact_function<float>(name);
  return exact ? exact : tir::elementary_of_float(name);
}

static Slot integer_intrinsic(std::string_view name, DType dtype, Slot a, Slot b,
                              const Origin& origin) {
  const auto bits = static_cast<uint64_t>(a.i);
  const auto value = [&](uint64_t v) {
    return Slot{.i = wrap_int(dtype, static_cast<int64_t>(v))};
  };
  if (name == "abs" || name == "fabs") return a.i < 0 && !dtype.is_uint() ? value(0 - bits) : a;
  if (name == "bitwise_and") return value(bits & static_cast<uint64_t>(b.i));
  if (name == "bitwise_or") return value(bits | static_cast<uint64_t>(b.i));
  if (name == "bitwise_xor") return value(bits ^ static_cast<uint64_t>(b.i));
  if (name == "bitwise_not") return value(~bits);
  if (name == "shift_left") return b.i < 0 || b.i >= dtype.bits ? Slot{.i = 0} : value(bits << b.i);
  if (name == "shift_right") {
    if (dtype.is_uint()) return b.i < 0 || b.i >= dtype.bits ? Slot{.i = 0} : value(bits >> b.i);
    return Slot{.i = a.i >> std::clamp<int64_t>(b.i, 0, 63)};
  }
  const uint64_t own = dtype.bits >= 64 ? bits : bits & ((uint64_t{1} << dtype.bits) - 1);
  if (name == "popcount") return Slot{.i = std::popcount(own)};
  if (name == "clz") return Slot{.i = std::countl_zero(own) - (64 - dtype.bits)};
  if (name == "floor" || name == "ceil" || name == "round" || name == "trunc" ||
      name == "nearbyint")
    return a;
  if (name == "pow") {
    if (b.i < 0) return Slot{.i = a.i == 1 ? 1 : a.i == -1 ? (b.i % 2 ? -1 : 1) : 0};
    uint64_t result = 1, base = bits;
    for (int64_t e = b.i; e > 0; e >>= 1, base *= base)
      if (e & 1) result *= base;
    return value(result);
  }
  if (name == "num_threads") return Slot{.i = 1};
  if (name == "isnan" || name == "isinf") return Slot{.i = 0};
  if (name == "isfinite") return Slot{.i = 1};
  throw CompileError(kUnsupported, origin, "`T.{}` of {} cannot be interpreted", name, dtype.str());
}

static Slot reinterpret_bits(DType to, DType from, Slot value) {
  if (to.bits != from.bits)
    throw CompileError(kDTypeMismatch, {}, "`T.reinterpret` of {} as {}", from.str(), to.str());
  std::byte memory[8] = {};
  write_element(from, memory, value);
  return read_element(to, memory);
}

static Slot limit_of(std::string_view name, DType dtype) {
  if (dtype.is_float()) {
    double greatest = std::numeric_limits<double>::max();
    if (dtype == kFloat32) greatest = std::numeric_limits<float>::max();
    if (dtype == kFloat16) greatest = 65504.0;
    if (dtype == kBFloat16) greatest = 3.3895313892515355e38;
    if (name == "infinity") greatest = std::numeric_limits<double>::infinity();
    return {.f = name == "min_value" ? -greatest : greatest};
  }
  if (dtype.is_uint() || dtype.is_bool())
    return {.i = name == "min_value" ? 0 : wrap_int(dtype, -1)};
  const auto greatest = static_cast<int64_t>((uint64_t{1} << (dtype.bits - 1)) - 1);
  return {.i = name == "min_value" ? -greatest - 1 : greatest};
}

// "{value}" and "{bound}" by their numbers, as a running program reports them.
static std::string filled_in(std::string message, int64_t value, int64_t bound) {
  for (const auto& [mark, number] : {std::pair("{value}", value), std::pair("{bound}", bound)})
    if (const size_t at = message.find(mark); at != std::string::npos)
      message.replace(at, std::string_view(mark).size(), std::to_string(number));
  return message;
}

Slot apply_intrinsic(const Intrinsic& op, DType dtype, DType from, Slot a, Slot b, Slot c,
                     const Origin& origin) {
  const std::string_view name = op.name;
  if (name == "reinterpret") return reinterpret_bits(dtype, from, a);
  if (name == "min_value" || name == "max_value" || name == "infinity")
    return limit_of(name, dtype);
  if (name == "undef") return {.i = 0};
  if (name == "check_index") {
    if (a.i >= 0 && a.i < b.i) return a;
    throw CompileError(kOutOfBounds, origin, "{}",
                       filled_in(reinterpret_cast<const char*>(c.i), a.i, b.i));
  }
  if (!from.is_float()) return integer_intrinsic(name, from, a, b, origin);
  if (name == "isnan") return {.i = std::isnan(a.f)};
  if (name == "isinf") return {.i = std::isinf(a.f)};
  if (name == "isfinite") return {.i = std::isfinite(a.f)};
  const auto value = [&](double v) { return Slot{.f = round_float(dtype, v)}; };
  if (name == "fma") {
    if (dtype == kFloat32)
      return {
          .f = std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f))};
    return value(std::fma(a.f, b.f, c.f));
  }
  if (name == "rsqrt") {
    if (dtype == kFloat64) return {.f = 1.0 / std::sqrt(a.f)};
    return value(float_rsqrt(static_cast<float>(a.f)));
  }
  if (name == "fmod") return value(std::fmod(a.f, b.f));
  if (name == "copysign") return value(std::copysign(a.f, b.f));
  if (name == "ldexp")
    return value(std::ldexp(a.f, static_cast<int>(std::clamp<int64_t>(b.i, -100000, 100000))));
  if (name == "nextafter" && dtype == kFloat32)
    return {.f = std::nextafter(static_cast<float>(a.f), static_cast<float>(b.f))};
  if (const auto exact = exact_function<double>(name)) return value(exact(a.f));
  if (!tir::is_elementary(name))
    throw CompileError(kUnsupported, origin, "`T.{}` of {} cannot be interpreted", name,
                       from.str());
  // The very steps of generated code; 16-bit floats go through float32 there too.
  if (dtype == kFloat64) return {.f = tir::elementary(name, a.f, b.f)};
  return value(tir::elementary(name, static_cast<float>(a.f), static_cast<float>(b.f)));
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
  return {.i = load_as<uint8_t>(at)};
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
  if (dtype.bits == 64) return store_as(at, value.i);
  if (dtype.bits == 32) return store_as(at, static_cast<int32_t>(value.i));
  if (dtype.bits == 16) return store_as(at, static_cast<int16_t>(value.i));
  store_as(at, static_cast<int8_t>(value.i));
}

}  // namespace tenon::interp
