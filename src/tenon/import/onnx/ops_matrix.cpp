// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// Narrow floats are summed in float32.
Value product(Context& c, const Value& a, const Value& b) {
  const DType dtype = shaped(a)->dtype;
  const bool narrow = dtype.is_float() && dtype.bits < 32;
  return c.cast(c.op("matmul", {a, b}, {{"out_dtype", narrow ? kFloat32 : kVoid}}), dtype);
}

Results convert_matmul(Context& c) { return {product(c, c.value(0), c.value(1))}; }

Value scaled(Context& c, const Value& x, double factor) {
  if (factor == 1) return x;
  return c.op("multiply", {x, c.scalar(shaped(x)->dtype, factor)});
}

Results convert_gemm(Context& c) {
  c.ignore({"broadcast"});
  const double alpha = c.float_attr("alpha", 1), beta = c.float_attr("beta", 1);
  for (size_t i = 0; i < 2; ++i)
    if (c.ndim(i) != 2)
      c.bad(kRankMismatch, "operand {} of `Gemm` has rank {}; expected 2", i, c.ndim(i));
  if (c.stands_alone()) {
    std::vector<Value> args = {c.value(0), c.value(1)};
    if (c.has(2)) args.push_back(c.value(2));
    return {c.op("nn.gemm", args,
                 {{"alpha", alpha},
                  {"beta", beta},
                  {"transpose_a", c.flag_attr("transA")},
                  {"transpose_b", c.flag_attr("transB")}})};
  }
  const auto operand = [&](size_t i, const char* transposed) {
    const bool flips = c.flag_attr(transposed);
    return flips ? c.transpose(c.value(i), {1, 0}) : c.value(i);
  };
  const Value a = operand(0, "transA"), b = operand(1, "transB");
  Value y = scaled(c, product(c, a, b), alpha);
  if (c.has(2) && beta != 0) y = c.op("add", {y, scaled(c, c.value(2), beta)});
  return {y};
}

// A zero point for each row (of the left operand) or column (of the right one).
Value centred(Context& c, size_t operand, size_t zero_point, bool is_left) {
  const Value x = c.cast(c.value(operand), kInt32);
  if (!c.has(zero_point)) return x;
  Value zero = c.cast(c.value(zero_point), kInt32);
  const auto type = shaped(zero);
  if (type->ndim == 1 && !is_int(type->dim(0), 1)) {
    if (is_left) zero = c.reshape(zero, {type->dim(0), int64(1)});
  } else if (type->ndim <= 1) {
    zero = c.reshape(zero, {});
  }
  return c.op("subtract", {x, zero});
}

Results convert_matmul_integer(Context& c) {
  const Value a = centred(c, 0, 2, true), b = centred(c, 1, 3, false);
  return {c.op("matmul", {a, b})};
}

Results convert_einsum(Context& c) {
  std::vector<Value> operands;
  for (size_t i = 0; i < c.input_count(); ++i) operands.push_back(c.value(i));
  std::string text;
  for (const char letter : c.string_attr("equation", ""))
    if (letter != ' ') text += letter;
  return {c.op("einsum", {make<graph::Tuple>(std::move(operands))}, {{"subscripts", text}})};
}

Results convert_det(Context& c) {
  if (c.ndim(0) < 2)
    c.bad(kRankMismatch, "`Det` of a tensor of rank {}; expected at least 2", c.ndim(0));
  return {c.op("linalg.det", {c.value(0)})};
}

}  // namespace

std::vector<OperatorRow> matrix_rows() {
  return {
      {"MatMul", 1, 2, 2, convert_matmul, "numbers"},
      {"Gemm", 1, 2, 3, convert_gemm, "numbers"},
      {"MatMulInteger", 10, 2, 4, convert_matmul_integer, "int8, uint8"},
      {"Det", 11, 1, 1, convert_det, "floats"},
      {"Einsum", 12, 1, -1, convert_einsum, "numbers"},
  };
}

}  // namespace tenon::onnx
