// SPDX-License-Identifier: Apache-2.0
// Loop and Scan.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/loop_body.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

LoopParts loop_parts(Context& c) {
  LoopParts parts;
  parts.has_condition = true;
  parts.count = int64(INT64_MAX);
  if (c.has(0)) {
    const Dims count = c.dims(0, "M");
    if (count.size() != 1)
      c.bad(kShapeMismatch, "operand `M` of `Loop` has {} elements; expected 1", count.size());
    parts.count = count[0];
  }
  if (c.has(1)) {
    if (c.dtype(1) != kBool)
      c.bad(kDTypeMismatch, "the condition of `Loop` has dtype {}; expected bool",
            c.dtype(1).str());
    const Elements* known = c.elements(1);
    const auto holds = known && known->values.size() == 1 ? as_int(known->values[0]) : std::nullopt;
    if (!holds) parts.condition = c.value(1);
    if (holds == 0) parts.count = int64(0);
  }
  for (size_t i = 2; i < c.input_count(); ++i) parts.states.push_back(c.ref(i));
  return parts;
}

namespace {

Results repeated(Context& c, const Graph& body, const LoopParts& parts) {
  Results results;
  for (const ItemRef& item : repeat(c, body, parts)) results.push_back(c.value_of(item));
  return results;
}

Results convert_loop(Context& c) {
  const auto body = c.graph_attr("body");
  return repeated(c, *body, loop_parts(c));
}

// ---- Scan ---------------------------------------------------------------------------------------

// The axes of a tensor with `from` moved to `to`.
Ints moved(int64_t ndim, int64_t from, int64_t to) {
  Ints axes;
  for (int64_t d = 0; d < ndim; ++d)
    if (d != from) axes.push_back(d);
  axes.insert(axes.begin() + to, from);
  return axes;
}

Ints listed(Context& c, const char* name, size_t count) {
  Ints values = c.ints_attr(name, Ints(count, 0));
  if (values.size() != count)
    c.bad(kBadAttribute, "attribute `{}` of `Scan` has {} values; expected {}", name, values.size(),
          count);
  return values;
}

std::set<size_t> reversed(Context& c, const char* name, size_t count) {
  const Ints directions = listed(c, name, count);
  std::set<size_t> out;
  for (size_t i = 0; i < count; ++i) {
    if (directions[i] != 0 && directions[i] != 1)
      c.bad(kBadAttribute, "attribute `{}` of `Scan` has {}; expected 0 or 1", name, directions[i]);
    if (directions[i] == 1) out.insert(i);
  }
  return out;
}

// How many of the operands from `first` on are states; the others are scanned.
size_t states_of(Context& c, const Graph& body, size_t first) {
  const int64_t scanned = c.int_attr("num_scan_inputs");
  const auto given = static_cast<int64_t>(c.input_count() - first);
  if (scanned < 1 || scanned > given)
    c.bad(kBadAttribute, "attribute `num_scan_inputs` of `Scan` is {}; it has {} operands", scanned,
          given);
  const auto states = static_cast<size_t>(given - scanned);
  if (body.outputs.size() < states)
    c.bad(kBadModel, "the body of `Scan` has {} outputs; expected {} and more", body.outputs.size(),
          states);
  return states;
}

// The length of what is scanned along an axis.
Expr common_length(Context& c, const std::vector<Value>& scanned, size_t axis) {
  Expr length;
  for (size_t i = 0; i < scanned.size(); ++i) {
    const Ref<graph::TensorType> type = shaped(scanned[i]);
    if (axis >= type->shape->size())
      c.bad(kRankMismatch, "operand {} of `Scan` has rank {}; expected {} and more", i, type->ndim,
            axis + 1);
    const Expr& dim = (*type->shape)[axis];
    if (length)
      c.require(
          eq(dim, length), kShapeMismatch,
          fmt::format("what `Scan` goes over is of lengths {} and {}", str(length), str(dim)));
    else
      length = dim;
  }
  return length;
}

Results convert_scan(Context& c) {
  LoopParts parts;
  const auto body = c.graph_attr("body");
  const size_t states = states_of(c, *body, 0);
  for (size_t i = 0; i < states; ++i) parts.states.push_back(c.ref(i));
  const size_t scanned = c.input_count() - states, stacked = body->outputs.size() - states;
  const Ints axes = listed(c, "scan_input_axes", scanned);
  for (size_t i = 0; i < scanned; ++i) {
    const int64_t ndim = c.ndim(states + i);
    const int64_t axis = c.axis(axes[i], ndim);
    const Value x = c.value(states + i);
    parts.slices.push_back(axis == 0 ? x : c.transpose(x, moved(ndim, axis, 0)));
  }
  parts.reversed_inputs = reversed(c, "scan_input_directions", scanned);
  parts.reversed_outputs = reversed(c, "scan_output_directions", stacked);
  parts.count = common_length(c, parts.slices, 0);
  Results results = repeated(c, *body, parts);
  const Ints output_axes = listed(c, "scan_output_axes", stacked);
  for (size_t k = 0; k < stacked; ++k) {
    Value& result = results[states + k];
    const int64_t ndim = shaped(result)->ndim, axis = c.axis(output_axes[k], ndim);
    if (axis != 0) result = c.transpose(result, moved(ndim, 0, axis));
  }
  return results;
}

// The first `length` places of the first axis from the last of them on, those behind as they are.
Value from_the_end(Context& c, const Value& x, const Value& length) {
  const Expr extent = shaped(x)->shape->front();
  const auto number = [&](const Expr& value) {
    return c.op("full", {c.shape_value({}), c.prim(value)}, {{"dtype", kInt64}});
  };
  const Value places =
      c.op("arange", {c.prim(int64(0)), c.prim(extent), c.prim(int64(1))}, {{"dtype", kInt64}});
  const Value count = c.op("minimum", {c.cast(length, kInt64), number(extent)});
  const Value last = c.op("subtract", {count, number(int64(1))});
  const Value taken =
      c.op("where", {c.op("less", {places, count}), c.op("subtract", {last, places}), places});
  return c.op("take", {x, taken}, {{"axis", 0}});
}

// Until opset 8 the first axis is that of a batch, whose elements are scanned by themselves, each as
// far as `sequence_lens` says.
Results convert_batched_scan(Context& c) {
  const auto body = c.graph_attr("body");
  const size_t states = states_of(c, *body, 1);
  std::vector<Value> values;
  for (size_t i = 1; i < c.input_count(); ++i) values.push_back(c.value(i));
  const std::vector<Value> scanned(values.begin() + static_cast<std::ptrdiff_t>(states),
                                   values.end());
  const std::set<size_t> directions = reversed(c, "directions", scanned.size());
  const Expr batch = common_length(c, values, 0), length = common_length(c, scanned, 1);
  const bool has_lengths = c.has(0);
  if (has_lengths) {
    if (c.ndim(0) != 1)
      c.bad(kRankMismatch, "operand `sequence_lens` of `Scan` has rank {}; expected 1", c.ndim(0));
    values.push_back(c.value(0));
    (void)common_length(c, {values[0], values.back()}, 0);
  }
  return for_each(c, batch, values, [&](const std::vector<Value>& one) {
    LoopParts parts;
    parts.count = length;
    const auto first = one.begin() + static_cast<std::ptrdiff_t>(states);
    for (auto state = one.begin(); state != first; ++state) parts.states.push_back(item_of(*state));
    parts.slices.assign(first, first + static_cast<std::ptrdiff_t>(scanned.size()));
    if (has_lengths) {
      parts.length = one.back();
      for (const size_t i : directions)
        parts.slices[i] = from_the_end(c, parts.slices[i], parts.length);
    } else {
      parts.reversed_inputs = directions;
    }
    return repeated(c, *body, parts);
  });
}

}  // namespace

std::vector<OperatorRow> loop_rows() {
  return {
      {"Loop", 1, 0, -1, convert_loop, "any", "states of one rank"},
      {"Scan", 8, 1, -1,
       [](Context& c) { return c.opset() < 9 ? convert_batched_scan(c) : convert_scan(c); }, "any"},
  };
}

}  // namespace tenon::onnx
