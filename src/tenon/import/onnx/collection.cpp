// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/collection.h"

#include <algorithm>

#include "tenon/arith/analyzer.h"

namespace tenon::onnx {

using graph::TensorType;

int64_t Packed::most_dims() const { return *as_int((*shaped(shapes)->shape)[1]) - 1; }

ItemRef item_of(Value value) {
  auto item = std::make_shared<Item>();
  item->value = std::move(value);
  return item;
}
ItemRef item_of(Elements elements) {
  auto item = std::make_shared<Item>();
  item->elements = std::move(elements);
  return item;
}
ItemRef item_of(Collection collection) {
  auto item = std::make_shared<Item>();
  item->collection = std::make_shared<const Collection>(std::move(collection));
  return item;
}

namespace {

// A slice of the first axis, known to be inside of it.
Value rows(Context& c, const Value& value, const Expr& begin, const Expr& end) {
  const Value out = c.op("strided_slice",
                         {value, c.shape_value({int64(0)}), c.shape_value({begin}),
                          c.shape_value({end}), c.shape_value({int64(1)})},
                         {{"assume_inbound", true}});
  Dims dims = *shaped(out)->shape;
  const Expr length = arith::simplify(end - begin);
  if (arith::proves_equal(dims[0], length)) return out;
  dims[0] = length;  // not below 0, as the positions are checked
  return c.builder().match_cast(out, make<TensorType>(std::move(dims), shaped(out)->dtype));
}

Value joined(Context& c, const std::vector<Value>& parts) {
  if (parts.size() == 1) return parts[0];
  return c.op("concat", {make<graph::Tuple>(parts)}, {{"axis", int64_t{0}}});
}

// A vector of numbers, a constant where they are known.
Value numbers(Context& c, const Dims& values) {
  if (const auto known = as_ints(values)) return c.ints_constant(*known);
  return c.op("shape_to_tensor", {c.shape_value(values)});
}

// The row of `shapes` for a tensor of these dimensions.
Dims row_of(const Dims& dims, int64_t most_dims) {
  Dims row{int64(static_cast<int64_t>(dims.size()))};
  row.insert(row.end(), dims.begin(), dims.end());
  row.resize(static_cast<size_t>(1 + most_dims), int64(1));
  return row;
}

// With columns for more dimensions.
Packed widened(Context& c, Packed packed, int64_t most_dims) {
  const int64_t more = most_dims - packed.most_dims();
  if (more <= 0) return packed;
  const Value ones = c.op("broadcast_to", {c.reshape(c.ints_constant({1}), {int64(1), int64(1)}),
                                           c.shape_value({packed.length(), int64(more)})});
  packed.shapes = c.op("concat", {make<graph::Tuple>(std::vector{packed.shapes, ones})},
                       {{"axis", int64_t{1}}});
  return packed;
}

Packed pack(Context& c, const std::vector<ItemRef>& tensors, DType dtype, int64_t most_dims) {
  const auto count = static_cast<int64_t>(tensors.size());
  Packed out;
  if (count == 0) {
    out.data = c.filled(dtype, {0}, 0);
    out.shapes = c.filled(kInt64, {0, 1 + most_dims}, 0);
    return out;
  }
  std::vector<Value> parts;
  Dims shapes;
  out.rank = tensors[0]->type()->ndim;
  out.dims = *tensors[0]->type()->shape;
  for (const ItemRef& tensor : tensors) {
    const Value value = c.value_of(tensor);
    const Dims dims = *shaped(value)->shape;
    if (static_cast<int64_t>(dims.size()) != out.rank) out.rank.reset();
    if (out.dims && !arith::proves_equal(dims, *out.dims)) out.dims.reset();
    parts.push_back(c.reshape(value, {product(dims)}));
    for (Expr& number : row_of(dims, most_dims)) shapes.push_back(std::move(number));
  }
  out.data = joined(c, parts);
  out.shapes = c.reshape(numbers(c, shapes), {int64(count), int64(1 + most_dims)});
  return out;
}

// How many elements the first tensors have, up to that at `position`.
Expr offset_of(Context& c, const Packed& from, const Expr& position, std::string_view what) {
  if (is_int(position, 0)) return int64(0);
  if (from.dims) return arith::simplify(position * product(*from.dims));
  const Expr count = from.length();
  if (arith::proves_equal(position, count)) return (*shaped(from.data)->shape)[0];
  const Value dims = c.op("strided_slice",
                          {rows(c, from.shapes, int64(0), position), c.shape_value({int64(1)}),
                           c.shape_value({int64(1)}), c.shape_value({int64(1 + from.most_dims())}),
                           c.shape_value({int64(1)})});
  const Value sizes = c.op("prod", {dims}, {{"axis", Ints{1}}});
  return c.numbers_of(c.op("sum", {sizes}, {{"axis", Ints{0}}}), what)[0];
}

// From the front, checked.
Expr place(Context& c, const Packed& in, const Expr& position, bool may_be_end) {
  const Expr count = in.length();
  const Expr from_front = arith::simplify(select(position < int64(0), position + count, position));
  c.require(
      logical_and(from_front >= int64(0), may_be_end ? from_front <= count : from_front < count),
      kOutOfBounds, fmt::format("operand `position` of `{}` is outside of its sequence", c.name()));
  return from_front;
}

}  // namespace

int64_t most_dims(const Collection& from) {
  if (from.packed) return from.packed->most_dims();
  int64_t most = 0;
  for (const ItemRef& item : from.items)
    most = std::max(most, item->collection ? most_dims(*item->collection) : item->type()->ndim);
  return most;
}

Collection packed(Context& c, const Collection& from, int64_t most_dims) {
  Collection out;
  out.is_optional = from.is_optional;
  out.dtype = from.dtype;
  if (from.packed) {
    out = from;
    out.packed = widened(c, *from.packed, most_dims);
    return out;
  }
  std::vector<ItemRef> tensors = from.items;
  if (from.is_optional) {
    out.present = c.filled(kBool, {}, from.items.empty() ? 0 : 1);
    out.holds_sequence = from.holds_sequence;
    if (!tensors.empty() && tensors[0]->collection) {
      const Collection inner = *tensors[0]->collection;
      out.holds_sequence = true;
      if (inner.dtype) out.dtype = inner.dtype;
      if (inner.packed) {
        out.packed = widened(c, *inner.packed, most_dims);
        return out;
      }
      tensors = inner.items;
    }
  }
  if (!tensors.empty()) out.dtype = tensors[0]->type()->dtype;
  if (!out.dtype) unsupported("{} of no known type", from.kind());
  out.packed = pack(c, tensors, *out.dtype, most_dims);
  return out;
}

ItemRef packed_at(Context& c, const Packed& from, const Expr& position) {
  if (!from.rank) unsupported("a sequence of tensors of several ranks, at a place the run knows");
  const Expr at = place(c, from, position, false);
  Dims dims = from.dims.value_or(Dims());
  if (!from.dims) {
    const Value row =
        c.reshape(rows(c, from.shapes, at, at + int64(1)), {int64(1 + from.most_dims())});
    const Dims numbers = c.numbers_of(row, "position");
    dims.assign(numbers.begin() + 1, numbers.begin() + 1 + *from.rank);
  }
  const Expr begin = offset_of(c, from, at, "position");
  return item_of(c.reshape(rows(c, from.data, begin, begin + product(dims)), dims));
}

Packed packed_insert(Context& c, const Packed& into, const Value& value, const Expr& position) {
  const Dims dims = *shaped(value)->shape;
  const auto ndim = static_cast<int64_t>(dims.size());
  Packed out = widened(c, into, ndim);
  const Value flat = c.reshape(value, {product(dims)});
  const Value row =
      c.reshape(numbers(c, row_of(dims, out.most_dims())), {int64(1), int64(1 + out.most_dims())});
  const bool was_empty = is_int(into.length(), 0);
  if (was_empty || out.rank != ndim) out.rank = was_empty ? std::optional(ndim) : std::nullopt;
  if (was_empty)
    out.dims = dims;
  else if (out.dims && !arith::proves_equal(*out.dims, dims))
    out.dims.reset();
  if (!position) {
    out.data = joined(c, {out.data, flat});
    out.shapes = joined(c, {out.shapes, row});
    return out;
  }
  const Expr at = place(c, out, position, true);
  const Expr begin = offset_of(c, out, at, "position");
  const Expr count = out.length(), end = (*shaped(out.data)->shape)[0];
  out.data = joined(c, {rows(c, out.data, int64(0), begin), flat, rows(c, out.data, begin, end)});
  out.shapes = joined(c, {rows(c, out.shapes, int64(0), at), row, rows(c, out.shapes, at, count)});
  return out;
}

Packed packed_erase(Context& c, const Packed& from, const Expr& position) {
  Packed out = from;
  const Expr count = from.length(), total = (*shaped(from.data)->shape)[0];
  const Expr at = place(c, from, position ? position : count - int64(1), false);
  const Expr begin = offset_of(c, from, at, "position"),
             end = offset_of(c, from, arith::simplify(at + int64(1)), "position");
  out.data = joined(c, {rows(c, from.data, int64(0), begin), rows(c, from.data, end, total)});
  out.shapes =
      joined(c, {rows(c, from.shapes, int64(0), at), rows(c, from.shapes, at + int64(1), count)});
  return out;
}

Packed packed_split(Context& c, const Value& value, int64_t axis, const Expr& chunk) {
  const Dims dims = *shaped(value)->shape;
  const auto ndim = static_cast<int64_t>(dims.size());
  const auto at = static_cast<size_t>(axis);
  const Expr before = product(Dims(dims.begin(), dims.begin() + axis)),
             behind = product(Dims(dims.begin() + axis + 1, dims.end()));
  const Expr extent = dims[at];
  // Whole chunks are rows of (before, whole, chunk, behind); what is left over is one less than that.
  const Expr whole = arith::simplify(floordiv(extent, chunk));
  const Expr used = arith::simplify(whole * chunk), rest = arith::simplify(extent - used);
  const Expr parts = arith::simplify(ceildiv(extent, chunk));
  const auto part = [&](const Expr& begin, const Expr& end) {
    const Value sliced = c.op("strided_slice",
                              {value, c.shape_value({int64(axis)}), c.shape_value({begin}),
                               c.shape_value({end}), c.shape_value({int64(1)})},
                              {{"assume_inbound", true}});
    Dims inside = dims;
    inside[at] = arith::simplify(end - begin);
    const bool same = arith::proves_equal((*shaped(sliced)->shape)[at], inside[at]);
    return same ? sliced
                : c.builder().match_cast(sliced, make<TensorType>(inside, shaped(value)->dtype));
  };
  const auto row = [&](const Expr& size, const Expr& count) {
    Dims of_part = dims;
    of_part[at] = size;
    const Value one = c.reshape(numbers(c, row_of(of_part, ndim)), {int64(1), int64(1 + ndim)});
    return c.op("broadcast_to", {one, c.shape_value({count, int64(1 + ndim)})});
  };
  const Value blocks = c.reshape(part(int64(0), used), {before, whole, chunk, behind});
  Packed out;
  out.rank = ndim;
  out.data = joined(c, {c.reshape(c.transpose(blocks, {1, 0, 2, 3}), {before * used * behind}),
                        c.reshape(part(used, extent), {before * rest * behind})});
  out.shapes = joined(c, {row(chunk, whole), row(rest, arith::simplify(parts - whole))});
  return out;
}

Packed packed_rows(Context& c, const Value& value, int64_t axis) {
  Dims dims = *shaped(value)->shape;
  Ints order{axis};
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (d != axis) order.push_back(d);
  const Expr count = dims[static_cast<size_t>(axis)];
  Packed out;
  out.data = c.reshape(axis == 0 ? value : c.transpose(value, order), {product(dims)});
  dims.erase(dims.begin() + axis);
  const auto ndim = static_cast<int64_t>(dims.size());
  out.rank = ndim;
  out.dims = dims;
  const Value one = c.reshape(numbers(c, row_of(dims, ndim)), {int64(1), int64(1 + ndim)});
  out.shapes = c.op("broadcast_to", {one, c.shape_value({count, int64(1 + ndim)})});
  return out;
}

// The dimensions of the first tensor, which all have but, where there is one, `but_axis`.
static Dims common_dims(Context& c, const Packed& from, std::optional<int64_t> but_axis) {
  const int64_t width = 1 + from.most_dims(), ndim = *from.rank;
  const Value first = c.reshape(rows(c, from.shapes, int64(0), int64(1)), {int64(width)});
  const Dims row = c.numbers_of(first, "input_sequence");
  Dims dims(row.begin() + 1, row.begin() + 1 + ndim);
  if (ndim == (but_axis ? 1 : 0)) return dims;
  const auto columns = [&](const Value& value) {
    return c.op("strided_slice", {value, c.shape_value({int64(1)}), c.shape_value({int64(1)}),
                                  c.shape_value({int64(1 + ndim)}), c.shape_value({int64(1)})});
  };
  const Value one =
      c.reshape(columns(c.reshape(first, {int64(1), int64(width)})), {int64(1), int64(ndim)});
  Value off = c.op("abs", {c.op("subtract", {columns(from.shapes), one})});
  if (but_axis) {
    Ints counts(static_cast<size_t>(ndim), 1);
    counts[static_cast<size_t>(*but_axis)] = 0;
    off = c.op("multiply", {off, c.ints_constant(counts)});
  }
  const Expr most = c.numbers_of(c.op("max", {off}, {{"axis", Ints{0, 1}}}), "input_sequence")[0];
  c.require(eq(most, int64(0)), kShapeMismatch,
            fmt::format("tensors of `{}` differ in another dimension than the axis", c.name()));
  return dims;
}

// Elements of tensors of different extents along an axis that is not the first, joined along it:
// each from its place in the tensor that has its column.
static Value gathered_columns(Context& c, const Packed& from, const Value& extents,
                              const Dims& dims, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  const Expr columns = dims[at], count = from.length();
  const Expr before = product({dims.begin(), dims.begin() + axis}),
             behind = product({dims.begin() + axis + 1, dims.end()});
  const auto number = [&](const Expr& value) {
    return c.op("full", {c.shape_value({}), c.prim(value)}, {{"dtype", kInt64}});
  };
  const auto places = [&](const Expr& extent, const Dims& shape) {
    const Value all =
        c.op("arange", {c.prim(int64(0)), c.prim(extent), c.prim(int64(1))}, {{"dtype", kInt64}});
    return c.reshape(all, shape);
  };
  const auto sum = [&](const Value& a, const Value& b) { return c.op("add", {a, b}); };
  const auto times = [&](const Value& a, const Value& b) { return c.op("multiply", {a, b}); };
  // The tensor of each column: how many begin there or before, less one.
  const Value starts = c.op("subtract", {c.op("cumsum", {extents}, {{"axis", 0}}), extents});
  const Expr room = arith::simplify(columns + 1);
  const Value none = c.op("zeros", {c.shape_value({room})}, {{"dtype", kInt64}});
  const Value ones = c.op("ones", {c.shape_value({count})}, {{"dtype", kInt64}});
  const Value begun =
      c.op("cumsum",
           {c.op("scatter_elements", {none, starts, ones}, {{"axis", 0}, {"reduction", "add"}})},
           {{"axis", 0}});
  const Value owner = c.op("subtract", {rows(c, begun, int64(0), columns), number(int64(1))});
  const auto of_owner = [&](const Value& x) {
    return c.reshape(c.op("take", {x, owner}, {{"axis", 0}}), {int64(1), columns, int64(1)});
  };
  const Value start = of_owner(starts), extent = of_owner(extents), inner = number(behind);
  const Value column = c.op("subtract", {places(columns, {int64(1), columns, int64(1)}), start});
  const Value row = sum(times(places(before, {before, int64(1), int64(1)}), extent), column);
  const Value index =
      sum(sum(times(start, number(arith::simplify(before * behind))), times(row, inner)),
          places(behind, {int64(1), int64(1), behind}));
  return c.op("take", {from.data, c.reshape(index, {product(dims)})}, {{"axis", 0}});
}

Value packed_concat(Context& c, const Packed& from, bool new_axis, int64_t axis) {
  if (!from.rank) unsupported("a sequence of tensors of several ranks");
  if (!new_axis && *from.rank == 0)
    c.bad(kRankMismatch, "`{}` of tensors of rank 0 along an axis of theirs", c.name());
  const Expr count = from.length();
  c.require(count > int64(0), kBadArgument, fmt::format("`{}` of no tensors", c.name()));
  Dims dims =
      from.dims ? *from.dims : common_dims(c, from, new_axis ? std::nullopt : std::optional(axis));
  const auto with_type = [&](const Dims& shape) {
    const Ref<TensorType> type = shaped(from.data);
    if (arith::proves_equal((*type->shape)[0], product(shape))) return from.data;
    return c.builder().match_cast(from.data, make<TensorType>(Dims{product(shape)}, type->dtype));
  };
  const auto at = static_cast<size_t>(axis);
  const bool is_known = from.dims.has_value();
  if (!new_axis && !(is_known && axis > 0)) {
    const Value extents = c.op(
        "strided_slice", {from.shapes, c.shape_value({int64(1)}), c.shape_value({int64(axis + 1)}),
                          c.shape_value({int64(axis + 2)}), c.shape_value({int64(1)})});
    dims[at] = c.numbers_of(c.op("sum", {extents}, {{"axis", Ints{0, 1}}}), "input_sequence")[0];
    if (axis == 0) return c.reshape(with_type(dims), dims);
    return c.reshape(gathered_columns(c, from, c.reshape(extents, {count}), dims, axis), dims);
  }
  // A new axis in front, which goes to its place.
  Dims stacked = dims;
  stacked.insert(stacked.begin(), count);
  const Value all = c.reshape(with_type(stacked), stacked);
  if (axis == 0) return all;
  Ints order;
  for (int64_t d = 1; d <= *from.rank; ++d) order.push_back(d);
  order.insert(order.begin() + axis, 0);
  const Value turned = c.transpose(all, order);
  if (new_axis) return turned;
  dims[at] = arith::simplify(count * dims[at]);
  return c.reshape(turned, dims);
}

void add_values(Context& c, const ItemRef& item, std::vector<Value>& out) {
  if (!item->collection) {
    out.push_back(c.value_of(item));
    return;
  }
  const Collection& held = *item->collection;
  if (held.packed) {
    if (held.present) out.push_back(held.present);
    out.push_back(held.packed->data);
    out.push_back(held.packed->shapes);
  }
  for (const ItemRef& inner : held.items) add_values(c, inner, out);
}

ItemRef with_values(const ItemRef& form, const std::vector<Value>& values, size_t& next) {
  if (!form->collection) return item_of(values[next++]);
  Collection out = *form->collection;
  if (out.packed) {
    if (out.present) out.present = values[next++];
    out.packed->data = values[next++];
    out.packed->shapes = values[next++];
  }
  for (ItemRef& inner : out.items) inner = with_values(inner, values, next);
  return item_of(std::move(out));
}

bool same_form(const ItemRef& a, const ItemRef& b) {
  if (!a->collection || !b->collection) {
    if (a->collection || b->collection) return false;
    return a->type()->ndim == b->type()->ndim;
  }
  const Collection &x = *a->collection, &y = *b->collection;
  if (x.is_optional != y.is_optional || x.packed.has_value() != y.packed.has_value()) return false;
  if (x.packed) {
    const Packed &p = *x.packed, &q = *y.packed;
    const bool same_dims = p.dims && q.dims ? arith::proves_equal(*p.dims, *q.dims)
                                            : p.dims.has_value() == q.dims.has_value();
    return p.most_dims() == q.most_dims() && p.rank == q.rank && same_dims;
  }
  return x.items.size() == y.items.size() &&
         std::equal(x.items.begin(), x.items.end(), y.items.begin(), same_form);
}

ItemRef either_packed(const ItemRef& a, const ItemRef& b) {
  Collection out = *a->collection;
  const Collection& other = *b->collection;
  if (out.dtype != other.dtype)
    unsupported("branches that give sequences of {} and {}", out.dtype->str(), other.dtype->str());
  out.holds_sequence |= other.holds_sequence;
  const auto is_empty = [](const Packed& packed) { return is_int(packed.length(), 0); };
  if (is_empty(*out.packed)) {
    out.packed->rank = other.packed->rank;
    out.packed->dims = other.packed->dims;
  } else if (!is_empty(*other.packed)) {
    if (out.packed->rank != other.packed->rank) out.packed->rank.reset();
    const bool same = out.packed->dims && other.packed->dims &&
                      arith::proves_equal(*out.packed->dims, *other.packed->dims);
    if (!same) out.packed->dims.reset();
  }
  return item_of(std::move(out));
}

ItemRef with_form(Context& c, const ItemRef& item, const Collection& form) {
  if (!item->collection)
    c.bad(kTypeMismatch, "state of `{}` is {} and becomes a tensor", c.name(), form.kind());
  const Collection& given = *item->collection;
  Collection out = given;
  if (form.is_optional && !given.is_optional) {
    out = Collection();
    out.is_optional = true;
    out.dtype = given.dtype;
    out.items.push_back(item);
  } else if (form.is_optional != given.is_optional) {
    c.bad(kTypeMismatch, "state of `{}` is {} and becomes {}", c.name(), form.kind(), given.kind());
  }
  out = packed(c, out, form.packed->most_dims());
  if (form.dtype && out.dtype != form.dtype)
    c.bad(kDTypeMismatch, "state of `{}` is {} of {} and becomes one of {}", c.name(), form.kind(),
          form.dtype->str(), out.dtype->str());
  return item_of(std::move(out));
}

ItemRef either_form(Context& c, const ItemRef& state, const ItemRef& next) {
  const Packed& made = *next->collection->packed;
  Collection out = packed(c, *state->collection, made.most_dims());
  Packed& begun = *out.packed;
  if (is_int(made.length(), 0)) return item_of(std::move(out));
  if (is_int(begun.length(), 0)) {
    begun.rank = made.rank;
    begun.dims.reset();
    if (made.dims && as_ints(*made.dims)) begun.dims = made.dims;
    return item_of(std::move(out));
  }
  if (begun.rank != made.rank) begun.rank.reset();
  if (!made.dims || !begun.dims || !arith::proves_equal(*begun.dims, *made.dims))
    begun.dims.reset();
  return item_of(std::move(out));
}

ItemRef held_by(Context& c, const ItemRef& item) {
  const auto& held = item->collection;
  if (!held || !held->is_optional) return item;
  if (held->packed) {
    const Expr present = c.numbers_of(held->present, "input")[0];
    c.require(present->dtype.is_bool() ? present : ne(present, int64(0)), kBadArgument,
              fmt::format("`{}` of an optional that is absent", c.name()));
    if (!held->holds_sequence) return packed_at(c, *held->packed, int64(0));
    Collection out;
    out.dtype = held->dtype;
    out.packed = held->packed;
    return item_of(std::move(out));
  }
  if (held->items.empty()) c.bad(kBadArgument, "`{}` of an optional that is absent", c.name());
  return held->items[0];
}

}  // namespace tenon::onnx
