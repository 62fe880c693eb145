// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element: arithmetic, comparison, logic, activations, conversion.
#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

OperatorRow unary(const char* name, const char* op) {
  return {name, 1, 1, [op](OpCall& c) { return c.op(op, {c.arg(0)}); }, op};
}

OperatorRow binary(const char* name, const char* op) {
  return {name, 2, 2, [op](OpCall& c) { return c.op(op, {c.arg(0), c.arg(1)}); }, op};
}

// The operator leaves its operand as it is.
OperatorRow identity(const char* name) {
  const auto convert = [](OpCall& c) {
    c.ignore({"src_virtual_device", "dst_virtual_device", "src_dev_type", "dst_dev_type",
              "virtual_device", "compiler", "constrain_body", "constrain_result", "device_type"});
    return c.arg(0);
  };
  return {name, 1, 1, convert, "its operand"};
}

Value convert_leaky_relu(OpCall& c) {
  return c.op("nn.leakyrelu", {c.arg(0)}, {{"alpha", c.real("alpha", 0.25)}});
}

Value convert_prelu(OpCall& c) {
  const int64_t ndim = c.ndim(0), axis = c.axis(c.integer("axis", 1), ndim);
  if (c.ndim(1) == 1) return c.op("nn.prelu", {c.arg(0), c.arg(1)}, {{"axis", axis}});
  unsupported("a slope of rank {}", c.ndim(1));
}

Value convert_clip(OpCall& c) {
  const DType dtype = c.dtype(0);
  const double low = c.real("a_min"), high = c.real("a_max");
  const DType bound = dtype.is_float() ? dtype : kFloat64;
  return c.op("clip", {c.arg(0), OpCall::prim(imm(bound, low)), OpCall::prim(imm(bound, high))});
}

Value convert_cast(OpCall& c) { return c.cast(c.arg(0), c.dtype_attr("dtype", c.dtype(0))); }
Value convert_cast_like(OpCall& c) { return c.cast(c.arg(0), c.dtype(1)); }

// log(x) / log(base)
OperatorRow logarithm(const char* name, double factor) {
  const auto convert = [factor](OpCall& c) {
    const Value log = c.op("log", {c.arg(0)});
    return c.op("multiply", {log, c.scalar(c.dtype(0), factor)});
  };
  return {name, 1, 1, convert, "log, multiply"};
}

Value convert_dropout(OpCall& c) {
  c.ignore({"rate"});
  return make<graph::Tuple>(std::vector<Value>{c.arg(0), c.op("ones_like", {c.arg(0)})});
}

Value convert_where(OpCall& c) {
  return c.op("where", {c.cast(c.arg(0), kBool), c.arg(1), c.arg(2)});
}

Value convert_quantize(OpCall& c) {
  const DType dtype = c.dtype_attr("out_dtype", kInt8);
  return c.op("quantize", {c.arg(0), c.arg(1), c.cast(c.arg(2), dtype)},
              {{"out_dtype", dtype}, {"axis", c.integer("axis", -1)}});
}

Value convert_dequantize(OpCall& c) {
  const DType dtype = c.dtype(0);
  return c.op(
      "dequantize", {c.arg(0), c.arg(1), c.cast(c.arg(2), dtype)},
      {{"axis", c.integer("axis", -1)}, {"out_dtype", c.dtype_attr("out_dtype", kFloat32)}});
}

}  // namespace

std::vector<OperatorRow> elementwise_rows() {
  std::vector<OperatorRow> rows = {
      binary("add", "add"),
      binary("subtract", "subtract"),
      binary("multiply", "multiply"),
      binary("divide", "divide"),
      binary("floor_divide", "floor_divide"),
      binary("mod", "mod"),
      binary("floor_mod", "floor_mod"),
      binary("power", "power"),
      binary("minimum", "minimum"),
      binary("maximum", "maximum"),
      binary("equal", "equal"),
      binary("not_equal", "not_equal"),
      binary("less", "less"),
      binary("less_equal", "less_equal"),
      binary("greater", "greater"),
      binary("greater_equal", "greater_equal"),
      binary("logical_and", "logical_and"),
      binary("logical_or", "logical_or"),
      binary("logical_xor", "logical_xor"),
      binary("bitwise_and", "bitwise_and"),
      binary("bitwise_or", "bitwise_or"),
      binary("bitwise_xor", "bitwise_xor"),
      binary("left_shift", "left_shift"),
      binary("right_shift", "right_shift"),

      unary("bitwise_not", "bitwise_not"),
      unary("ceil", "ceil"),
      unary("erf", "erf"),
      unary("exp", "exp"),
      unary("fast_erf", "erf"),
      unary("fast_exp", "exp"),
      unary("fast_tanh", "tanh"),
      unary("floor", "floor"),
      unary("log", "log"),
      unary("negative", "negative"),
      unary("round", "round"),
      unary("rsqrt", "rsqrt"),
      unary("sigmoid", "sigmoid"),
      unary("sign", "sign"),
      unary("sqrt", "sqrt"),
      unary("trunc", "trunc"),
      unary("nn.relu", "nn.relu"),
      unary("logical_not", "logical_not"),
      unary("abs", "abs"),
      unary("isnan", "isnan"),
      unary("isinf", "isinf"),
      unary("isfinite", "isfinite"),
      unary("zeros_like", "zeros_like"),
      unary("ones_like", "ones_like"),

      identity("annotation.compiler_begin"),
      identity("annotation.compiler_end"),
      identity("annotation.stop_fusion"),
      identity("copy"),
      identity("device_copy"),
      identity("on_device"),

      logarithm("log2", 1.4426950408889634074),
      logarithm("log10", 0.43429448190325182765),
      {"nn.leaky_relu", 1, 1, convert_leaky_relu, "nn.leakyrelu"},
      {"nn.prelu", 2, 2, convert_prelu, "nn.prelu", "a slope for each channel only"},
      {"clip", 1, 1, convert_clip},
      {"cast", 1, 1, convert_cast, "astype"},
      {"cast_like", 2, 2, convert_cast_like, "astype"},
      {"nn.dropout", 1, 1, convert_dropout, "a tuple of its operand and ones_like",
       "inference: nothing is dropped"},
      {"where", 3, 3, convert_where},
      {"qnn.quantize", 3, 3, convert_quantize, "quantize"},
      {"qnn.dequantize", 3, 3, convert_dequantize, "dequantize"},
  };
  for (const char* name : {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin",
                           "sinh", "tan", "tanh"})
    rows.push_back(unary(name, name));
  return rows;
}

}  // namespace tenon::relay
