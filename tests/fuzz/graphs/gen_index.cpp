// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters, selections, values held in a range.
#include <algorithm>
#include <cmath>

#include "generators.h"
#include "tenon/graph/shape.h"

namespace tenon::fuzz {

namespace {

using graph::Value;
using Shape = std::vector<Expr>;
constexpr Rounds kNever = Rounds::kNever;

DType index_dtype(Draft& draft) { return draft.choices.of({kInt64, kInt32}); }

// Indices into an axis of so many elements, also from the end.
Item indices(Draft& draft, const Shape& shape, int64_t extent) {
  const double least = draft.choices.chance(40) ? -static_cast<double>(extent) : 0;
  const DType dtype = index_dtype(draft);
  if (draft.choices.chance(30)) {
    const auto found = draft.find([&](const Item& item) {
      return item.dtype() == dtype && item.type->shape && item.exact &&
             item.least >= -static_cast<double>(extent) &&
             item.most < static_cast<double>(extent) && item.ndim() == shape.size() &&
             graph::shapes_agree(*item.type->shape, shape) == graph::DimsAgree::kYes;
    });
    if (found) return *found;
  }
  return draft.fresh(dtype, shape, from_to(least, static_cast<double>(extent - 1)));
}

Item source(Draft& draft, size_t least_rank, size_t most_rank) {
  return draft.operand([&] { return draft.any_dtype(); }, least_rank, most_rank,
                       [](const Item& item) { return item.data->elements() > 0; }, {}, 1024);
}
int64_t random_axis(Draft& draft, size_t rank) {
  const auto axis = static_cast<int64_t>(draft.choices.below(static_cast<uint32_t>(rank)));
  return draft.choices.chance(30) ? axis - static_cast<int64_t>(rank) : axis;
}
size_t from_front(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
Shape numbers(const std::vector<int64_t>& shape) {
  Shape out;
  for (const int64_t dim : shape) out.push_back(int64(dim));
  return out;
}

void take(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = source(draft, 1, 3);
  Attrs attrs;
  int64_t extent = x.data->elements();
  if (x.ndim() == 1 ? c.chance(50) : !c.chance(15)) {
    const int64_t axis = random_axis(draft, x.ndim());
    attrs.set("axis", axis);
    extent = x.shape()[from_front(axis, x.ndim())];
  }
  const std::vector<int64_t> shape = draft.shape(c.below(3), 32);
  const std::string mode = c.of({"fast", "fast", "clip", "wrap", "nan"});
  if (mode == "nan" && !x.dtype().is_float()) return;
  attrs.set("mode", mode);
  // What is outside of the axis has a meaning in the other modes.
  const auto reach = static_cast<double>(extent);
  const Item at = mode == "fast" ? indices(draft, numbers(shape), extent)
                                 : draft.fresh(index_dtype(draft), numbers(shape),
                                               from_to(mode == "nan" ? 0 : -2 * reach,
                                                       mode == "nan" ? reach - 1 : 2 * reach));
  draft.call(op, {x.value, at.value}, attrs, kNever);
}

void gather_elements(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = source(draft, 1, 3);
  const int64_t axis = random_axis(draft, x.ndim());
  const size_t place = from_front(axis, x.ndim());
  std::vector<int64_t> shape = x.shape();
  for (int64_t& dim : shape) dim = 1 + c.below(static_cast<uint32_t>(dim));
  shape[place] = draft.extent(9);
  const Item at = indices(draft, numbers(shape), x.shape()[place]);
  draft.call(op, {x.value, at.value}, {{"axis", axis}}, kNever);
}

void gather_nd(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = source(draft, 1, 4);
  const auto batch = x.ndim() > 1 && c.chance(30) ? 1u : 0u;
  const int64_t count = 1 + c.below(static_cast<uint32_t>(x.ndim() - batch));
  Shape shape;
  for (uint32_t d = 0; d < batch; ++d) shape.push_back(x.type->dim(d));
  for (const int64_t dim : draft.shape(c.below(2), 16)) shape.push_back(int64(dim));
  shape.push_back(int64(count));
  // One range for all coordinates: the shortest axis.
  int64_t extent = x.shape()[batch];
  for (int64_t d = 0; d < count; ++d)
    extent = std::min(extent, x.shape()[batch + static_cast<size_t>(d)]);
  draft.call(op, {x.value, indices(draft, shape, extent).value},
             {{"batch_dims", static_cast<int64_t>(batch)}}, kNever);
}

std::string reduction(Draft& draft, DType dtype) {
  if (dtype.is_bool()) return "update";
  return draft.choices.of({"update", "add", "max", "min", "mul"});
}
Rounds rounds_of(const std::string& reduction) {
  return reduction == "add" || reduction == "mul" ? Rounds::kArithmetic : kNever;
}
Draft::Fits small() {
  return [](const Item& item) { return item.data->elements() > 0 && item.magnitude() < 10; };
}

void scatter_elements(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 1, 3, small(), {}, 1024);
  const int64_t axis = random_axis(draft, x.ndim());
  const size_t place = from_front(axis, x.ndim());
  std::vector<int64_t> shape = x.shape();
  for (int64_t& dim : shape) dim = 1 + c.below(static_cast<uint32_t>(std::min<int64_t>(dim, 4)));
  const Item at = indices(draft, numbers(shape), x.shape()[place]);
  const Item updates = draft.like(x.dtype(), numbers(shape), small(), from_to(0, 1));
  // Products of many small integers would not fit the short ones.
  const std::string how =
      x.dtype().is_integer() && x.dtype().bits < 32 ? "update" : reduction(draft, x.dtype());
  if (how == "mul" && x.dtype().is_integer() && updates.magnitude() > 1) return;
  draft.call(op, {x.value, at.value, updates.value}, {{"axis", axis}, {"reduction", how}},
             rounds_of(how));
}

void scatter_nd(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 1, 3, small(), {}, 1024);
  const int64_t count = 1 + c.below(static_cast<uint32_t>(x.ndim()));
  std::vector<int64_t> shape = draft.shape(c.below(2), 8);
  std::vector<int64_t> wanted = shape;
  shape.push_back(count);
  int64_t extent = x.shape()[0];
  for (int64_t d = 0; d < count; ++d) extent = std::min(extent, x.shape()[static_cast<size_t>(d)]);
  for (size_t d = static_cast<size_t>(count); d < x.ndim(); ++d) wanted.push_back(x.shape()[d]);
  const Item at = indices(draft, numbers(shape), extent);
  const Item updates = draft.like(x.dtype(), numbers(wanted), small(), from_to(0, 1));
  const std::string how =
      x.dtype().is_integer() && x.dtype().bits < 32 ? "update" : reduction(draft, x.dtype());
  if (how == "mul" && x.dtype().is_integer() && updates.magnitude() > 1) return;
  draft.call(op, {x.value, at.value, updates.value}, {{"reduction", how}}, rounds_of(how));
}

void reverse_sequence(Draft& draft, std::string_view op) {
  const Item x = source(draft, 2, 4);
  const auto seq = draft.choices.below(static_cast<uint32_t>(x.ndim()));
  const auto batch = (seq + 1 + draft.choices.below(static_cast<uint32_t>(x.ndim() - 1))) %
                     static_cast<uint32_t>(x.ndim());
  const Item lengths = draft.fresh(index_dtype(draft), Shape{x.type->dim(batch)},
                                   from_to(0, static_cast<double>(x.shape()[seq])));
  draft.call(op, {x.value, lengths.value},
             {{"seq_axis", static_cast<int64_t>(seq)}, {"batch_axis", static_cast<int64_t>(batch)}},
             kNever);
}

Value scalar(DType dtype, double value) {
  return make<graph::PrimValue>(dtype.is_float() ? imm(dtype, value)
                                                 : imm(dtype, static_cast<int64_t>(value)));
}

void one_hot(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t depth = draft.extent(9);
  const Shape shape = numbers(draft.shape(c.below(3), 64));
  const Item at = indices(draft, shape, depth);
  const DType dtype = draft.number_dtype();
  draft.call(op, {at.value, scalar(dtype, c.of({1.0, 5.0})), scalar(dtype, c.of({0.0, 2.0}))},
             {{"depth", depth}, {"axis", random_axis(draft, shape.size() + 1)}}, kNever);
}

void where(Draft& draft, std::string_view op) {
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 0, 4);
  const auto cut = [&](Shape shape) {
    for (Expr& dim : shape)
      if (draft.choices.chance(15)) dim = int64(1);
    while (!shape.empty() && draft.choices.chance(15)) shape.erase(shape.begin());
    return shape;
  };
  const Item condition = draft.like(kBool, cut(*x.type->shape));
  const Item other = draft.like(x.dtype(), cut(*x.type->shape));
  const bool flip = draft.choices.chance(40);
  draft.call(op, {condition.value, flip ? other.value : x.value, flip ? x.value : other.value}, {},
             kNever);
}

void clip(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([&] { return draft.number_dtype(); }, 0, 4,
                               [](const Item& item) { return !item.dtype().is_bool(); });
  const double least = x.dtype().is_uint() ? c.of({0.0, 1.0}) : c.of({0.0, -1.0, 1.0});
  const DType dtype = c.chance(70) ? x.dtype() : x.dtype().is_float() ? kFloat32 : kInt64;
  double most = c.of({6.0, 1.0, 2.0});
  // Numbers of two bits end at 1, or at 3.
  if (dtype.is_integer())
    most = std::min(most, std::ldexp(1, dtype.is_uint() ? dtype.bits : dtype.bits - 1) - 1);
  draft.call(op, {x.value, scalar(dtype, least), scalar(dtype, most)}, {}, kNever);
}

void prelu(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([&] { return draft.float_dtype(); }, 1, 4,
                               [](const Item& item) { return item.dtype().is_float(); });
  AttrValue axis;
  Shape shape;
  if (c.chance(70)) {
    const int64_t at = random_axis(draft, x.ndim());
    axis = at;
    shape = {c.chance(20) ? int64(1) : x.type->dim(static_cast<int64_t>(from_front(at, x.ndim())))};
  } else {
    shape = *x.type->shape;
    for (Expr& dim : shape)
      if (c.chance(30)) dim = int64(1);
  }
  draft.call(op, {x.value, draft.like(x.dtype(), shape).value}, {{"axis", axis}},
             Rounds::kArithmetic);
}

}  // namespace

std::vector<GeneratorRow> index_generators() {
  return {{"take", take, 4},          {"gather_elements", gather_elements},
          {"gather_nd", gather_nd},   {"scatter_elements", scatter_elements},
          {"scatter_nd", scatter_nd}, {"reverse_sequence", reverse_sequence, 1},
          {"one_hot", one_hot},       {"where", where, 4},
          {"clip", clip, 3},          {"nn.prelu", prelu}};
}

}  // namespace tenon::fuzz
