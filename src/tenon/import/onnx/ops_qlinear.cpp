// SPDX-License-Identifier: Apache-2.0
// Operators on quantised tensors: a tensor with a scale and a zero point stands for
// (x - zero_point) * scale. Products are sums of integers; everything else is computed on floats,
// and the result is quantised.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

constexpr int64_t kOpset = 13;  // whose forms stand for those of com.microsoft

// The operands of a quantised tensor: elements, scale, zero point.
struct Quantised {
  size_t data, scale, zero_point;
};

bool is_one(const Dims& shape) { return is_int(product(shape), 1); }

// One element as a scalar.
Value scalar_of(Context& c, const Value& x) { return shaped(x)->ndim == 0 ? x : c.reshape(x, {}); }

// Scale or zero point: one element as a scalar, a vector so that it runs along `axis` of a tensor
// of rank `ndim`, others as they are.
Value along(Context& c, const Value& x, int64_t axis, int64_t ndim) {
  const auto type = shaped(x);
  if (is_one(*type->shape)) return scalar_of(c, x);
  if (type->ndim != 1) return x;
  Dims dims(static_cast<size_t>(ndim - axis), int64(1));
  dims[0] = type->dim(0);
  return dims.size() == 1 ? x : c.reshape(x, dims);
}

void check_integers(Context& c, size_t i) {
  if (!c.dtype(i).is_integer()) unsupported("type {}", c.dtype(i).str());
}
void check_scale(Context& c, size_t i) {
  if (!c.dtype(i).is_float())
    c.bad(kDTypeMismatch, "operand {} of `{}`, a scale, has dtype {}; expected a float", i,
          c.node().op_type, c.dtype(i).str());
}
void check_one(Context& c, size_t i) {
  if (!is_one(c.shape(i)))
    unsupported("operand {}, a scale or zero point of shape {}", i, str(c.shape(i)));
}

Value zero_or(Context& c, size_t i, DType dtype) {
  if (!c.has(i)) return c.scalar(dtype, 0);
  if (c.dtype(i) != dtype)
    c.bad(kDTypeMismatch, "operand {} of `{}`, a zero point, has dtype {}; its tensor has {}", i,
          c.node().op_type, c.dtype(i).str(), dtype.str());
  check_one(c, i);
  return scalar_of(c, c.value(i));
}

Value dequantised(Context& c, const Quantised& q) {
  check_integers(c, q.data);
  check_scale(c, q.scale);
  check_one(c, q.scale);
  const Value zero = zero_or(c, q.zero_point, c.dtype(q.data));
  return c.op("dequantize", {c.value(q.data), scalar_of(c, c.value(q.scale)), zero});
}

// The dtype of the result where its zero point may be left out.
DType result_dtype(Context& c, size_t zero_point, DType otherwise) {
  const DType dtype = c.has(zero_point) ? c.dtype(zero_point) : otherwise;
  if (!dtype.is_integer()) unsupported("a result of type {}", dtype.str());
  return dtype;
}

Value quantised(Context& c, const Value& x, size_t scale, size_t zero_point, DType dtype) {
  check_scale(c, scale);
  check_one(c, scale);
  return c.op("quantize", {x, scalar_of(c, c.value(scale)), zero_or(c, zero_point, dtype)},
              {{"out_dtype", dtype}});
}

// Sums of products in the steps of the result: sums * (a * b / y), rounded to even. `factor` is
// a * b / y, which broadcasts to the sums.
Value requantised(Context& c, const Value& sums, const Value& factor, size_t zero_point,
                  DType dtype) {
  const Value steps = c.op("multiply", {c.cast(sums, kFloat32), c.cast(factor, kFloat32)});
  return c.op("quantize", {steps, c.scalar(kFloat32, 1), zero_or(c, zero_point, dtype)},
              {{"out_dtype", dtype}});
}

Value product_of_scales(Context& c, const Value& a, const Value& b) {
  return c.op("multiply", {a, c.cast(b, shaped(a)->dtype)});
}

// a * b / y of the scales of two operands and the result.
Value scale_factor(Context& c, const Value& a, const Value& b, size_t y) {
  check_scale(c, y);
  check_one(c, y);
  const Value both = product_of_scales(c, a, b);
  return c.op("divide", {both, c.cast(scalar_of(c, c.value(y)), shaped(both)->dtype)});
}

// ---- products -----------------------------------------------------------------------------------

// Scale `i` of the rows of the left matrix, or of the columns of the right one.
Value matrix_scale(Context& c, size_t i, bool is_left) {
  check_scale(c, i);
  return along(c, c.value(i), is_left ? 0 : 1, 2);
}

Results convert_qlinear_matmul(Context& c) {
  check_integers(c, 0);
  check_integers(c, 3);
  const Value sums =
      convert_as(c, "MatMulInteger", kOpset,
                 {c.value(0), c.value(3), c.value_or_null(2), c.value_or_null(5)})[0];
  const Value factor = scale_factor(c, matrix_scale(c, 1, true), matrix_scale(c, 4, false), 6);
  return {requantised(c, sums, factor, 7, result_dtype(c, 7, c.dtype(0)))};
}

Results convert_qlinear_conv(Context& c) {
  check_integers(c, 0);
  check_integers(c, 3);
  check_scale(c, 1);
  check_one(c, 1);
  check_scale(c, 4);
  Value sums = convert_as(c, "ConvInteger", kOpset,
                          {c.value(0), c.value(3), c.value_or_null(2), c.value_or_null(5)})[0];
  const int64_t ndim = shaped(sums)->ndim;
  if (c.has(8)) {
    if (c.dtype(8) != kInt32 || c.ndim(8) != 1)
      c.bad(kTypeMismatch, "the bias of `{}` has dtype {} and rank {}; expected int32 and 1",
            c.node().op_type, c.dtype(8).str(), c.ndim(8));
    Dims dims(static_cast<size_t>(ndim) - 1, int64(1));
    dims[0] = c.shape(8)[0];
    sums = c.op("add", {sums, c.reshape(c.value(8), dims)});
  }
  const Value factor = scale_factor(c, scalar_of(c, c.value(1)), along(c, c.value(4), 1, ndim), 6);
  return {requantised(c, sums, factor, 7, result_dtype(c, 7, c.dtype(0)))};
}

Results convert_qgemm(Context& c) {
  const double alpha = c.float_attr("alpha", 1);
  for (const size_t i : {size_t{0}, size_t{3}}) {
    check_integers(c, i);
    if (c.ndim(i) != 2)
      c.bad(kRankMismatch, "operand {} of `QGemm` has rank {}; expected 2", i, c.ndim(i));
  }
  check_one(c, 1);
  const auto matrix = [&](size_t i, const char* attr) {
    return c.flag_attr(attr) ? c.transpose(c.value(i), {1, 0}) : c.value(i);
  };
  const Value a = matrix(0, "transA"), b = matrix(3, "transB");
  Value sums =
      convert_as(c, "MatMulInteger", kOpset, {a, b, c.value_or_null(2), c.value_or_null(5)})[0];
  if (c.has(6)) sums = c.op("add", {sums, c.value(6)});
  const Value a_scale = scalar_of(c, c.value(1));
  const Value left = c.op("multiply", {a_scale, c.scalar(shaped(a_scale)->dtype, alpha)});
  const Value right = matrix_scale(c, 4, false);
  if (c.has(7))
    return {
        requantised(c, sums, scale_factor(c, left, right, 7), 8, result_dtype(c, 8, c.dtype(0)))};
  return {c.op("multiply",
               {c.cast(sums, kFloat32), c.cast(product_of_scales(c, left, right), kFloat32)})};
}

// Floats of integer sums, and a bias.
Value scaled_sums(Context& c, const Value& sums, const Value& factor, size_t bias) {
  const Value y = c.op("multiply", {c.cast(sums, shaped(factor)->dtype), factor});
  return c.has(bias) ? c.op("add", {y, c.value(bias)}) : y;
}

Results convert_matmul_integer_to_float(Context& c) {
  const Value sums =
      convert_as(c, "MatMulInteger", kOpset,
                 {c.value(0), c.value(1), c.value_or_null(4), c.value_or_null(5)})[0];
  const Value factor = product_of_scales(c, matrix_scale(c, 2, true), matrix_scale(c, 3, false));
  return {scaled_sums(c, sums, factor, 6)};
}

Results convert_dynamic_quantize_matmul(Context& c) {
  const Results a = convert_as(c, "DynamicQuantizeLinear", kOpset, {c.value(0)});
  const Value sums =
      convert_as(c, "MatMulInteger", kOpset, {a[0], c.value(1), a[2], c.value_or_null(3)})[0];
  return {scaled_sums(c, sums, product_of_scales(c, a[1], matrix_scale(c, 2, false)), 4)};
}

// ---- what is computed on floats -----------------------------------------------------------------

// Operator `name` of the floats that operand 0 stands for.
Results convert_unary(Context& c, const char* name, int64_t opset, const Value& x) {
  const Value y = convert_as(c, name, opset, {x})[0];
  return {quantised(c, y, 3, 4, result_dtype(c, 4, c.dtype(0)))};
}

OperatorRow unary(const char* name, const char* op) {
  const auto convert = [op](Context& c) -> Results {
    return convert_unary(c, op, kOpset, dequantised(c, {0, 1, 2}));
  };
  return {name, 1, 4, 5, convert, "int8, uint8", "", "com.microsoft"};
}

Results convert_add(Context& c) {
  const Value a = dequantised(c, {0, 1, 2}), b = dequantised(c, {3, 4, 5});
  return {quantised(c, c.op("add", {a, b}), 6, 7, result_dtype(c, 7, c.dtype(0)))};
}

// A product of integers, scaled once.
Results convert_multiply(Context& c) {
  const auto steps = [&](const Quantised& q) {
    check_integers(c, q.data);
    check_scale(c, q.scale);
    check_one(c, q.scale);
    const Value zero = zero_or(c, q.zero_point, c.dtype(q.data));
    return c.op("subtract", {c.cast(c.value(q.data), kInt32), c.cast(zero, kInt32)});
  };
  const Value product = c.op("multiply", {steps({0, 1, 2}), steps({3, 4, 5})});
  const Value factor = scale_factor(c, scalar_of(c, c.value(1)), scalar_of(c, c.value(4)), 6);
  return {requantised(c, product, factor, 7, result_dtype(c, 7, c.dtype(0)))};
}

// Pools of images whose channels may be the last axis.
Results convert_pool(Context& c, const char* op) {
  const bool channels_last = c.flag_attr("channels_last");
  const int64_t ndim = c.ndim(0);
  if (ndim < 3)
    c.bad(kRankMismatch, "operand 0 of `{}` has rank {}; expected at least 3", c.node().op_type,
          ndim);
  Ints first = {0, ndim - 1}, last = {0};
  for (int64_t d = 1; d + 1 < ndim; ++d) first.push_back(d);
  for (int64_t d = 2; d < ndim; ++d) last.push_back(d);
  last.push_back(1);
  Value x = dequantised(c, {0, 1, 2});
  if (channels_last) x = c.transpose(x, first);
  Value y = convert_as(c, op, kOpset, {x})[0];
  if (channels_last) y = c.transpose(y, last);
  return {quantised(c, y, 3, 4, result_dtype(c, 4, c.dtype(0)))};
}

Results convert_softmax(Context& c) {
  const int64_t opset = c.int_attr("opset");
  return convert_unary(c, "Softmax", opset, dequantised(c, {0, 1, 2}));
}

Results convert_reduce_mean(Context& c) {
  return convert_unary(c, "ReduceMean", kOpset, dequantised(c, {0, 1, 2}));
}

Results convert_concat(Context& c) {
  if ((c.input_count() - 2) % 3 != 0)
    c.bad(kBadModel, "`QLinearConcat` has {} operands; expected 2 and 3 for each part",
          c.input_count());
  std::vector<Value> parts;
  for (size_t i = 2; i < c.input_count(); i += 3)
    parts.push_back(dequantised(c, {i, i + 1, i + 2}));
  const Value y = convert_as(c, "Concat", kOpset, parts)[0];
  return {quantised(c, y, 0, 1, result_dtype(c, 1, c.dtype(2)))};
}

Results convert_where(Context& c) {
  const Value x = dequantised(c, {1, 2, 3}), y = dequantised(c, {4, 5, 6});
  const Value z = c.op("where", {c.value(0), x, y});
  return {quantised(c, z, 7, 8, result_dtype(c, 8, c.dtype(1)))};
}

}  // namespace

std::vector<OperatorRow> qlinear_rows() {
  const std::string one_scale = "one scale for the result";
  return {
      {"QLinearMatMul", 10, 8, 8, convert_qlinear_matmul, "int8, uint8", one_scale},
      {"QLinearConv", 10, 8, 9, convert_qlinear_conv, "int8, uint8", "1 to 3 spatial axes"},
      contrib("QGemm", 6, 9, convert_qgemm, "int8, uint8", one_scale),
      contrib("MatMulIntegerToFloat", 4, 7, convert_matmul_integer_to_float),
      contrib("DynamicQuantizeMatMul", 3, 5, convert_dynamic_quantize_matmul, "float32"),
      contrib(
          "QuantizeLinear", 2, 3, [](Context& c) { return read_as(c, "QuantizeLinear", kOpset); },
          "floats"),
      contrib(
          "DequantizeLinear", 2, 3,
          [](Context& c) { return read_as(c, "DequantizeLinear", kOpset); },
          "int8, uint8, int16, uint16, int32"),
      contrib("QLinearAdd", 7, 8, convert_add),
      contrib("QLinearMul", 7, 8, convert_multiply),
      unary("QLinearSigmoid", "Sigmoid"),
      unary("QLinearLeakyRelu", "LeakyRelu"),
      contrib("QLinearSoftmax", 5, 5, convert_softmax),
      contrib("QLinearReduceMean", 4, 5, convert_reduce_mean),
      contrib(
          "QLinearAveragePool", 4, 5, [](Context& c) { return convert_pool(c, "AveragePool"); },
          "int8, uint8", "1 to 3 spatial axes"),
      contrib("QLinearGlobalAveragePool", 5, 5,
              [](Context& c) { return convert_pool(c, "GlobalAveragePool"); }),
      contrib("QLinearConcat", 5, -1, convert_concat),
      contrib("QLinearWhere", 9, 9, convert_where, "int8, uint8", one_scale),
  };
}

}  // namespace tenon::onnx
