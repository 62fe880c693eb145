// SPDX-License-Identifier: Apache-2.0
// Quantised integers.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// Where the parameters are vectors: the axis that they run along.
int64_t parameter_axis(Context& c, size_t scale) {
  if (c.has_attr("block_size") && c.int_attr("block_size") != 0) unsupported("block_size");
  const int64_t axis = c.int_attr("axis", 1);
  const bool one = c.ndim(scale) == 0 || (c.ndim(scale) == 1 && is_int(c.shape(scale)[0], 1));
  if (one) return -1;
  if (c.ndim(scale) != 1) unsupported("a scale of rank {}", c.ndim(scale));
  return c.axis(axis, c.ndim(0));
}

DType asked_dtype(Context& c, DType otherwise) {
  const int64_t number = c.int_attr("output_dtype", 0);
  if (number == 0) return otherwise;
  const auto dtype = dtype_of(number);
  if (!dtype) unsupported("type {}", data_type_name(number));
  return *dtype;
}

void check_quantised(DType dtype) {
  if (!dtype.is_integer()) unsupported("type {}", dtype.str());
}

Value zero_for(Context& c, size_t scale, DType dtype) {
  const auto extent = product(c.shape(scale));
  if (is_int(extent, 1)) return c.scalar(dtype, 0);
  return c.op("zeros", {c.shape_value(c.shape(scale))}, {{"dtype", dtype}});
}

Results convert_quantize(Context& c) {
  c.ignore({"saturate", "precision"});
  const int64_t axis = parameter_axis(c, 1);
  const DType dtype = c.has(2) ? c.dtype(2) : asked_dtype(c, kUInt8);
  (void)c.int_attr("output_dtype", 0);
  check_quantised(dtype);
  const Value x = c.dtype(0).is_float() ? c.value(0) : c.cast(c.value(0), kFloat32);
  const Value zero = c.has(2) ? c.value(2) : zero_for(c, 1, dtype);
  return {c.op("quantize", {x, c.value(1), zero}, {{"out_dtype", dtype}, {"axis", axis}})};
}

Results convert_dequantize(Context& c) {
  const int64_t axis = parameter_axis(c, 1);
  check_quantised(c.dtype(0));
  const DType dtype = asked_dtype(c, c.dtype(1));
  const Value zero = c.has(2) ? c.value(2) : zero_for(c, 1, c.dtype(0));
  return {
      c.op("dequantize", {c.value(0), c.value(1), zero}, {{"out_dtype", dtype}, {"axis", axis}})};
}

// The scale and zero point that make the range of x, with 0 in it, one of 256 steps.
Results convert_dynamic_quantize(Context& c) {
  const Value x = c.value(0);
  const Value zero = c.scalar(kFloat32, 0);
  const Value most = c.op("maximum", {c.op("max", {x}), zero});
  const Value least = c.op("minimum", {c.op("min", {x}), zero});
  const Value range = c.op("subtract", {most, least});
  const Value steps = c.op("divide", {range, c.scalar(kFloat32, 255)});
  const Value is_zero = c.op("equal", {steps, zero});
  const Value scale = c.op("where", {is_zero, c.scalar(kFloat32, 1), steps});
  const Value place = c.op("round", {c.op("negative", {c.op("divide", {least, scale})})});
  const Value held =
      c.op("clip", {place, c.prim(imm(kFloat32, 0.0)), c.prim(imm(kFloat32, 255.0))});
  const Value zero_point = c.cast(held, kUInt8);
  const Value y = c.op("quantize", {x, scale, zero_point}, {{"out_dtype", kUInt8}});
  return {y, scale, zero_point};
}

}  // namespace

std::vector<OperatorRow> quantize_rows() {
  const std::string forms = "scales for the whole tensor or an axis, no blocks";
  return {
      {"QuantizeLinear", 10, 2, 3, convert_quantize, "floats to int8, uint8, int16, uint16", forms},
      {"DequantizeLinear", 10, 2, 3, convert_dequantize, "int8, uint8, int16, uint16, int32",
       forms},
      {"DynamicQuantizeLinear", 11, 1, 1, convert_dynamic_quantize, "float32 to uint8"},
  };
}

}  // namespace tenon::onnx
