// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

// Narrow floats are summed in float32; `out_dtype` says what the sums of integers are.
Value product(OpCall& c, const Value& a, const Value& b) {
  const DType dtype = shaped(a)->dtype;
  const DType asked = c.dtype_attr("out_dtype", dtype);
  const bool narrow = dtype.is_float() && dtype.bits < 32;
  const DType sums = narrow ? kFloat32 : asked;
  return c.cast(c.op("matmul", {a, b}, {{"out_dtype", sums == dtype ? kVoid : sums}}), asked);
}

void check_units(OpCall& c, const Value& result) {
  if (!c.has("units")) return;
  const int64_t units = c.integer("units");
  const Expr last = shaped(result)->dim(-1);
  if (const auto known = as_int(last); known && *known != units)
    c.bad(kShapeMismatch, "attribute `units` of `{}` is {}; the weight gives {}", c.name(), units,
          *known);
}

Value flipped(OpCall& c, const Value& x) {
  const int64_t ndim = shaped(x)->ndim;
  if (ndim < 2) c.bad(kRankMismatch, "`{}` transposes a tensor of rank {}", c.name(), ndim);
  Ints axes;
  for (int64_t d = 0; d < ndim; ++d) axes.push_back(d);
  std::swap(axes[static_cast<size_t>(ndim - 1)], axes[static_cast<size_t>(ndim - 2)]);
  return c.transpose(x, axes);
}

// x (..., k) times the transpose of the weight (units, k).
Value convert_dense(OpCall& c) {
  if (c.ndim(1) != 2)
    c.bad(kRankMismatch, "`nn.dense` has a weight of rank {}; expected 2", c.ndim(1));
  const Value y = product(c, c.arg(0), c.transpose(c.arg(1), {1, 0}));
  check_units(c, y);
  return y;
}

Value convert_matmul(OpCall& c) {
  const bool a = c.flag("transpose_a", false), b = c.flag("transpose_b", false);
  const Value y =
      product(c, a ? flipped(c, c.arg(0)) : c.arg(0), b ? flipped(c, c.arg(1)) : c.arg(1));
  check_units(c, y);
  return y;
}

Value convert_batch_matmul(OpCall& c) {
  const bool a = c.flag("transpose_a", false), b = c.flag("transpose_b", true);
  for (size_t i = 0; i < 2; ++i)
    if (c.ndim(i) != 3)
      c.bad(kRankMismatch, "operand {} of `nn.batch_matmul` has rank {}; expected 3", i, c.ndim(i));
  return product(c, a ? flipped(c, c.arg(0)) : c.arg(0), b ? flipped(c, c.arg(1)) : c.arg(1));
}

Value convert_bias_add(OpCall& c) {
  const int64_t ndim = c.ndim(0), axis = c.axis(c.integer("axis", 1), ndim);
  if (c.ndim(1) != 1)
    c.bad(kRankMismatch, "`nn.bias_add` has a bias of rank {}; expected 1", c.ndim(1));
  if (axis == ndim - 1) return c.op("add", {c.arg(0), c.arg(1)});
  Dims dims(static_cast<size_t>(ndim), int64(1));
  dims[static_cast<size_t>(axis)] = c.shape(1)[0];
  return c.op("add", {c.arg(0), c.reshape(c.arg(1), dims)});
}

Value convert_einsum(OpCall& c) {
  std::string text;
  for (const char letter : c.text("equation", ""))
    if (letter != ' ') text += letter;
  return c.op("einsum", {make<graph::Tuple>(c.items(0))}, {{"subscripts", text}});
}

}  // namespace

std::vector<OperatorRow> matrix_rows() {
  return {
      {"nn.dense", 2, 2, convert_dense, "matmul(x, permute_dims(w))"},
      {"nn.matmul", 2, 2, convert_matmul, "matmul"},
      {"nn.batch_matmul", 2, 2, convert_batch_matmul, "matmul"},
      {"nn.bias_add", 2, 2, convert_bias_add, "add, the bias reshaped"},
      {"einsum", 1, 1, convert_einsum},
  };
}

}  // namespace tenon::relay
