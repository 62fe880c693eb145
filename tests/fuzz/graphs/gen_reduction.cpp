// SPDX-License-Identifier: Apache-2.0
// Reductions, positions of extremes, running sums, orders.
#include <cmath>

#include "generators.h"

namespace tenon::fuzz {

namespace {

// Axes to reduce: none stated (all), one, or several, also counted from the end.
AttrValue random_axes(Draft& draft, size_t rank) {
  Choices& c = draft.choices;
  if (rank == 0 || c.chance(20)) return AttrValue();
  AttrList axes;
  const auto first = c.below(static_cast<uint32_t>(rank));
  for (uint32_t d = 0; d < rank; ++d) {
    if (d != first && !c.chance(30)) continue;
    const int64_t axis = d;
    axes.emplace_back(c.chance(30) ? axis - static_cast<int64_t>(rank) : axis);
  }
  return axes;
}
int64_t one_axis(Draft& draft, size_t rank) {
  const auto axis = static_cast<int64_t>(draft.choices.below(static_cast<uint32_t>(rank)));
  return draft.choices.chance(40) ? axis - static_cast<int64_t>(rank) : axis;
}

void reduce(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool floats = op == "variance" || op == "std" || op == "logsumexp" || op == "mean";
  const bool selects = op == "max" || op == "min";
  const bool product = op == "prod";
  const auto dtype = [&] { return floats ? draft.float_dtype() : draft.number_dtype(); };
  const auto fits = [&](const Item& item) {
    if (item.data->elements() == 0) return false;
    if (item.dtype().is_bool()) return selects;
    if (floats && !item.dtype().is_float()) return false;
    if (item.dtype().is_integer() && !selects)
      return item.magnitude() * static_cast<double>(item.data->elements()) <
                 std::ldexp(1, item.dtype().bits - 2) &&
             !product;
    return !product || (item.magnitude() <= 2 && item.data->elements() <= 64);
  };
  const Item x = draft.operand(dtype, 0, 4, fits, product ? from_to(0.5, 1.5) : Content{},
                               product ? 64 : 2048);
  if (!fits(x) && !(product && x.dtype().is_integer() && x.magnitude() <= 1)) return;
  const Rounds rounds = selects       ? Rounds::kNever
                        : op == "sum" ? Rounds::kArithmetic
                                      : Rounds::kAlways;
  draft.call(op, {x.value}, {{"axis", random_axes(draft, x.ndim())}, {"keepdims", c.chance(40)}},
             rounds);
}

void arg_extreme(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const auto fits = [](const Item& item) {
    return item.exact && !item.dtype().is_bool() && item.ndim() > 0 && item.data->elements() > 0;
  };
  const Item x = draft.operand([&] { return draft.number_dtype(); }, 1, 4, fits);
  AttrValue axis;
  if (c.chance(80)) axis = AttrList{one_axis(draft, x.ndim())};
  draft.call(op, {x.value},
             {{"axis", axis}, {"keepdims", c.chance(40)}, {"select_last_index", c.chance(30)}},
             Rounds::kNever);
}

void cumulative(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool product = op == "cumprod";
  const auto fits = [&](const Item& item) {
    if (item.dtype().is_bool() || item.ndim() == 0 || item.data->elements() == 0) return false;
    if (item.dtype().is_integer())
      return product ? item.magnitude() <= 1
                     : item.magnitude() * 65 < std::ldexp(1, item.dtype().bits - 2);
    return !product || item.magnitude() <= 1.5;
  };
  const Item x = draft.operand([&] { return draft.number_dtype(); }, 1, 3, fits,
                               product ? from_to(0, 1) : Content{});
  if (!fits(x)) return;
  Attrs attrs{{"exclusive", c.chance(40)}, {"reverse", c.chance(40)}};
  if (x.ndim() > 1 || c.chance(50)) attrs.set("axis", one_axis(draft, x.ndim()));
  if (c.chance(15)) attrs.set("dtype", x.dtype().is_float() ? kFloat64 : kInt64);
  draft.call(op, {x.value}, attrs, product ? Rounds::kAlways : Rounds::kArithmetic);
}

// Orders of elements: the order of equal ones is part of what is compared.
void order(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool positions = op != "sort";
  const auto fits = [&](const Item& item) {
    return !item.dtype().is_bool() && item.ndim() > 0 && item.data->elements() > 0 &&
           (item.exact || !positions);
  };
  const Item x = draft.operand([&] { return draft.number_dtype(); }, 1, 3, fits, {}, 512);
  if (!fits(x)) return;
  const int64_t axis = one_axis(draft, x.ndim());
  Attrs attrs{{"axis", axis}};
  if (op == "topk") {
    const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.ndim()) : axis);
    attrs.set("k", static_cast<int64_t>(c.below(static_cast<uint32_t>(x.shape()[at]) + 1)));
    attrs.set("largest", !c.chance(40));
    attrs.set("ret_type", c.of({"both", "values", "indices"}));
    attrs.set("dtype", c.of({kInt64, kInt32}));
    draft.calls(op, {x.value}, attrs, Rounds::kNever);
    return;
  }
  attrs.set("descending", c.chance(40));
  if (positions) attrs.set("dtype", c.of({kInt64, kInt32}));
  draft.call(op, {x.value}, attrs, Rounds::kNever);
}

}  // namespace

std::vector<GeneratorRow> reduction_generators() {
  return {{"sum", reduce, 4},      {"prod", reduce, 1},    {"max", reduce},
          {"min", reduce, 1},      {"mean", reduce, 3},    {"variance", reduce},
          {"std", reduce, 1},      {"logsumexp", reduce},  {"argmax", arg_extreme},
          {"argmin", arg_extreme}, {"cumsum", cumulative}, {"cumprod", cumulative, 1},
          {"sort", order, 1},      {"argsort", order, 1},  {"topk", order}};
}

}  // namespace tenon::fuzz
