// SPDX-License-Identifier: Apache-2.0
// Conversions between element types.
#include <cctype>
#include <cmath>

#include "tenon/import/onnx/operators.h"
#include "tenon/support/narrow_float.h"

namespace tenon::onnx {

namespace {

struct Rounding {
  bool saturates;
  std::string mode;  // to float8e8m0: up, down, nearest
};

Rounding rounding_of(Context& c) {
  Rounding out{c.flag_attr("saturate", true), c.string_attr("round_mode", "up")};
  if (out.mode != "up" && out.mode != "down" && out.mode != "nearest")
    c.bad(kBadAttribute, "attribute `round_mode` of `{}` is `{}`; expected up, down or nearest",
          c.node().op_type, printable(out.mode));
  return out;
}

Value clipped(Context& c, const Value& x, DType dtype, double least, double most) {
  return c.op("clip", {x, c.prim(imm(dtype, least)), c.prim(imm(dtype, most))});
}

// A power of two. It is rounded in float64, where all numbers of the type and what lies between are
// normal, so that a carry out of the fraction rounds up.
Value to_power_of_two(Context& c, const Value& x, const Rounding& rounding) {
  constexpr double kLeast = 0x1p-127, kMost = 0x1p127, kFraction = 0x1p52;
  Value single = c.cast(x, kFloat32);
  if (rounding.saturates) {
    single = clipped(c, single, kFloat32, kLeast, kMost);
  } else {
    const Value is_below = c.op("less", {single, c.scalar(kFloat32, kLeast)});
    single = c.op("where", {is_below, c.scalar(kFloat32, std::nan("")), single});
  }
  if (rounding.mode == "nearest") return c.cast(single, kFloat8e8m0fnu);
  Value bits = c.op("bitcast", {c.cast(single, kFloat64)}, {{"dtype", kInt64}});
  if (rounding.mode == "up") bits = c.op("add", {bits, c.scalar(kInt64, kFraction - 1)});
  bits = c.op("bitwise_and", {bits, c.scalar(kInt64, -kFraction)});
  return c.cast(c.op("bitcast", {bits}, {{"dtype", kFloat64}}), kFloat8e8m0fnu);
}

Value converted(Context& c, const Value& x, DType from, DType to, const Rounding& rounding) {
  const bool has_infinity = to == kFloat8e5m2;
  if (from == to && !(has_infinity && rounding.saturates)) return x;
  if (to == kFloat8e8m0fnu) return to_power_of_two(c, x, rounding);
  const bool has_beyond = to.is_minifloat() && to != kFloat4e2m1fn;  // infinity or NaN
  if (has_beyond && rounding.saturates) {
    const bool holds_limits = from.is_float() && from.bits >= 16;
    const Value wide = holds_limits ? x : c.cast(x, kFloat32);
    const double most = largest_narrow_float(to);
    return c.cast(clipped(c, wide, holds_limits ? from : DType(kFloat32), -most, most), to);
  }
  // Out of range of such an integer the low bits are left, as of other integers.
  if (to.is_integer() && to.is_narrow() && from.is_float()) return c.cast(c.cast(x, kInt32), to);
  return c.cast(x, to);
}

// Before opset 6 the type was a text.
DType type_of_text(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (text == "float") return kFloat32;
  if (text == "double") return kFloat64;
  const auto parsed = DType::parse(text);
  if (!parsed) unsupported("type `{}`", printable(text));
  return *parsed;
}

DType target_type(Context& c) {
  const int64_t number = c.int_attr("to");
  const auto known = dtype_of(number);
  if (!known) unsupported("to type {}", data_type_name(number));
  return *known;
}

Results convert_cast(Context& c) {
  const DType to = c.opset() < 6 ? type_of_text(c.string_attr("to", "")) : target_type(c);
  return {converted(c, c.value(0), c.dtype(0), to, rounding_of(c))};
}

Results convert_cast_like(Context& c) {
  return {converted(c, c.value(0), c.dtype(0), c.dtype(1), rounding_of(c))};
}

Results convert_bit_cast(Context& c) {
  return {c.op("bitcast", {c.value(0)}, {{"dtype", target_type(c)}})};
}

}  // namespace

std::vector<OperatorRow> cast_rows() {
  return {
      {"Cast", 1, 1, 1, convert_cast, "all"},
      {"CastLike", 15, 2, 2, convert_cast_like, "all"},
      {"BitCast", 26, 1, 1, convert_bit_cast, "all"},
  };
}

}  // namespace tenon::onnx
