// SPDX-License-Identifier: Apache-2.0
// Operators that give elements another place: shapes, axes, pieces, layouts; conversions.
#include <algorithm>
#include <cmath>

#include "generators.h"
#include "tenon/graph/layout.h"
#include "tenon/graph/shape.h"

namespace tenon::fuzz {

namespace {

using graph::Value;
using Shape = std::vector<Expr>;
constexpr Rounds kNever = Rounds::kNever;

Value shape_value(Shape dims) { return make<graph::ShapeExpr>(std::move(dims)); }
Value shape_value(const std::vector<int64_t>& dims) {
  Shape out;
  for (const int64_t dim : dims) out.push_back(int64(dim));
  return shape_value(std::move(out));
}

Item any_tensor(Draft& draft, size_t least_rank, size_t most_rank, const Draft::Fits& fits = {},
                int64_t elements = 2048) {
  return draft.operand([&] { return draft.any_dtype(); }, least_rank, most_rank, fits, {},
                       elements);
}
int64_t random_axis(Draft& draft, size_t rank) {
  const auto axis = static_cast<int64_t>(draft.choices.below(static_cast<uint32_t>(rank)));
  return draft.choices.chance(30) ? axis - static_cast<int64_t>(rank) : axis;
}
size_t from_front(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
template <typename T>
void shuffle(Draft& draft, std::vector<T>& values) {
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[i - 1 - draft.choices.below(static_cast<uint32_t>(i))]);
}

// ---- reshape and its kin ------------------------------------------------------------------------

// The same elements in other dimensions: neighbours joined, numbers split, ones put in.
Shape other_shape(Draft& draft, const Shape& from) {
  Choices& c = draft.choices;
  Shape out;
  for (size_t d = 0; d < from.size(); ++d) {
    const auto known = as_int(from[d]);
    if (!out.empty() && c.chance(40)) {
      out.back() = graph::simplify_dim(out.back() * from[d]);
    } else if (known && *known > 1 && c.chance(30)) {
      int64_t factor = 2;
      while (*known % factor != 0) ++factor;
      out.push_back(int64(*known / factor));
      out.push_back(int64(factor));
    } else {
      out.push_back(from[d]);
    }
    if (c.chance(10)) out.push_back(int64(1));
  }
  return out;
}

void reshape(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 0, 4);
  Shape shape = other_shape(draft, *x.type->shape);
  for (Expr& dim : shape)
    if (const auto known = as_int(dim)) dim = draft.number(*known);
  if (!shape.empty() && x.data->elements() > 0 && draft.choices.chance(30))
    shape[draft.choices.below(static_cast<uint32_t>(shape.size()))] = int64(-1);
  draft.call(op, {x.value, shape_value(std::move(shape))}, {}, kNever);
}

void flatten(Draft& draft, std::string_view op) {
  draft.call(op, {any_tensor(draft, 0, 4).value}, {}, kNever);
}

void expand_dims(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 0, 3);
  AttrList axes{random_axis(draft, x.ndim() + 1)};
  if (draft.choices.chance(20)) axes = AttrList{int64_t{0}, int64_t{-1}};
  draft.call(op, {x.value}, {{"axis", axes}}, kNever);
}

void squeeze(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const auto is_one = [](const Item& item, size_t d) {
    return as_int(item.type->dim(static_cast<int64_t>(d))) == 1;
  };
  const auto found = draft.find([&](const Item& item) {
    for (size_t d = 0; d < item.ndim(); ++d)
      if (is_one(item, d)) return true;
    return false;
  });
  std::vector<int64_t> shape = draft.shape(3);
  shape[c.below(3)] = 1;
  const Item x = found ? *found : draft.fresh(draft.any_dtype(), shape);
  AttrList axes;
  for (size_t d = 0; d < x.ndim(); ++d)
    if (is_one(x, d) && (axes.empty() || c.chance(50))) axes.emplace_back(static_cast<int64_t>(d));
  draft.call(op, {x.value},
             {{"axis", x.is_static() && c.chance(30) ? AttrValue() : AttrValue(axes)}}, kNever);
}

void permute(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 0, 5);
  if (draft.choices.chance(20)) {
    draft.call(op, {x.value}, {}, kNever);
    return;
  }
  std::vector<int64_t> axes;
  for (size_t d = 0; d < x.ndim(); ++d) axes.push_back(static_cast<int64_t>(d));
  std::reverse(axes.begin(), axes.end());
  shuffle(draft, axes);
  draft.call(op, {x.value}, {{"axes", axes}}, kNever);
}

void broadcast_to(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = any_tensor(draft, 0, 3, {}, 512);
  Shape shape = *x.type->shape;
  for (Expr& dim : shape)
    if (as_int(dim) == 1 && c.chance(70)) dim = draft.number(draft.extent(17));
  if (c.chance(40)) shape.insert(shape.begin(), draft.number(draft.extent(9)));
  draft.call(op, {x.value, shape_value(std::move(shape))}, {}, kNever);
}

void tile(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = any_tensor(draft, 0, 3, {}, 512);
  std::vector<int64_t> repeats;
  for (size_t d = 0; d < x.ndim() + c.below(2); ++d) repeats.push_back(c.of({1, 2, 3}));
  if (c.chance(20) && !repeats.empty()) repeats.erase(repeats.begin());
  draft.call(op, {x.value}, {{"repeats", repeats}}, kNever);
}

void repeat(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = any_tensor(draft, 1, 3, {}, 512);
  Attrs attrs{{"repeats", c.between(1, 3)}};
  if (c.chance(80)) attrs.set("axis", random_axis(draft, x.ndim()));
  draft.call(op, {x.value}, attrs, kNever);
}

void flip(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 1, 4);
  draft.call(op, {x.value}, {{"axis", random_axis(draft, x.ndim())}}, kNever);
}

void triangle(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 2, 4);
  draft.call(op, {x.value}, {{"k", draft.choices.between(0, 6) - 3}}, kNever);
}

// ---- joining and cutting ------------------------------------------------------------------------

void concat(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = any_tensor(draft, 1, 4, {}, 1024);
  const int64_t axis = random_axis(draft, x.ndim());
  const size_t at = from_front(axis, x.ndim());
  std::vector<Value> parts = {x.value};
  for (uint32_t i = 0, more = c.below(3) + (c.chance(90) ? 1 : 0); i < more; ++i) {
    Shape shape = *x.type->shape;
    if (c.chance(60)) shape[at] = int64(draft.extent(17));
    parts.push_back(draft.like(x.dtype(), shape).value);
  }
  if (c.chance(40)) std::swap(parts.front(), parts.back());
  draft.call(op, {make<graph::Tuple>(parts)}, {{"axis", axis}}, kNever);
}

void split(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = any_tensor(draft, 1, 4);
  const int64_t axis = random_axis(draft, x.ndim());
  const int64_t extent = x.shape()[from_front(axis, x.ndim())];
  AttrValue how = int64_t{2};
  if (c.chance(40)) {
    how = c.between(1, 4);
  } else if (c.chance(50)) {
    std::vector<int64_t> starts;
    for (int64_t at = 0; at < extent && starts.size() < 3;)
      starts.push_back(at += 1 + c.below(static_cast<uint32_t>(std::max<int64_t>(1, extent / 2))));
    while (!starts.empty() && starts.back() > extent) starts.pop_back();
    if (!starts.empty()) how = AttrValue(starts);
  }
  draft.calls(op, {x.value}, {{"indices_or_sections", how}, {"axis", axis}}, kNever);
}

struct Bounds {
  std::vector<int64_t> axes, begin, end, strides;
};

// Of some axes, or of all: also negative, beyond the ends, backwards.
Bounds random_bounds(Draft& draft, const Item& x, bool all) {
  Choices& c = draft.choices;
  Bounds bounds;
  for (size_t d = 0; d < x.ndim(); ++d) {
    if (!all && x.ndim() > 1 && !c.chance(60)) continue;
    const int64_t extent = x.shape()[d];
    const bool fixed = as_int(x.type->dim(static_cast<int64_t>(d))).has_value();
    bounds.axes.push_back(static_cast<int64_t>(d));
    const int64_t stride =
        c.of({int64_t{1}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{-1}, int64_t{-2}});
    int64_t begin = c.below(static_cast<uint32_t>(std::max<int64_t>(1, extent)));
    int64_t end = begin + 1 + c.below(static_cast<uint32_t>(std::max<int64_t>(1, extent - begin)));
    if (stride < 0) {
      std::swap(begin, end);
      --begin, --end;
    }
    if (fixed && c.chance(20) && begin > 0) begin -= extent;
    if (fixed && c.chance(20) && end > 0 && end < extent) end -= extent;
    if (end < 0 && stride < 0) end = -(int64_t{1} << 31);
    if (c.chance(15)) {
      begin = stride > 0 ? 0 : int64_t{1} << 31;
      end = stride > 0 ? (int64_t{1} << 31) : -(int64_t{1} << 31);
    }
    bounds.begin.push_back(begin);
    bounds.end.push_back(end);
    bounds.strides.push_back(stride);
  }
  return bounds;
}

void strided_slice(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 1, 4);
  const Bounds b = random_bounds(draft, x, false);
  if (b.axes.empty()) return;
  const auto numbers = [&](const std::vector<int64_t>& values) {
    Shape out;
    for (const int64_t value : values) out.push_back(draft.number(value));
    return shape_value(std::move(out));
  };
  std::vector<Value> args = {x.value, shape_value(b.axes), numbers(b.begin), numbers(b.end)};
  const bool plain =
      std::all_of(b.strides.begin(), b.strides.end(), [](int64_t stride) { return stride == 1; });
  if (!plain || draft.choices.chance(50)) args.push_back(numbers(b.strides));
  draft.call(op, args, {}, kNever);
}

void dynamic_slice(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 1, 3);
  const Bounds b = random_bounds(draft, x, true);
  const auto vector = [&](const std::vector<int64_t>& values) -> Value {
    return make<graph::Constant>(
        TensorData::of<int64_t>(kInt64, {static_cast<int64_t>(values.size())}, values));
  };
  draft.call(op, {x.value, vector(b.begin), vector(b.end), vector(b.strides)}, {}, kNever);
}

void pad(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand(
      [&] { return draft.number_dtype(); }, 1, 4,
      [](const Item& item) { return !item.dtype().is_bool() && item.data->elements() > 0; }, {},
      1024);
  const std::string mode = c.of({"constant", "reflect", "edge", "circular"});
  std::vector<int64_t> widths;
  for (const int64_t extent : x.shape()) {
    for (int side = 0; side < 2; ++side) {
      int64_t width = c.chance(50) ? c.below(4) : 0;
      if (mode == "reflect") width = std::min(width, extent - 1);
      if (mode == "constant" && c.chance(10) && extent > 3) width = -1;
      widths.push_back(width);
    }
  }
  if (c.chance(30)) {  // as operands
    Shape given;
    for (const int64_t width : widths) given.push_back(draft.number(width));
    std::vector<Value> args = {x.value, shape_value(std::move(given))};
    if (mode == "constant")
      args.push_back(draft.fresh(x.dtype(), std::vector<int64_t>{}, from_to(0, 3)).value);
    draft.call(op, args, {{"pad_mode", mode}}, kNever);
    return;
  }
  Attrs attrs{{"pad_width", widths}, {"pad_mode", mode}};
  if (mode == "constant" && c.chance(50)) attrs.set("pad_value", c.of({1.0, 2.0, 0.0}));
  draft.call(op, {x.value}, attrs, kNever);
}

// ---- layouts ------------------------------------------------------------------------------------

void layout_transform(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  static const std::vector<std::vector<std::string>> kPairs = {
      {"NCHW", "NHWC"},      {"NCHW", "NCHW4c"},   {"NCHW", "NCHW8c"}, {"NCHW", "NCHW16c"},
      {"OIHW", "OIHW8i8o"},  {"OIHW", "HWIO"},     {"NHWC", "NCHW8c"}, {"NCW", "NCW4c"},
      {"IO", "OI8o"},        {"NCDHW", "NDHWC"},   {"NCHW4c", "NCHW"}, {"NCHW8c", "NHWC"},
      {"NCHW8c", "NCHW16c"}, {"NCHW4c", "NCHW8c"}, {"OI8o", "IO"}};
  const auto& pair = c.of(kPairs);
  const auto from = *graph::Layout::parse(pair[0]);
  std::vector<int64_t> shape;
  for (const auto& axis : from.axes())
    shape.push_back(axis.block ? axis.block
                               : draft.extent(from.ndim() > 4      ? 5
                                              : axis.letter == 'C' ? 33
                                                                   : 9));
  Attrs attrs{{"src_layout", pair[0]}, {"dst_layout", pair[1]}};
  draft.call(op, {draft.fresh(draft.float_dtype(), shape).value}, attrs, kNever);
}

void depth_to_space(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t block = c.between(1, 3);
  const auto shape = std::vector<int64_t>{draft.extent(3), draft.extent(5) * block * block,
                                          draft.extent(9), draft.extent(9)};
  Attrs attrs{{"block_size", block}, {"mode", c.of({"DCR", "CRD"})}};
  draft.call(op, {draft.fresh(draft.any_dtype(), shape).value}, attrs, kNever);
}

void space_to_depth(Draft& draft, std::string_view op) {
  const int64_t block = draft.choices.between(1, 3);
  const auto shape = std::vector<int64_t>{draft.extent(3), draft.extent(9), draft.extent(5) * block,
                                          draft.extent(5) * block};
  draft.call(op, {draft.fresh(draft.any_dtype(), shape).value}, {{"block_size", block}}, kNever);
}

// ---- conversions --------------------------------------------------------------------------------

void astype(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 0, 4, [](const Item& item) { return item.finite; });
  const DType to = draft.choices.of({kFloat32, kInt32, kInt64, kBool, kFloat16, kFloat64, kInt8,
                                     kUInt8, kBFloat16, kInt16, kUInt16, kUInt32, kUInt64,
                                     kFloat8e4m3fn, kFloat8e5m2, kFloat8e4m3fnuz, kFloat8e5m2fnuz});
  if (!x.finite) return;
  if (!to.is_float()) {
    if (x.dtype().is_float() && !x.exact) return;
    // What does not fit an integer has no meaning.
    const double most = std::ldexp(1, std::min<int>(to.bits, 62) - 1) - 1;
    if (!to.is_bool() && (x.most > most || x.least < (to.is_uint() ? 0 : -most))) return;
  }
  // Widening is exact; narrowing rounds as every target does, and may be combined with what is
  // before it.
  const bool exact = !to.is_float() || (x.on_grid && x.magnitude() < (to.bits <= 16 ? 8 : 1e5));
  draft.call(op, {x.value}, {{"dtype", to}}, exact ? kNever : Rounds::kAlways);
}

void shape_to_tensor(Draft& draft, std::string_view op) {
  const Item x = any_tensor(draft, 1, 4);
  draft.call(op, {shape_value(*x.type->shape)}, {}, kNever);
}

}  // namespace

std::vector<GeneratorRow> shape_generators() {
  return {{"reshape", reshape, 5},
          {"flatten", flatten, 1},
          {"expand_dims", expand_dims},
          {"squeeze", squeeze},
          {"permute_dims", permute, 5},
          {"broadcast_to", broadcast_to},
          {"tile", tile},
          {"repeat", repeat},
          {"flip", flip},
          {"tril", triangle, 1},
          {"triu", triangle, 1},
          {"concat", concat, 5},
          {"split", split, 3},
          {"strided_slice", strided_slice, 5},
          {"dynamic_strided_slice", dynamic_slice, 1},
          {"nn.pad", pad, 4},
          {"layout_transform", layout_transform, 2},
          {"nn.depth_to_space", depth_to_space, 1},
          {"nn.space_to_depth", space_to_depth, 1},
          {"astype", astype, 4},
          {"shape_to_tensor", shape_to_tensor, 1}};
}

}  // namespace tenon::fuzz
