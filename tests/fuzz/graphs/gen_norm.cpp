// SPDX-License-Identifier: Apache-2.0
// Normalisations, softmax and its kin, attention, quantisation.
#include <algorithm>

#include "generators.h"

namespace tenon::fuzz {

namespace {

using graph::Value;
using Shape = std::vector<Expr>;

Item floats(Draft& draft, size_t least_rank, size_t most_rank, int64_t elements = 2048) {
  return draft.operand([&] { return draft.float_dtype(); }, least_rank, most_rank,
                       [](const Item& item) {
                         return item.dtype().is_float() && item.data->elements() > 0 &&
                                item.magnitude() < 100;
                       },
                       {}, elements);
}
int64_t random_axis(Draft& draft, size_t rank) {
  const auto axis = static_cast<int64_t>(draft.choices.below(static_cast<uint32_t>(rank)));
  return draft.choices.chance(30) ? axis - static_cast<int64_t>(rank) : axis;
}
Expr dim_at(const Item& x, int64_t axis) {
  return x.type->dim(axis < 0 ? axis + static_cast<int64_t>(x.ndim()) : axis);
}

void batch_norm(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = floats(draft, 2, 4);
  const int64_t axis = c.chance(70) ? 1 : random_axis(draft, x.ndim());
  const Shape shape = {dim_at(x, axis)};
  std::vector<Value> args = {x.value};
  for (int i = 0; i < 3; ++i) args.push_back(draft.fresh(x.dtype(), shape).value);
  args.push_back(draft.fresh(x.dtype(), shape, from_to(0.5, 2)).value);
  Attrs attrs{{"axis", axis}};
  if (c.chance(40)) attrs.set("epsilon", 1e-3);
  if (c.chance(20)) attrs.set("scale", false);
  if (c.chance(20)) attrs.set("center", false);
  if (op == "nn.batch_norm") {
    draft.calls(op, args, attrs);
  } else {
    draft.call(op, args, attrs);
  }
}

// Axes of a row-wise normalisation: the last ones, or any.
AttrList some_axes(Draft& draft, const Item& x) {
  Choices& c = draft.choices;
  AttrList axes;
  if (c.chance(50)) return AttrList{int64_t{-1}};
  for (size_t d = 0; d < x.ndim(); ++d)
    if (c.chance(50)) axes.emplace_back(static_cast<int64_t>(d));
  return axes.empty() ? AttrList{int64_t{-1}} : axes;
}
Shape extents_at(const Item& x, const AttrList& axes) {
  Shape out;
  for (const AttrValue& axis : axes) out.push_back(dim_at(x, *axis.as<int64_t>()));
  return out;
}

void layer_norm(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = floats(draft, 1, 4);
  const AttrList axes = some_axes(draft, x);
  const Shape shape = extents_at(x, axes);
  std::vector<Value> args = {x.value};
  Attrs attrs{{"axes", axes}, {"epsilon", c.of({1e-5, 1e-2})}};
  if (op == "nn.rms_norm") {
    args.push_back(draft.fresh(x.dtype(), shape).value);
  } else {
    for (uint32_t i = 0, count = 2 - c.below(3); i < count; ++i)
      args.push_back(draft.fresh(x.dtype(), shape).value);
    if (args.size() == 3 && c.chance(20)) attrs.set("center", false);
    if (args.size() >= 2 && c.chance(20)) attrs.set("scale", false);
  }
  draft.call(op, args, attrs);
}

void grouped_norm(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = floats(draft, 3, 4);
  const Shape shape = {x.type->dim(1)};
  Attrs attrs{{"epsilon", c.of({1e-5, 1e-2})}};
  if (op == "nn.group_norm") {
    if (!as_int(x.type->dim(1))) return;
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= x.shape()[1]; ++d)
      if (x.shape()[1] % d == 0) divisors.push_back(d);
    attrs.set("num_groups", c.of(divisors));
  }
  draft.call(op,
             {x.value, draft.fresh(x.dtype(), shape).value, draft.fresh(x.dtype(), shape).value},
             attrs);
}

void lrn(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = floats(draft, 3, 4);
  draft.call(op, {x.value},
             {{"size", c.between(1, 5)},
              {"alpha", c.of({1e-4, 0.1})},
              {"beta", c.of({0.75, 0.5})},
              {"bias", c.of({1.0, 2.0})}});
}

void softmax(Draft& draft, std::string_view op) {
  const Item x = floats(draft, 1, 4);
  if (op == "nn.hardmax" && !x.exact) return;
  draft.call(op, {x.value}, {{"axis", random_axis(draft, x.ndim())}},
             op == "nn.hardmax" ? Rounds::kNever : Rounds::kAlways);
}

void dropout(Draft& draft, std::string_view op) {
  draft.calls(op, {floats(draft, 0, 4).value}, {{"rate", draft.choices.of({0.5, 0.0})}},
              Rounds::kNever);
}

void attention(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const DType dtype = draft.float_dtype();
  const auto batch = draft.extent(3), heads = draft.extent(4), depth = draft.extent(17),
             width = draft.extent(17), rows = draft.extent(17), columns = draft.extent(17);
  const auto tensor = [&](int64_t length, int64_t size) {
    return draft.fresh(dtype,
                       std::vector<Expr>{int64(batch), int64(length), int64(heads), int64(size)});
  };
  const Item q = tensor(rows, depth), k = tensor(columns, depth), v = tensor(columns, width);
  if (q.data->elements() * columns > 1 << 16) return;
  std::vector<Value> args = {q.value, k.value, v.value};
  if (c.chance(50)) {
    std::vector<int64_t> shape = {batch, heads, rows, columns};
    for (size_t d = 0; d < 3; ++d)
      if (c.chance(40)) shape[d] = 1;
    args.push_back(draft.fresh(dtype, shape).value);
  }
  Attrs attrs;
  if (c.chance(30)) attrs.set("scale", c.of({0.5, 1.0}));
  if (c.chance(40)) attrs.set("causal_mask", c.of({"TopLeft", "BottomRight"}));
  draft.call(op, args, attrs);
}

// ---- quantisation -------------------------------------------------------------------------------

struct Parameters {
  Item scale, zero;
};
Parameters parameters(Draft& draft, const Item& x, DType dtype, int64_t axis, DType scale_dtype) {
  Choices& c = draft.choices;
  Shape shape;
  if (x.ndim() > 0 && c.chance(50)) shape = {dim_at(x, axis)};
  const bool wide = dtype.bits == 32;
  return {draft.fresh(scale_dtype, shape, from_to(0.25, 1)),
          draft.fresh(dtype, shape, from_to(0, wide ? 0 : 9))};
}

void quantize(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand(
      [] { return kFloat32; }, 0, 4,
      [](const Item& item) { return item.dtype().is_float() && item.exact && item.finite; });
  // A half step would fall to either side: only exact data on a grid that scales keep.
  if (!x.exact) return;
  const int64_t axis = x.ndim() ? random_axis(draft, x.ndim()) : 0;
  const DType dtype = c.of({kInt8, kUInt8, kInt16, kUInt16});
  const Parameters p = parameters(draft, x, dtype, axis, x.dtype());
  draft.call(op, {x.value, p.scale.value, p.zero.value}, {{"out_dtype", dtype}, {"axis", axis}},
             Rounds::kNever);
}

void dequantize(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([&] { return c.of({kInt8, kUInt8, kInt16, kUInt16, kInt32}); }, 0, 4,
                               [](const Item& item) {
                                 return item.dtype().is_integer() && item.dtype().bits <= 32 &&
                                        item.dtype() != kUInt32 && item.magnitude() < 1e5;
                               },
                               from_to(0, 100));
  if (x.dtype() == kUInt32) return;
  const int64_t axis = x.ndim() ? random_axis(draft, x.ndim()) : 0;
  const Parameters p = parameters(draft, x, x.dtype(), axis, kFloat32);
  Attrs attrs{{"axis", axis}};
  if (c.chance(30)) attrs.set("out_dtype", c.of({kFloat32, kFloat16, kFloat64}));
  draft.call(op, {x.value, p.scale.value, p.zero.value}, attrs, Rounds::kArithmetic);
}

}  // namespace

std::vector<GeneratorRow> norm_generators() {
  return {{"nn.batch_norm", batch_norm, 4},
          {"nn.batch_norm_result", batch_norm, 1},
          {"nn.layer_norm", layer_norm, 4},
          {"nn.rms_norm", layer_norm},
          {"nn.group_norm", grouped_norm},
          {"nn.instance_norm", grouped_norm},
          {"nn.lrn", lrn},
          {"nn.softmax", softmax, 4},
          {"nn.log_softmax", softmax},
          {"nn.hardmax", softmax, 1},
          {"nn.dropout", dropout, 1},
          {"nn.attention", attention, 3},
          {"quantize", quantize},
          {"dequantize", dequantize}};
}

}  // namespace tenon::fuzz
