// SPDX-License-Identifier: Apache-2.0
// Results whose size depends on data: what is not 0, distinct elements, boxes that are kept. The
// operator's result has the greatest size that there can be, or is given the size; the program reads
// how many there are.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

Value item_of(Context& c, const Value& tuple, int64_t i) {
  return c.builder().emit(make<graph::TupleGetItem>(tuple, i, c.origin()));
}

// The number in `count`, which the network computes, at most `most`.
Expr counted(Context& c, const Value& count, const Expr& most) {
  if (is_int(arith::simplify(most), 0)) return int64(0);
  const Expr number = c.numbers_of(count, "count").at(0);
  c.require(logical_and(number >= int64(0), number <= most), kOutOfBounds,
            "more elements than there are places");
  return number;
}

Value first_of(Context& c, const Value& x, int64_t axis, const Expr& count) {
  return c.op("strided_slice",
              {x, c.shape_value({int64(axis)}), c.shape_value({int64(0)}), c.shape_value({count}),
               c.shape_value({int64(1)})},
              {{"assume_inbound", true}});
}

// The places of what is not 0 in `x`, of rank 1 or more: (rank, number).
Value places(Context& c, const Value& x) {
  const auto type = shaped(x);
  const Value counts = type->dtype.is_bool() ? x : c.op("not_equal", {x, c.scalar(type->dtype, 0)});
  const Value count = c.op("sum", {c.cast(counts, kInt64)});
  const Expr number = counted(c, count, product(*type->shape));
  return c.op("nonzero", {counts, c.shape_value({number})});
}

Results convert_nonzero(Context& c) {
  if (c.ndim(0) > 0) return {places(c, c.value(0))};
  // Of a scalar ONNX gives no row at all.
  const Value columns = places(c, c.reshape(c.value(0), {int64(1)}));
  return {c.op("strided_slice",
               {columns, c.shape_value({int64(0)}), c.shape_value({int64(0)}),
                c.shape_value({int64(0)}), c.shape_value({int64(1)})},
               {{"assume_inbound", true}})};
}

Results convert_compress(Context& c) {
  Value x = c.value(0);
  int64_t axis = 0;
  if (c.has_attr("axis"))
    axis = c.axis(c.int_attr("axis"), c.ndim(0));
  else
    x = c.reshape(x, {arith::simplify(product(c.shape(0)))});
  if (c.ndim(1) != 1)
    c.bad(kRankMismatch, "operand `condition` of `Compress` has rank {}; expected 1", c.ndim(1));
  const Expr extent = (*shaped(x)->shape)[static_cast<size_t>(axis)], length = c.shape(1)[0];
  const auto known_extent = as_int(extent), known_length = as_int(length);
  if (known_extent && known_length && *known_length > *known_extent)
    c.bad(kShapeMismatch, "`Compress` has {} conditions for {} elements", *known_length,
          *known_extent);
  c.require(length <= extent, kShapeMismatch, "`Compress` has more conditions than elements");
  const Value indices = places(c, c.cast(c.value(1), kBool));
  const Expr count = (*shaped(indices)->shape)[1];
  return {c.op("take", {x, c.reshape(indices, {count})}, {{"axis", axis}})};
}

Results convert_unique(Context& c) {
  Value x = c.value(0);
  const Dims shape = c.shape(0);
  const bool sorted = c.flag_attr("sorted", true), has_axis = c.has_attr("axis");
  const int64_t axis = has_axis ? c.axis(c.int_attr("axis"), c.ndim(0)) : 0;
  const Expr all = arith::simplify(product(shape));
  const Expr extent = has_axis ? shape[static_cast<size_t>(axis)] : all;
  Value rows = x;
  if (!has_axis) {
    x = rows = c.reshape(x, {all});
  } else {
    std::vector<int64_t> order = {axis};
    Dims rest;
    for (int64_t d = 0; d < c.ndim(0); ++d) {
      if (d == axis) continue;
      order.push_back(d);
      rest.push_back(shape[static_cast<size_t>(d)]);
    }
    rows = c.transpose(x, order);
    if (!rest.empty()) rows = c.reshape(rows, {extent, arith::simplify(product(rest))});
  }
  if (c.dtype(0).is_bool()) rows = c.cast(rows, kUInt8);
  if (c.dtype(0).is_string()) rows = c.op("string.rank", {rows});
  const Value all_results = c.op("unique_positions", {rows}, {{"sorted", sorted}});
  const Expr count = counted(c, item_of(c, all_results, 3), extent);
  const Value first = first_of(c, item_of(c, all_results, 0), 0, count);
  Results results = {c.op("take", {x, first}, {{"axis", axis}})};
  if (c.output_count() > 1) results.push_back(first);
  if (c.output_count() > 2) results.push_back(item_of(c, all_results, 1));
  if (c.output_count() > 3) results.push_back(first_of(c, item_of(c, all_results, 2), 0, count));
  return results;
}

Results convert_non_max_suppression(Context& c) {
  const auto given = [&](size_t i) {
    return c.has(i) && !(c.ndim(i) == 1 && is_int(c.shape(i)[0], 0));
  };
  const auto scalar = [&](size_t i, std::string_view what) {
    if (!is_int(arith::simplify(product(c.shape(i))), 1))
      c.bad(kShapeMismatch, "operand `{}` of `NonMaxSuppression` has shape {}; expected one number",
            what, str(c.shape(i)));
    return c.reshape(c.value(i), {});
  };
  Expr most = int64(0);
  if (given(2)) {
    const Dims values = c.dims(2, "max_output_boxes_per_class");
    if (values.size() != 1)
      c.bad(kShapeMismatch,
            "operand `max_output_boxes_per_class` of `NonMaxSuppression` has {} elements; expected "
            "1",
            values.size());
    most = values[0];
  }
  std::vector<Value> args = {c.value(0), c.value(1), c.prim(most)};
  args.push_back(given(3) ? scalar(3, "iou_threshold") : c.scalar(kFloat32, 0));
  if (given(4)) args.push_back(scalar(4, "score_threshold"));
  const Value both = c.op("vision.all_class_non_max_suppression", args,
                          {{"center_point_box", c.flag_attr("center_point_box")}});
  const Value rows = item_of(c, both, 0);
  const Expr count = counted(c, item_of(c, both, 1), (*shaped(rows)->shape)[0]);
  return {first_of(c, rows, 0, count)};
}

}  // namespace

std::vector<OperatorRow> select_rows() {
  return {
      {"NonZero", 9, 1, 1, convert_nonzero, "numbers, bool"},
      {"Compress", 9, 2, 2, convert_compress, "all"},
      {"Unique", 11, 1, 1, convert_unique, "all"},
      {"NonMaxSuppression", 10, 2, 5, convert_non_max_suppression, "float32"},
  };
}

}  // namespace tenon::onnx
