// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors: constants, ranges, fills, triangles.
#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

template <typename T>
Ref<TensorData> vector_of(DType dtype, const std::vector<T>& values) {
  return TensorData::of(dtype, {static_cast<int64_t>(values.size())}, values);
}

Results convert_constant(Context& c) {
  Ref<TensorData> data;
  if (c.has_attr("value")) {
    data = c.tensor_attr("value").data;
  } else if (c.has_attr("value_int")) {
    data = TensorData::of(kInt64, {}, std::vector<int64_t>{c.int_attr("value_int")});
  } else if (c.has_attr("value_ints")) {
    data = vector_of(kInt64, c.ints_attr("value_ints"));
  } else if (c.has_attr("value_float")) {
    data = TensorData::of(kFloat32, {},
                          std::vector<float>{static_cast<float>(c.float_attr("value_float"))});
  } else if (c.has_attr("value_floats")) {
    std::vector<float> values;
    for (const double v : c.floats_attr("value_floats", {}))
      values.push_back(static_cast<float>(v));
    data = vector_of(kFloat32, values);
  } else if (c.has_attr("value_string") || c.has_attr("value_strings")) {
    unsupported("a constant of type string");
  } else if (c.has_attr("sparse_value")) {
    unsupported("a sparse constant");
  } else {
    c.bad(kBadAttribute, "`Constant` has no value");
  }
  return {make<graph::Constant>(std::move(data), c.origin())};
}

Results convert_constant_of_shape(Context& c) {
  const Dims dims = c.dims(0, "shape");
  std::vector<std::byte> element(4, std::byte{0});
  DType dtype = kFloat32;
  if (c.has_attr("value")) {
    const Ref<TensorData> value = c.tensor_attr("value").data;
    if (value->elements() != 1)
      c.bad(kBadAttribute, "attribute `value` of `ConstantOfShape` has {} elements; expected 1",
            value->elements());
    dtype = value->dtype;
    const auto bytes = value->data();
    element.assign(bytes.begin(), bytes.end());
  }
  for (const Expr& dim : dims)
    if (as_int(dim) && *as_int(dim) < 0)
      c.bad(kShapeMismatch, "`ConstantOfShape` of shape {}; expected no negative dimension",
            str(dims));
  if (const auto shape = as_ints(dims))
    return {
        make<graph::Constant>(TensorData::splat(dtype, *shape, element, c.origin()), c.origin())};
  const Value one = make<graph::Constant>(TensorData::owned(dtype, {}, element));
  return {c.op("full", {c.shape_value(dims), one}, {{"dtype", dtype}})};
}

Results convert_range(Context& c) {
  c.ignore({"stash_type"});
  const DType dtype = c.dtype(0);
  const auto scalar = [&](size_t i, const char* what) -> Expr {
    if (dtype.is_float()) return imm(dtype, c.float_scalar(i, what));
    const Dims values = c.dims(i, what);
    if (values.size() != 1)
      c.bad(kShapeMismatch, "operand `{}` of `Range` has {} elements; expected 1", what,
            values.size());
    return values[0];
  };
  const Expr start = scalar(0, "start"), limit = scalar(1, "limit"), delta = scalar(2, "delta");
  const auto step = as_float(delta);
  if (is_int(delta, 0) || (step && *step == 0))
    c.bad(kBadArgument, "`Range` has a delta of 0; expected another number");
  return {c.op("arange", {c.prim(start), c.prim(limit), c.prim(delta)}, {{"dtype", dtype}})};
}

Results convert_eye_like(Context& c) {
  if (c.ndim(0) != 2)
    c.bad(kRankMismatch, "`EyeLike` of a tensor of rank {}; expected 2", c.ndim(0));
  DType dtype = c.dtype(0);
  if (c.has_attr("dtype")) {
    const auto asked = dtype_of(c.int_attr("dtype"));
    if (!asked) unsupported("type {}", data_type_name(c.int_attr("dtype")));
    dtype = *asked;
  }
  const Dims shape = c.shape(0);
  return {c.op("eye", {c.prim(shape[0]), c.prim(shape[1]), c.prim(int64(c.int_attr("k", 0)))},
               {{"dtype", dtype}})};
}

Results convert_trilu(Context& c) {
  const bool upper = c.flag_attr("upper", true);
  const int64_t k = c.has(1) ? c.int_scalar(1, "k") : 0;
  return {c.op(upper ? "triu" : "tril", {c.value(0)}, {{"k", k}})};
}

Results convert_one_hot(Context& c) {
  const int64_t depth = c.dtype(1).is_float() ? static_cast<int64_t>(c.float_scalar(1, "depth"))
                                              : c.int_scalar(1, "depth");
  if (depth < 0) c.bad(kBadArgument, "`OneHot` of depth {}; expected 0 or more", depth);
  const int64_t axis = c.int_attr("axis", -1);
  const Value values = c.value(2);
  const auto item = [&](int64_t i) {
    const Value index = c.ints_constant({i});
    return c.reshape(c.op("take", {values, index}, {{"axis", 0}}), {});
  };
  if (c.ndim(2) != 1 || !is_int(c.shape(2)[0], 2))
    c.bad(kShapeMismatch, "operand `values` of `OneHot` has shape {}; expected (2,)",
          str(c.shape(2)));
  const Value indices = c.dtype(0).is_float() ? c.cast(c.value(0), kInt64) : c.value(0);
  return {c.op("one_hot", {indices, item(1), item(0)}, {{"depth", depth}, {"axis", axis}})};
}

}  // namespace

std::vector<OperatorRow> create_rows() {
  return {
      {"Constant", 1, 0, 0, convert_constant, "all", "no strings"},
      {"ConstantOfShape", 9, 1, 1, convert_constant_of_shape, "all", "shape known at compile time"},
      {"Range", 11, 3, 3, convert_range, "numbers", "operands known at compile time"},
      {"EyeLike", 9, 1, 1, convert_eye_like, "numbers"},
      {"Trilu", 14, 1, 2, convert_trilu, "all", "k known at compile time"},
      {"OneHot", 9, 3, 3, convert_one_hot, "all", "depth known at compile time"},
  };
}

}  // namespace tenon::onnx
