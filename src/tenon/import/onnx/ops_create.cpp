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

// How many numbers there are from `start` below `limit`: of floats as the network computes it, so
// that a rounded quotient gives the same number everywhere.
Expr range_length(Context& c, DType dtype) {
  if (!dtype.is_float()) {
    const Expr start = c.dims(0, "start").at(0), limit = c.dims(1, "limit").at(0),
               delta = c.dims(2, "delta").at(0);
    c.require(ne(delta, int64(0)), kBadArgument,
              "`Range` has a delta of 0; expected another number");
    // Their difference does not wrap.
    const Expr most = int64(int64_t{1} << 62), least = int64(-(int64_t{1} << 62));
    for (const Expr& end : {start, limit})
      c.require(logical_and(end >= least, end <= most), kOverflow,
                "`Range` ends beyond 2^62 elements");
    const Expr up = ceildiv(limit - start, max(delta, int64(1))),
               down = ceildiv(start - limit, max(int64(0) - delta, int64(1)));
    return arith::simplify(max(select(delta > int64(0), up, down), int64(0)));
  }
  const auto wide = [&](size_t i) { return c.cast(c.reshape(c.value(i), {}), kFloat64); };
  const Value quotient = c.op("divide", {c.op("subtract", {wide(1), wide(0)}), wide(2)});
  const Value count = c.op("ceil", {quotient});
  // An infinite quotient has no integer value.
  const Value limited =
      c.op("minimum", {c.op("maximum", {count, c.scalar(kFloat64, 0)}), c.scalar(kFloat64, 1e15)});
  return max(c.numbers_of(c.cast(limited, kInt64), "limit").at(0), int64(0));
}

Results convert_range(Context& c) {
  c.ignore({"stash_type"});
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  const DType dtype = c.dtype(0);
  for (size_t i = 0; i < 3; ++i)
    if (!is_int(product(c.shape(i)), 1))
      c.bad(kShapeMismatch, "operand `{}` of `Range` has shape {}; expected one element", kNames[i],
            str(c.shape(i)));
  std::vector<Expr> ends;
  for (size_t i = 0; i < 3; ++i) {
    if (const auto data = c.constant(i)) {
      ends.push_back(dtype.is_float() ? imm(dtype, c.float_scalar(i, kNames[i]))
                                      : c.dims(i, kNames[i])[0]);
    } else if (c.elements(i)) {
      ends.push_back(c.elements(i)->values[0]);
    }
  }
  if (ends.size() == 3 && as_float(ends[2])) {
    if (*as_float(ends[2]) == 0)
      c.bad(kBadArgument, "`Range` has a delta of 0; expected another number");
    return {
        c.op("arange", {c.prim(ends[0]), c.prim(ends[1]), c.prim(ends[2])}, {{"dtype", dtype}})};
  }
  const Value places =
      c.op("arange", {c.prim(int64(0)), c.prim(range_length(c, dtype)), c.prim(int64(1))},
           {{"dtype", kInt64}});
  const DType wide = dtype.is_float() ? (dtype == kFloat64 ? kFloat64 : kFloat32) : dtype;
  const auto operand = [&](size_t i) { return c.cast(c.reshape(c.value(i), {}), wide); };
  const Value steps = c.op("multiply", {c.cast(places, wide), operand(2)});
  return {c.cast(c.op("add", {operand(0), steps}), dtype)};
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
  const Dims k = c.has(1) ? c.dims(1, "k") : Dims{int64(0)};
  if (k.size() != 1)
    c.bad(kShapeMismatch, "operand `k` of `Trilu` has {} elements; expected 1", k.size());
  if (const auto known = as_int(k[0]))
    return {c.op(upper ? "triu" : "tril", {c.value(0)}, {{"k", *known}})};
  // Element (i, j) stays where j - i >= k, below the diagonal where j - i <= k.
  const int64_t ndim = c.ndim(0);
  if (ndim < 2) c.bad(kRankMismatch, "`Trilu` of a tensor of rank {}; expected 2 or more", ndim);
  const Dims shape = c.shape(0);
  const auto count = [&](const Expr& extent) {
    return c.op("arange", {c.prim(int64(0)), c.prim(extent), c.prim(int64(1))},
                {{"dtype", kInt64}});
  };
  const Expr rows = shape[static_cast<size_t>(ndim - 2)], columns = shape.back();
  const Value distance =
      c.op("subtract", {count(columns), c.reshape(count(rows), {rows, int64(1)})});
  const Value stays = c.op(upper ? "greater_equal" : "less_equal",
                           {distance, c.op("shape_to_tensor", {c.shape_value(k)})});
  return {c.op("where", {stays, c.value(0), c.scalar(c.dtype(0), 0)})};
}

Results convert_one_hot(Context& c) {
  const Dims depths = c.dtype(1).is_float() ? c.numbers_of(c.cast(c.value(1), kInt64), "depth")
                                            : c.dims(1, "depth");
  if (depths.size() != 1)
    c.bad(kShapeMismatch, "operand `depth` of `OneHot` has {} elements; expected 1", depths.size());
  const auto depth = as_int(depths[0]);
  if (depth && *depth <= 0) c.bad(kBadArgument, "`OneHot` of depth {}; expected 1 or more", *depth);
  const int64_t axis = c.int_attr("axis", -1);
  const Value values = c.value(2);
  const auto item = [&](int64_t i) {
    const Value index = c.ints_constant({i});
    return c.reshape(c.op("take", {values, index}, {{"axis", 0}}), {});
  };
  const std::string wrong =
      fmt::format("operand `values` of `OneHot` has shape {}; expected (2,)", str(c.shape(2)));
  if (c.ndim(2) != 1) c.bad(kShapeMismatch, "{}", wrong);
  c.require(eq(c.shape(2)[0], int64(2)), kShapeMismatch, wrong);
  const Value indices = c.dtype(0).is_float() ? c.cast(c.value(0), kInt64) : c.value(0);
  if (depth)
    return {c.op("one_hot", {indices, item(1), item(0)}, {{"depth", *depth}, {"axis", axis}})};
  const int64_t ndim = c.ndim(0), at = c.axis(axis, ndim + 1);
  c.require(depths[0] > int64(0), kBadArgument, "the depth of `OneHot` is not positive");
  Dims spread = c.shape(0), classes(static_cast<size_t>(ndim + 1), int64(1));
  spread.insert(spread.begin() + at, int64(1));
  classes[static_cast<size_t>(at)] = depths[0];
  const Value range =
      c.op("arange", {c.prim(int64(0)), c.prim(depths[0]), c.prim(int64(1))}, {{"dtype", kInt64}});
  const Value given = c.reshape(c.cast(indices, kInt64), spread);
  const Value zero = c.scalar(kInt64, 0), size = c.op("shape_to_tensor", {c.shape_value(depths)});
  // Negative ones count from the end.
  const Value place =
      c.op("where", {c.op("less", {given, zero}), c.op("add", {given, size}), given});
  return {c.op("where", {c.op("equal", {place, c.reshape(range, classes)}), item(1), item(0)})};
}

}  // namespace

std::vector<OperatorRow> create_rows() {
  return {
      {"Constant", 1, 0, 0, convert_constant, "all", "no strings"},
      {"ConstantOfShape", 9, 1, 1, convert_constant_of_shape, "all"},
      {"Range", 11, 3, 3, convert_range, "numbers"},
      {"EyeLike", 9, 1, 1, convert_eye_like, "numbers"},
      {"Trilu", 14, 1, 2, convert_trilu, "all"},
      {"OneHot", 9, 3, 3, convert_one_hot, "all"},
  };
}

}  // namespace tenon::onnx
