// SPDX-License-Identifier: Apache-2.0
// Elements by indices, and sorting.
#include <algorithm>

#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

// Indices outside the axis: mode "clip" moves them to its ends, "wrap" counts on from the other
// end; of "fast", and of constants inside, nothing is said.
Value held(OpCall& c, const Value& indices, const Expr& extent, const std::string& mode) {
  if (mode == "fast") return indices;
  const DType dtype = shaped(indices)->dtype;
  const auto known = as_int(extent);
  if (const auto* constant = indices.as<graph::Constant>();
      constant && known && constant->data->dtype.is_integer() &&
      constant->data->elements() <= (1 << 20)) {
    const Ints values = constant->data->to_ints();
    if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= 0 && v < *known; }))
      return indices;
  }
  if (!known) unsupported("mode \"{}\" along a symbolic dimension", mode);
  if (*known == 0) c.bad(kShapeMismatch, "`{}` from an axis without elements", c.name());
  const auto number = [&](int64_t v) { return c.scalar(dtype, static_cast<double>(v)); };
  if (mode == "clip")
    return c.op("minimum", {c.op("maximum", {indices, number(0)}), number(*known - 1)});
  if (mode == "wrap") return c.op("floor_mod", {indices, number(*known)});
  c.bad(kBadAttribute, "attribute `mode` of `{}` is \"{}\"; expected clip, wrap or fast", c.name(),
        mode);
}

Value convert_take(OpCall& c) {
  if (c.integer("batch_dims", 0) != 0) unsupported("batch_dims");
  const std::string mode = c.text("mode", "clip");
  const bool flat = !c.has("axis");
  Value x = c.arg(0);
  if (flat && c.ndim(0) != 1) x = c.reshape(x, {graph::product(c.shape(0))});
  const auto type = shaped(x);
  const int64_t axis = flat ? 0 : c.axis(c.integer("axis"), type->ndim);
  if (!c.dtype(1).is_integer())
    c.bad(kDTypeMismatch, "`take` with indices of dtype {}; expected integers", c.dtype(1).str());
  const Value indices = held(c, c.arg(1), type->dim(axis), mode);
  return c.op("take", {x, indices}, {{"axis", axis}});
}

// Indices count from the end where they are negative, as here.
Value convert_gather(OpCall& c) {
  return c.op("gather_elements", {c.arg(0), c.arg(1)},
              {{"axis", c.axis(c.integer("axis"), c.ndim(0))}});
}

// Relay's coordinates lie along the first axis of the indices, the graph's along the last.
Value coordinates_last(OpCall& c, size_t i) {
  Ints axes;
  for (int64_t d = 1; d < c.ndim(i); ++d) axes.push_back(d);
  axes.push_back(0);
  return c.transpose(c.arg(i), axes);
}

Value convert_gather_nd(OpCall& c) {
  c.ignore({"index_rank"});
  return c.op("gather_nd", {c.arg(0), coordinates_last(c, 1)},
              {{"batch_dims", c.integer("batch_dims", 0)}});
}

std::string reduction_of(OpCall& c, const char* otherwise) {
  const std::string mode = c.text(c.has("mode") ? "mode" : "reduction", otherwise);
  c.ignore({"mode", "reduction"});
  if (mode != "update" && mode != "add" && mode != "mul" && mode != "min" && mode != "max")
    unsupported("reduction \"{}\"", mode);
  return mode;
}

Value convert_scatter(OpCall& c) {
  return c.op("scatter_elements", {c.arg(0), c.arg(1), c.arg(2)},
              {{"axis", c.axis(c.integer("axis", 0), c.ndim(0))},
               {"reduction", reduction_of(c, "update")}});
}

Value convert_scatter_add(OpCall& c) {
  return c.op("scatter_elements", {c.arg(0), c.arg(1), c.arg(2)},
              {{"axis", c.axis(c.integer("axis", 0), c.ndim(0))}, {"reduction", "add"}});
}

// x[i], x along its first axis.
Value convert_adv_index(OpCall& c) {
  const std::vector<Value> items = c.items(0);
  if (items.size() != 2) unsupported("{} index tensors", items.empty() ? 0 : items.size() - 1);
  return c.op("take", {items[0], items[1]}, {{"axis", 0}});
}

Value convert_scatter_nd(OpCall& c) {
  return c.op("scatter_nd", {c.arg(0), coordinates_last(c, 1), c.arg(2)},
              {{"reduction", reduction_of(c, "update")}});
}

Value convert_sort(OpCall& c, const char* op) {
  Attrs attrs{{"axis", c.axis(c.integer("axis", -1), c.ndim(0))},
              {"descending", !c.flag("is_ascend", true)}};
  if (std::string_view(op) == "argsort") attrs.set("dtype", c.dtype_attr("dtype", kInt32));
  return c.op(op, {c.arg(0)}, attrs);
}

Value convert_topk(OpCall& c) {
  return c.op("topk", {c.arg(0)},
              {{"k", c.integer("k", 1)},
               {"axis", c.axis(c.integer("axis", -1), c.ndim(0))},
               {"ret_type", c.text("ret_type", "both")},
               {"largest", !c.flag("is_ascend", false)},
               {"dtype", c.dtype_attr("dtype", kInt32)}});
}

Value convert_one_hot(OpCall& c) {
  const DType dtype = c.dtype_attr("dtype", c.dtype(1));
  const auto value = [&](size_t i, const char* what) {
    return c.scalar(dtype, c.float_scalar(i, what));
  };
  return c.op("one_hot", {c.arg(0), value(1, "on_value"), value(2, "off_value")},
              {{"depth", c.integer("depth")}, {"axis", c.integer("axis", -1)}});
}

Value convert_reverse_sequence(OpCall& c) {
  return c.op("reverse_sequence", {c.arg(0), c.arg(1)},
              {{"seq_axis", c.axis(c.integer("seq_axis", 1), c.ndim(0))},
               {"batch_axis", c.axis(c.integer("batch_axis", 0), c.ndim(0))}});
}

}  // namespace

std::vector<OperatorRow> index_rows() {
  return {
      {"take", 2, 2, convert_take, "take",
       "batch_dims 0; mode \"fast\": an index outside is an error"},
      {"gather", 2, 2, convert_gather, "gather_elements"},
      {"gather_nd", 2, 2, convert_gather_nd, "permute_dims, gather_nd"},
      {"scatter", 3, 3, convert_scatter, "scatter_elements"},
      {"scatter_elements", 3, 3, convert_scatter, "scatter_elements", "no reduction \"mean\""},
      {"scatter_add", 3, 3, convert_scatter_add, "scatter_elements"},
      {"adv_index", 1, 1, convert_adv_index, "take", "one index tensor"},
      {"scatter_nd", 3, 3, convert_scatter_nd, "permute_dims, scatter_nd", "no mode \"mean\""},
      {"sort", 1, 1, [](OpCall& c) { return convert_sort(c, "sort"); }},
      {"argsort", 1, 1, [](OpCall& c) { return convert_sort(c, "argsort"); }},
      {"topk", 1, 1, convert_topk, "topk", "k an attribute"},
      {"one_hot", 3, 3, convert_one_hot, "one_hot", "constant values"},
      {"reverse_sequence", 2, 2, convert_reverse_sequence},
  };
}

}  // namespace tenon::relay
