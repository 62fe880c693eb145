// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element: arithmetic, comparison, logic, bits.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// Before opset 7 the second operand's axes were aligned at `axis` of the first, where broadcasting
// was asked for.
Value second_operand(Context& c) {
  Value rhs = c.value(1);
  if (c.opset() >= 7) return rhs;
  const bool broadcasts = c.flag_attr("broadcast");
  if (!c.has_attr("axis") || !broadcasts) return rhs;
  const int64_t axis = c.axis(c.int_attr("axis"), c.ndim(0));
  Dims dims = c.shape(1);
  const int64_t missing = c.ndim(0) - axis - c.ndim(1);
  if (missing < 0)
    c.bad(kShapeMismatch, "`{}` aligns a tensor of rank {} at axis {} of one of rank {}",
          c.node().op_type, c.ndim(1), axis, c.ndim(0));
  dims.insert(dims.end(), static_cast<size_t>(missing), int64(1));
  return c.reshape(rhs, dims);
}

OperatorRow unary(const char* name, const char* op, const char* types, int first = 1) {
  const auto convert = [op](Context& c) -> Results {
    c.ignore({"consumed_inputs"});
    return {c.op(op, {c.value(0)})};
  };
  return {name, first, 1, 1, convert, types};
}

OperatorRow binary(const char* name, const char* op, const char* types, int first = 1) {
  const auto convert = [op](Context& c) -> Results {
    c.ignore({"consumed_inputs"});
    const Value rhs = second_operand(c);
    return {c.op(op, {c.value(0), rhs})};
  };
  return {name, first, 2, 2, convert, types};
}

OperatorRow variadic(const char* name, const char* op, bool mean = false) {
  const auto convert = [op, mean](Context& c) -> Results {
    c.ignore({"consumed_inputs"});
    Value total = c.value(0);
    for (size_t i = 1; i < c.input_count(); ++i) total = c.op(op, {total, c.value(i)});
    if (mean && c.input_count() > 1)
      total = c.op("divide", {total, c.scalar(c.dtype(0), static_cast<double>(c.input_count()))});
    return {total};
  };
  return {name, 1, 1, -1, convert, mean || std::string(name) == "Sum" ? "floats" : "numbers"};
}

Results convert_identity(Context& c) { return {c.value(0)}; }

Results convert_pow(Context& c) {
  const DType base = c.dtype(0), exponent = c.dtype(1);
  const Value rhs = second_operand(c);
  if (base == exponent) return {c.op("power", {c.value(0), rhs})};
  if (base.is_integer()) {  // an exponent is not cut to the bits of the base
    const DType wide = exponent.is_float() ? kFloat64 : exponent == kUInt64 ? kUInt64 : kInt64;
    const Value power = c.op("power", {c.cast(c.value(0), wide), c.cast(rhs, wide)});
    return {c.cast(power, base)};
  }
  // The exponent is small where it is a number that the base's type does not hold.
  if (const auto known = c.constant(1); known && known->elements() == 1 && base.is_float())
    return {c.op("power", {c.value(0),
                           c.reshape(c.scalar(base, known->at_float(0)), to_exprs(known->shape))})};
  return {c.op("power", {c.value(0), c.cast(rhs, base)})};
}

Results convert_mod(Context& c) {
  const bool like_c = c.flag_attr("fmod");
  if (!like_c && c.dtype(0).is_float())
    c.bad(kBadAttribute, "`Mod` of dtype {} without fmod=1", c.dtype(0).str());
  return {c.op(like_c ? "mod" : "floor_mod", {c.value(0), c.value(1)})};
}

Results convert_bit_shift(Context& c) {
  const std::string direction = c.string_attr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    c.bad(kBadAttribute, "attribute `direction` of `BitShift` is `{}`; expected LEFT or RIGHT",
          direction);
  return {c.op(direction == "LEFT" ? "left_shift" : "right_shift", {c.value(0), c.value(1)})};
}

Results convert_is_inf(Context& c) {
  return {c.op("isinf", {c.value(0)},
               {{"detect_negative", c.flag_attr("detect_negative", true)},
                {"detect_positive", c.flag_attr("detect_positive", true)}})};
}

Results convert_where(Context& c) { return {c.op("where", {c.value(0), c.value(1), c.value(2)})}; }

// A scalar constant as an expression of the tensor's dtype; null where it is no constant.
Expr scalar_of(Context& c, size_t i) {
  const auto data = c.constant(i);
  if (!data || data->elements() != 1) return nullptr;
  return data->dtype.is_float() ? imm(data->dtype, data->at_float(0))
                                : imm(data->dtype, data->at_int(0));
}

Results convert_clip(Context& c) {
  c.ignore({"consumed_inputs"});
  const DType dtype = c.dtype(0);
  if (c.opset() < 11) {
    // Absent bounds are those of float32.
    const bool least = c.has_attr("min"), most = c.has_attr("max");
    const double low = least ? c.float_attr("min") : 0, high = most ? c.float_attr("max") : 0;
    if (least && most)
      return {c.op("clip", {c.value(0), c.prim(imm(dtype, low)), c.prim(imm(dtype, high))})};
    if (least) return {c.op("maximum", {c.value(0), c.scalar(dtype, low)})};
    if (most) return {c.op("minimum", {c.value(0), c.scalar(dtype, high)})};
    return {c.value(0)};
  }
  if (c.has(1) && c.has(2)) {
    const Expr low = scalar_of(c, 1), high = scalar_of(c, 2);
    if (low && high) {
      c.note_number(1, "min", low);
      c.note_number(2, "max", high);
      return {c.op("clip", {c.value(0), c.prim(low), c.prim(high)})};
    }
  }
  Value x = c.value(0);
  if (c.has(1)) x = c.op("maximum", {x, c.reshape(c.value(1), {})});
  if (c.has(2)) x = c.op("minimum", {x, c.reshape(c.value(2), {})});
  return {x};
}

}  // namespace

std::vector<OperatorRow> elementwise_rows() {
  return {
      unary("Abs", "abs", "numbers"),
      unary("Acos", "acos", "floats"),
      unary("Acosh", "acosh", "floats"),
      unary("Asin", "asin", "floats"),
      unary("Asinh", "asinh", "floats"),
      unary("Atan", "atan", "floats"),
      unary("Atanh", "atanh", "floats"),
      unary("BitwiseNot", "bitwise_not", "integers", 18),
      unary("Ceil", "ceil", "floats"),
      unary("Cos", "cos", "floats"),
      unary("Cosh", "cosh", "floats"),
      unary("Erf", "erf", "floats", 9),
      unary("Exp", "exp", "floats"),
      unary("Floor", "floor", "floats"),
      unary("IsNaN", "isnan", "floats", 9),
      unary("Log", "log", "floats"),
      unary("Neg", "negative", "signed numbers"),
      unary("Not", "logical_not", "bool"),
      unary("Reciprocal", "reciprocal", "floats"),
      unary("Round", "round", "floats", 11),
      unary("Sigmoid", "sigmoid", "floats"),
      unary("Sign", "sign", "numbers", 9),
      unary("Sin", "sin", "floats"),
      unary("Sinh", "sinh", "floats"),
      unary("Sqrt", "sqrt", "floats"),
      unary("Tan", "tan", "floats"),
      unary("Tanh", "tanh", "floats"),

      binary("Add", "add", "numbers"),
      binary("Sub", "subtract", "numbers"),
      binary("Mul", "multiply", "numbers"),
      binary("Div", "divide", "numbers"),
      binary("And", "logical_and", "bool"),
      binary("Or", "logical_or", "bool"),
      binary("Xor", "logical_xor", "bool"),
      binary("Equal", "equal", "all"),
      binary("Less", "less", "numbers"),
      binary("Greater", "greater", "numbers"),
      binary("LessOrEqual", "less_equal", "numbers", 12),
      binary("GreaterOrEqual", "greater_equal", "numbers", 12),
      binary("BitwiseAnd", "bitwise_and", "integers", 18),
      binary("BitwiseOr", "bitwise_or", "integers", 18),
      binary("BitwiseXor", "bitwise_xor", "integers", 18),
      {"Pow", 1, 2, 2, convert_pow, "numbers"},
      {"Mod", 10, 2, 2, convert_mod, "numbers"},
      {"BitShift", 11, 2, 2, convert_bit_shift, "unsigned integers"},
      variadic("Max", "maximum"),
      variadic("Min", "minimum"),
      variadic("Sum", "add"),
      variadic("Mean", "add", true),

      {"Identity", 1, 1, 1, convert_identity, "all", "tensors only"},
      {"Clip", 1, 1, 3, convert_clip, "numbers"},
      {"IsInf", 10, 1, 1, convert_is_inf, "floats"},
      {"Where", 9, 3, 3, convert_where, "all"},
  };
}

}  // namespace tenon::onnx
