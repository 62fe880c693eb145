// SPDX-License-Identifier: Apache-2.0
// Quantised integers.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// Which elements share a scale.
struct Granularity {
  int64_t axis = -1, block_size = 0;
};

Granularity granularity(Context& c, size_t scale) {
  const int64_t axis = c.int_attr("axis", 1), block_size = c.int_attr("block_size", 0);
  if (block_size < 0)
    c.bad(kBadAttribute, "attribute `block_size` of `{}` is {}; expected a size", c.node().op_type,
          block_size);
  if (c.ndim(scale) == 0) return {};
  if (c.ndim(scale) == 1 && is_int(c.shape(scale)[0], 1) && (block_size == 0 || c.ndim(0) != 1))
    return {};
  const int64_t ndim = block_size > 0 ? c.ndim(0) : 1;
  if (c.ndim(scale) != ndim)
    c.bad(kRankMismatch, "the scale of `{}` has rank {}; expected {}, or a scalar",
          c.node().op_type, c.ndim(scale), ndim);
  // A tensor of rank 1 has one axis, whatever the default of the attribute.
  return {c.ndim(0) == 1 && !c.has_attr("axis") ? 0 : c.axis(axis, c.ndim(0)), block_size};
}

DType asked_dtype(Context& c, DType otherwise) {
  const int64_t number = c.int_attr("output_dtype", 0);
  if (number == 0) return otherwise;
  const auto dtype = dtype_of(number);
  if (!dtype) unsupported("type {}", data_type_name(number));
  return *dtype;
}

// A zero point of a float8, which is not added, is 0.
void check_zero_point(Context& c, size_t i) {
  if (!c.has(i) || !c.dtype(i).is_minifloat() || c.dtype(i) == kFloat4e2m1fn) return;
  const auto known = c.constant(i);
  for (int64_t at = 0; known && at < known->elements(); ++at)
    if (known->at_float(at) != 0)
      c.bad(kBadArgument, "a zero point of type {} is {}; expected 0", c.dtype(i).str(),
            known->at_float(at));
}

Value zero_for(Context& c, size_t scale, DType dtype) {
  const auto extent = product(c.shape(scale));
  if (is_int(extent, 1)) return c.scalar(dtype, 0);
  return c.op("zeros", {c.shape_value(c.shape(scale))}, {{"dtype", dtype}});
}

Results convert_quantize(Context& c) {
  const auto [axis, block_size] = granularity(c, 1);
  const DType asked = asked_dtype(c, c.has(2) ? c.dtype(2) : kUInt8);
  if (c.has(2) && c.dtype(2) != asked)
    c.bad(kBadAttribute, "`QuantizeLinear` with output_dtype {} has a zero point of type {}",
          asked.str(), c.dtype(2).str());
  check_zero_point(c, 2);
  Attrs attrs{{"out_dtype", asked}, {"axis", axis}};
  if (block_size > 0) attrs.set("block_size", block_size);
  if (!c.flag_attr("saturate", true)) attrs.set("saturate", false);
  DType precision = c.dtype(1);
  if (const int64_t number = c.int_attr("precision", 0)) {
    const auto known = dtype_of(number);
    if (!known || !known->is_float() || known->bits < 16)
      c.bad(kBadAttribute, "attribute `precision` of `QuantizeLinear` is {}; expected a float",
            data_type_name(number));
    precision = *known;
  }
  const Value x = c.dtype(0).is_float() ? c.value(0) : c.cast(c.value(0), kFloat32);
  if (precision != kFloat32 || shaped(x)->dtype == kFloat64) attrs.set("precision", precision);
  const Value zero = c.has(2) ? c.value(2) : zero_for(c, 1, asked);
  return {c.op("quantize", {x, c.value(1), zero}, attrs)};
}

Results convert_dequantize(Context& c) {
  const auto [axis, block_size] = granularity(c, 1);
  check_zero_point(c, 2);
  Attrs attrs{{"out_dtype", asked_dtype(c, c.dtype(1))}, {"axis", axis}};
  if (block_size > 0) attrs.set("block_size", block_size);
  const Value zero = c.has(2) ? c.value(2) : zero_for(c, 1, c.dtype(0));
  return {c.op("dequantize", {c.value(0), c.value(1), zero}, attrs)};
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
  return {
      {"QuantizeLinear", 10, 2, 3, convert_quantize,
       "floats, int32 to integers of 2 to 16 bits, float8, float4e2m1"},
      {"DequantizeLinear", 10, 2, 3, convert_dequantize,
       "integers of 2 to 16 bits, int32, float8, float4e2m1"},
      {"DynamicQuantizeLinear", 11, 1, 1, convert_dynamic_quantize, "float32 to uint8"},
  };
}

}  // namespace tenon::onnx
