// SPDX-License-Identifier: Apache-2.0
// Quantised chains, as QDQ networks write them: what is dequantised is multiplied, and the result
// quantised again. Where scales are powers of two every number is exact, and a half step is one at
// every target; what is element-wise between two quantised tensors has the same steps at every
// target too. Sums of products of other scales round: what is quantised may be a step off where a
// number lies as close to a tie as rounding leads, and is not used further.
#include <algorithm>
#include <cmath>

#include "generators.h"

namespace tenon::fuzz {

namespace {

using graph::Value;

struct Quantised {
  Item steps, floats;
};

// A scale, one or for each place along an axis, and zero points.
Item scale_of(Draft& draft, const std::vector<int64_t>& shape, double least) {
  return draft.constant(kFloat32, shape, from_to(least, least));
}

std::optional<Quantised> dequantised(Draft& draft, const Item& steps, double scale,
                                     const std::vector<int64_t>& places, int64_t axis,
                                     double zero) {
  const Item zeros = draft.constant(steps.dtype(), places, from_to(zero, zero));
  const auto floats =
      draft.call("dequantize", {steps.value, scale_of(draft, places, scale).value, zeros.value},
                 {{"axis", axis}}, Rounds::kArithmetic);
  if (!floats) return std::nullopt;
  return Quantised{steps, *floats};
}

// Steps of the network, or new ones.
Item steps_of(Draft& draft, const std::vector<int64_t>& shape, size_t rank) {
  Choices& c = draft.choices;
  const auto found = c.chance(50) ? draft.find([&](const Item& item) {
    return item.ndim() == rank && item.exact && item.data->elements() > 0 &&
           item.data->elements() <= 2048 && (item.dtype() == kInt8 || item.dtype() == kUInt8) &&
           item.magnitude() <= 24 && item.is_static();
  })
                                  : std::nullopt;
  if (found) return *found;
  const DType dtype = c.of({kInt8, kUInt8});
  std::vector<Expr> dims;
  for (const int64_t dim : shape) dims.push_back(int64(dim));
  return draft.fresh(dtype, dims, from_to(dtype == kInt8 ? -20 : 0, 20));
}

// Weights of 8 or 4 bits, which are constants.
std::optional<Item> weights_of(Draft& draft, const std::vector<int64_t>& shape, int64_t axis,
                               bool rounds) {
  Choices& c = draft.choices;
  const DType dtype = c.of({kInt8, kInt8, kUInt8, kInt4, kUInt4, kInt2, kUInt2});
  const Item steps =
      draft.constant(dtype, shape, from_to(dtype.is_uint() ? 0 : -7, dtype.bits < 8 ? 7 : 12));
  const std::vector<int64_t> places = c.chance(50)
                                          ? std::vector<int64_t>{shape[static_cast<size_t>(axis)]}
                                          : std::vector<int64_t>{};
  const double middle = dtype.bits == 2 ? 2 : 5;
  const double zero = dtype.is_uint() ? c.of({0.0, middle}) : c.of({0.0, 0.0, -2.0});
  const double scale = rounds ? c.of({0.1, 0.0123, 0.37}) : c.of({0.25, 0.5});
  const auto out = dequantised(draft, steps, scale, places, axis, zero);
  return out ? std::optional(out->floats) : std::nullopt;
}

// Where x, a sum of products below `most` that are added up in any order, lies near the middle
// between two steps.
std::vector<bool> near_ties(const Item& x, double scale, double terms, double most) {
  std::vector<bool> out;
  const double each = 0x1p-22;  // of what is rounded, there and in what is expected
  for (int64_t i = 0; i < x.data->elements(); ++i) {
    const double steps = std::fabs(x.data->at_float(i)) / static_cast<float>(scale);
    const double error = each * ((terms + 8) * terms * most / scale + 4 * steps);
    out.push_back(std::fabs(steps - std::floor(steps) - 0.5) <= error);
  }
  return out;
}

// A sum or product of two dequantised tensors of any scales, quantised again: what is rounded to
// steps is computed as it is written, so that these are the same at every target.
void add_element_wise(Draft& draft) {
  Choices& c = draft.choices;
  if (draft.loops_around() > 0) return;
  const size_t rank = 1 + c.below(4);
  const Item a = steps_of(draft, draft.shape(rank), rank);
  std::vector<int64_t> shape = a.shape();
  if (c.chance(30)) shape[c.below(static_cast<uint32_t>(rank))] = 1;
  const DType dtype = c.of({kInt8, kUInt8});
  const Content any = from_to(dtype == kInt8 ? -128 : 0, dtype == kInt8 ? 127 : 255);
  const Item b = c.chance(30) ? draft.constant(dtype, shape, any) : draft.fresh(dtype, shape, any);
  const std::vector<double> scales = {0.1, 0.037, 0.73, 0.00784314, 0.00392157};
  const auto scale = [&] { return scales[c.below(static_cast<uint32_t>(scales.size()))]; };
  const auto zero = [&](DType of) { return of == kUInt8 ? c.of({0.0, 127.0}) : c.of({0.0, -3.0}); };
  const auto x = dequantised(draft, a, scale(), {}, -1, zero(a.dtype()));
  const auto y = dequantised(draft, b, scale(), {}, -1, zero(dtype));
  if (!x || !y) return;
  draft.keep_inside(x->floats);
  draft.keep_inside(y->floats);
  auto z = draft.call(c.of<std::string_view>({"add", "subtract", "multiply"}),
                      {x->floats.value, y->floats.value}, {}, Rounds::kArithmetic);
  if (!z) return;
  draft.keep_inside(*z);
  if (c.chance(30)) {
    z = draft.call("nn.relu", {z->value}, {}, Rounds::kNever);
    if (!z) return;
    draft.keep_inside(*z);
  }
  const DType to = c.of({kInt8, kUInt8});
  const double shift = zero(to);
  const auto q = draft.call("quantize",
                            {z->value, scale_of(draft, {}, scale()).value,
                             draft.constant(to, {}, from_to(shift, shift)).value},
                            {{"out_dtype", to}, {"axis", -1}}, Rounds::kNever);
  if (q) draft.declare_exact(*q);
}

}  // namespace

void add_quantised(Draft& draft) {
  Choices& c = draft.choices;
  if (c.chance(25)) return add_element_wise(draft);
  const bool convolves = c.chance(50);
  const bool rounds = draft.loops_around() == 0 && c.chance(30);
  const int64_t channels = draft.extent(17), filters = draft.extent(33);
  const Item steps =
      convolves ? steps_of(draft, {draft.extent(2), channels, draft.extent(9), draft.extent(9)}, 4)
                : steps_of(draft, {draft.extent(9), channels}, 2);
  const double zero = steps.dtype() == kUInt8 ? c.of({0.0, 7.0}) : c.of({0.0, -3.0});
  const double unit = rounds ? c.of({0.1, 0.037, 0.73}) : c.of({0.25, 0.5, 1.0});
  const auto x = dequantised(draft, steps, unit, {}, 1, zero);
  if (!x) return;
  double terms = 1, most = 0;  // of a sum: how many, and how large they are
  const int64_t inner = steps.shape()[1];
  std::optional<Item> y;
  if (convolves) {
    const int64_t taps = std::min<int64_t>({c.of({1, 3, 2}), steps.shape()[2], steps.shape()[3]});
    const bool grouped = c.chance(20);
    const auto w =
        weights_of(draft, {grouped ? inner : filters, grouped ? 1 : inner, taps, taps}, 0, rounds);
    if (!w) return;
    terms = static_cast<double>((grouped ? 1 : inner) * taps * taps);
    most = x->floats.magnitude() * w->magnitude();
    Attrs attrs{{"padding", std::vector<int64_t>(4, c.below(static_cast<uint32_t>(taps)))},
                {"strides", std::vector<int64_t>{c.of({1, 1, 2})}},
                {"groups", grouped ? inner : 1}};
    y = draft.call("nn.conv2d", {x->floats.value, w->value}, attrs, Rounds::kArithmetic);
  } else {
    const auto w = weights_of(draft, {inner, filters}, 1, rounds);
    if (!w) return;
    terms = static_cast<double>(inner);
    most = x->floats.magnitude() * w->magnitude();
    y = draft.call("matmul", {x->floats.value, w->value}, {}, Rounds::kArithmetic);
  }
  if (y && c.chance(50)) {
    std::vector<int64_t> shape = {y->shape()[1]};
    if (convolves) shape = {1, y->shape()[1], 1, 1};
    const Item bias = draft.constant(kFloat32, shape);
    if (rounds && !bias.finite) return;
    most = std::max(most, bias.magnitude());
    ++terms;
    y = draft.call("add", {y->value, bias.value}, {}, Rounds::kArithmetic);
  }
  if (y && c.chance(40)) y = draft.call("nn.relu", {y->value}, {}, Rounds::kNever);
  if (!y || (!y->exact && !(rounds && y->finite))) return;
  const DType dtype = c.of({kInt8, kUInt8});
  const double shift = dtype == kUInt8 ? c.of({0.0, 100.0}) : c.of({0.0, 3.0});
  const Item zeros = draft.constant(dtype, {}, from_to(shift, shift));
  const double scale = rounds ? c.of({0.9, 0.21, 3.3}) : c.of({4.0, 1.0, 8.0, 2.0});
  const auto q = draft.call("quantize", {y->value, scale_of(draft, {}, scale).value, zeros.value},
                            {{"out_dtype", dtype}, {"axis", 1}}, Rounds::kNever);
  if (q && !q->exact) return draft.keep_apart(*q, near_ties(*y, scale, terms, most));
  if (q && c.chance(60)) (void)dequantised(draft, *q, scale, {}, 1, shift);
}

}  // namespace tenon::fuzz
