// SPDX-License-Identifier: Apache-2.0
// Reductions and running sums.
#include <algorithm>

#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

// The axes that are reduced; all where none is named. `exclude`: all but those.
Ints reduced_axes(OpCall& c) {
  const int64_t ndim = c.ndim(0);
  const Ints named = c.axes(c.list("axis", Ints{}), ndim);
  const bool all = !c.has("axis") || named.empty(), exclude = c.flag("exclude", false);
  Ints out;
  for (int64_t d = 0; d < ndim; ++d) {
    const bool is_named = std::count(named.begin(), named.end(), d) != 0;
    if (all ? !exclude : is_named != exclude) out.push_back(d);
  }
  return out;
}

Attrs reduction(OpCall& c) {
  return {{"axis", reduced_axes(c)}, {"keepdims", c.flag("keepdims", false)}};
}

// Over no axes each element is its own reduction.
OperatorRow reduce(const char* name, const char* op) {
  const auto convert = [op](OpCall& c) {
    const Attrs attrs = reduction(c);
    if (attrs.ints("axis")->empty()) return c.arg(0);
    return c.op(op, {c.arg(0)}, attrs);
  };
  return {name, 1, 1, convert, op};
}

OperatorRow reduce_bool(const char* name, const char* op) {
  const auto convert = [op](OpCall& c) {
    const Attrs attrs = reduction(c);
    const Value x = c.cast(c.arg(0), kBool);
    return attrs.ints("axis")->empty() ? x : c.op(op, {x}, attrs);
  };
  return {name, 1, 1, convert, op};
}

// TVM's operator takes the mean as its second operand.
Value convert_variance(OpCall& c) {
  const Attrs attrs = reduction(c);
  const Ints axes = reduced_axes(c);
  const bool unbiased = c.flag("unbiased", false);
  const DType dtype = c.dtype(0);
  const Value centred = c.op("subtract", {c.arg(0), c.arg(1)});
  const Value squares = c.op("square", {centred});
  if (!unbiased) return c.op("mean", {squares}, attrs);
  Dims extents;
  for (const int64_t axis : axes) extents.push_back(c.shape(0)[static_cast<size_t>(axis)]);
  const auto count = as_int(graph::product(extents));
  if (!count) unsupported("unbiased=True over a symbolic dimension");
  return c.op("divide",
              {c.op("sum", {squares}, attrs), c.scalar(dtype, static_cast<double>(*count - 1))});
}

OperatorRow position(const char* op) {
  const auto convert = [op](OpCall& c) {
    Attrs attrs{{"keepdims", c.flag("keepdims", false)},
                {"select_last_index", c.flag("select_last_index", false)}};
    const Ints axes = reduced_axes(c);
    if (axes.size() != 1 && static_cast<int64_t>(axes.size()) != c.ndim(0))
      unsupported("{} axes", axes.size());
    if (axes.size() == 1) attrs.set("axis", axes);
    // Relay's positions are int32.
    return c.cast(c.op(op, {c.arg(0)}, attrs), kInt32);
  };
  return {op, 1, 1, convert, std::string(op) + ", astype", "one axis, or all"};
}

OperatorRow running(const char* op) {
  const auto convert = [op](OpCall& c) {
    const DType dtype = c.dtype_attr("dtype", c.dtype(0));
    Value x = c.arg(0);
    int64_t axis = 0;
    if (c.has("axis")) {
      axis = c.axis(c.integer("axis"), c.ndim(0));
    } else {
      x = c.reshape(x, {graph::product(c.shape(0))});
    }
    const bool exclusive = c.flag("exclusive", false);
    return c.op(op, {c.cast(x, dtype)}, {{"axis", axis}, {"exclusive", exclusive}});
  };
  return {op, 1, 1, convert, op};
}

}  // namespace

std::vector<OperatorRow> reduction_rows() {
  return {
      reduce("sum", "sum"),
      reduce("mean", "mean"),
      reduce("prod", "prod"),
      reduce("max", "max"),
      reduce("min", "min"),
      reduce("logsumexp", "logsumexp"),
      reduce_bool("all", "min"),
      reduce_bool("any", "max"),
      {"variance", 2, 2, convert_variance, "subtract, square, mean"},
      position("argmax"),
      position("argmin"),
      running("cumsum"),
      running("cumprod"),
  };
}

}  // namespace tenon::relay
