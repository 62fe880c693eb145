// SPDX-License-Identifier: Apache-2.0
// Gathering and scattering by indices.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

Results convert_gather(Context& c) {
  const int64_t axis = c.axis(c.int_attr("axis", 0), c.ndim(0));
  return {c.op("take", {c.value(0), c.value(1)}, {{"axis", axis}})};
}

Results convert_gather_elements(Context& c) {
  const int64_t axis = c.axis(c.int_attr("axis", 0), c.ndim(0));
  return {c.op("gather_elements", {c.value(0), c.value(1)}, {{"axis", axis}})};
}

Results convert_gather_nd(Context& c) {
  return {
      c.op("gather_nd", {c.value(0), c.value(1)}, {{"batch_dims", c.int_attr("batch_dims", 0)}})};
}

std::string reduction_of(Context& c) {
  const std::string text = c.string_attr("reduction", "none");
  if (text != "none" && text != "add" && text != "mul" && text != "min" && text != "max")
    c.bad(kBadAttribute,
          "attribute `reduction` of `{}` is `{}`; expected none, add, mul, min or max",
          c.node().op_type, text);
  return text == "none" ? "update" : text;
}

Results convert_scatter_elements(Context& c) {
  const int64_t axis = c.axis(c.int_attr("axis", 0), c.ndim(0));
  return {c.op("scatter_elements", {c.value(0), c.value(1), c.value(2)},
               {{"axis", axis}, {"reduction", reduction_of(c)}})};
}

Results convert_scatter_nd(Context& c) {
  return {
      c.op("scatter_nd", {c.value(0), c.value(1), c.value(2)}, {{"reduction", reduction_of(c)}})};
}

Results convert_reverse_sequence(Context& c) {
  return {c.op(
      "reverse_sequence", {c.value(0), c.value(1)},
      {{"seq_axis", c.int_attr("time_axis", 0)}, {"batch_axis", c.int_attr("batch_axis", 1)}})};
}

Results convert_top_k(Context& c) {
  c.ignore({"sorted"});
  const int64_t axis = c.axis(c.int_attr("axis", -1), c.ndim(0));
  const Dims operand = c.opset() < 10 ? Dims{int64(c.int_attr("k"))} : c.dims(1, "K");
  if (operand.size() != 1)
    c.bad(kShapeMismatch, "operand `K` of `TopK` has {} elements; expected 1", operand.size());
  const auto known = as_int(operand[0]);
  if (known && *known < 1) unsupported("k = {}", *known);
  // Where only the run knows k, all elements are sorted and the first k taken.
  const Value both = c.op("topk", {c.value(0)},
                          {{"k", known.value_or(-1)},
                           {"axis", axis},
                           {"largest", c.flag_attr("largest", true)},
                           {"dtype", kInt64}});
  Results results = {c.builder().emit(make<graph::TupleGetItem>(both, 0, c.origin())),
                     c.builder().emit(make<graph::TupleGetItem>(both, 1, c.origin()))};
  if (known) return results;
  const Expr& k = operand[0];
  const Expr extent = c.shape(0)[static_cast<size_t>(axis)];
  c.require(logical_and(k >= int64(0), k <= extent), kBadArgument,
            "`K` is negative, or greater than the axis");
  for (Value& result : results)
    result = c.op("strided_slice",
                  {result, c.shape_value({int64(axis)}), c.shape_value({int64(0)}),
                   c.shape_value({k}), c.shape_value({int64(1)})},
                  {{"assume_inbound", true}});
  return results;
}

}  // namespace

std::vector<OperatorRow> index_rows() {
  return {
      {"Gather", 1, 2, 2, convert_gather, "all"},
      {"GatherElements", 11, 2, 2, convert_gather_elements, "all"},
      {"GatherND", 11, 2, 2, convert_gather_nd, "all"},
      {"Scatter", 9, 3, 3, convert_scatter_elements, "all"},
      {"ScatterElements", 11, 3, 3, convert_scatter_elements, "all"},
      {"ScatterND", 11, 3, 3, convert_scatter_nd, "all"},
      {"TopK", 1, 1, 2, convert_top_k, "numbers"},
      {"ReverseSequence", 10, 2, 2, convert_reverse_sequence, "all"},
  };
}

}  // namespace tenon::onnx
