// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, positions of extremes, cumulative sums.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// The axes to reduce: an attribute, or from `input_from` on an operand. Nothing: all of them.
std::optional<std::vector<int64_t>> reduced_axes(Context& c, int64_t input_from) {
  Ints axes;
  if (c.opset() < input_from) {
    axes = c.axes(c.ints_attr("axes", {}), c.ndim(0));
  } else if (c.has(1)) {
    axes = c.axes_operand(1, "axes", c.ndim(0));
  }
  if (axes.empty()) return std::nullopt;
  return axes;
}

struct Reduction {
  const char* name;
  const char* op;  // on what `before` gives
  Value (*before)(Context& c, const Value& x);
  Value (*after)(Context& c, const Value& x);
  int64_t axes_input_from;
  const char* types;
};

OperatorRow reduction(const Reduction& r) {
  const auto convert = [r](Context& c) -> Results {
    const auto axes = reduced_axes(c, r.axes_input_from);
    const bool keep = c.flag_attr("keepdims", true);
    const bool nothing = c.flag_attr("noop_with_empty_axes");
    Value x = c.value(0);
    if (!axes && nothing) {
      // No axis is reduced, yet each element is still taken through the curve.
      if (r.before) x = r.before(c, x);
      if (r.after) x = r.after(c, x);
      return {x};
    }
    const bool is_bool = c.dtype(0) == kBool;
    if (is_bool) x = c.cast(x, kUInt8);
    if (r.before) x = r.before(c, x);
    Attrs attrs{{"keepdims", keep}};
    if (axes) attrs.set("axis", *axes);
    x = c.op(r.op, {x}, attrs);
    if (r.after) x = r.after(c, x);
    return {is_bool ? c.cast(x, kBool) : x};
  };
  return {r.name, 1, 1, 2, convert, r.types};
}

Value absolute(Context& c, const Value& x) { return c.op("abs", {x}); }
Value square(Context& c, const Value& x) { return c.op("square", {x}); }
Value root(Context& c, const Value& x) { return c.op("sqrt", {x}); }
Value logarithm(Context& c, const Value& x) { return c.op("log", {x}); }
// Logarithm of the sum of exponentials over no axis.
Results convert_log_sum_exp(Context& c) {
  const auto axes = reduced_axes(c, 18);
  const bool keep = c.flag_attr("keepdims", true);
  if (!axes && c.flag_attr("noop_with_empty_axes")) return {c.value(0)};
  Attrs attrs{{"keepdims", keep}};
  if (axes) attrs.set("axis", *axes);
  return {c.op("logsumexp", {c.value(0)}, attrs)};
}

OperatorRow arg_extreme(const char* name, const char* op) {
  const auto convert = [op](Context& c) -> Results {
    const int64_t axis = c.axis(c.int_attr("axis", 0), c.ndim(0));
    return {c.op(op, {c.value(0)},
                 {{"axis", std::vector<int64_t>{axis}},
                  {"keepdims", c.flag_attr("keepdims", true)},
                  {"select_last_index", c.flag_attr("select_last_index")}})};
  };
  return {name, 1, 1, 1, convert};
}

OperatorRow cumulative(const char* name, const char* op, int first) {
  const auto convert = [op](Context& c) -> Results {
    const Ints axes = c.axes_operand(1, "axis", c.ndim(0));
    if (axes.size() != 1)
      c.bad(kShapeMismatch, "operand `axis` of `{}` has {} elements; expected 1", c.name(),
            axes.size());
    const int64_t axis = axes[0];
    return {c.op(op, {c.value(0)},
                 {{"axis", axis},
                  {"exclusive", c.flag_attr("exclusive")},
                  {"reverse", c.flag_attr("reverse")}})};
  };
  return {name, first, 2, 2, convert, "numbers"};
}

}  // namespace

std::vector<OperatorRow> reduction_rows() {
  std::vector<OperatorRow> rows;
  for (const Reduction& r : std::initializer_list<Reduction>{
           {"ReduceSum", "sum", nullptr, nullptr, 13, "numbers"},
           {"ReduceMean", "mean", nullptr, nullptr, 18, "floats"},
           {"ReduceMax", "max", nullptr, nullptr, 18, "numbers, bool"},
           {"ReduceMin", "min", nullptr, nullptr, 18, "numbers, bool"},
           {"ReduceProd", "prod", nullptr, nullptr, 18, "numbers"},
           {"ReduceL1", "sum", absolute, nullptr, 18, "numbers"},
           {"ReduceL2", "sum", square, root, 18, "floats"},
           {"ReduceSumSquare", "sum", square, nullptr, 18, "numbers"},
           {"ReduceLogSum", "sum", nullptr, logarithm, 18, "floats"},
       })
    rows.push_back(reduction(r));
  rows.push_back({"ReduceLogSumExp", 1, 1, 2, convert_log_sum_exp, "floats"});
  rows.push_back(arg_extreme("ArgMax", "argmax"));
  rows.push_back(arg_extreme("ArgMin", "argmin"));
  rows.push_back(cumulative("CumSum", "cumsum", 11));
  rows.push_back(cumulative("CumProd", "cumprod", 26));
  return rows;
}

}  // namespace tenon::onnx
