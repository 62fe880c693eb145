// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors, and values that may be absent.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/choices.h"
#include "tenon/import/onnx/collection.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

using ItemRefs = std::vector<ItemRef>;

// As many tensors stand in a program by themselves, and as many are chosen from.
constexpr int64_t kMostTensors = 4096, kMostChoices = 64;

const Collection& sequence(Context& c, size_t i) {
  const auto& held = c.item(i).collection;
  if (!held || held->is_optional)
    c.bad(kTypeMismatch, "operand {} of `{}` is {}; expected a sequence", i, c.name(),
          held ? held->kind() : "a tensor");
  return *held;
}

ItemRef tensor(Context& c, size_t i) {
  if (c.item(i).collection)
    c.bad(kTypeMismatch, "operand {} of `{}` is {}; expected a tensor", i, c.name(),
          c.item(i).collection->kind());
  return c.ref(i);
}

DType dtype_of(const ItemRef& item) { return item->type()->dtype; }

// The tensors of a sequence have one type.
void check_dtype(Context& c, std::optional<DType> held, DType added) {
  if (held && *held != added)
    c.bad(kDTypeMismatch, "`{}` of a tensor of {} and a sequence of {}", c.name(), added.str(),
          held->str());
}

std::optional<DType> dtype_of(const Collection& sequence) {
  return sequence.items.empty() ? sequence.dtype : dtype_of(sequence.items[0]);
}

ItemRef scalar_item(DType dtype, const Expr& value) {
  return item_of(Elements{dtype, {}, {value}});
}

// Null where the operand is left out.
Expr position(Context& c, size_t i) {
  if (!c.has(i)) return {};
  (void)tensor(c, i);
  const Dims at = c.dims(i, "position");
  if (at.size() != 1)
    c.bad(kShapeMismatch, "operand `position` of `{}` has {} elements; expected 1", c.name(),
          at.size());
  return at[0];
}

// A position in a list of `count`, or at its end.
int64_t place(Context& c, int64_t at, int64_t count, bool may_be_end) {
  if (at < -count || at >= count + (may_be_end ? 1 : 0))
    c.bad(kOutOfBounds, "position {} of `{}` in a sequence of {}; expected {} to {}", at, c.name(),
          count, -count, may_be_end ? count : count - 1);
  return at < 0 ? at + count : at;
}

// The same where only the run knows it: from the front, checked.
Expr place(Context& c, const Expr& at, int64_t count, bool may_be_end) {
  const Expr from_front = select(at < int64(0), at + int64(count), at);
  c.require(
      logical_and(at >= int64(-count), at < int64(count + (may_be_end ? 1 : 0))), kOutOfBounds,
      fmt::format("operand `position` of `{}` is outside of its sequence of {}", c.name(), count));
  return from_front;
}

ItemRef chosen(Context& c, const ItemRefs& items, const std::vector<Expr>& conditions) {
  std::vector<Value> values;
  for (const ItemRef& item : items) values.push_back(c.value_of(item));
  std::vector<Ref<graph::SeqExpr>> versions;
  for (const Value& value : values) {
    c.builder().begin_branch();
    versions.push_back(c.builder().end_branch(value));
  }
  return item_of(choose(c.builder(), versions, conditions, "chosen"));
}

// ---- making them

ItemRefs convert_empty(Context& c) {
  Collection out;
  const int64_t type = c.int_attr("dtype", 1);
  out.dtype = onnx::dtype_of(type);
  if (!out.dtype) unsupported("a sequence of {}", data_type_name(type));
  return {item_of(std::move(out))};
}

ItemRefs convert_construct(Context& c) {
  Collection out;
  for (size_t i = 0; i < c.input_count(); ++i) {
    out.items.push_back(tensor(c, i));
    check_dtype(c, out.dtype, dtype_of(out.items[i]));
    out.dtype = dtype_of(out.items[0]);
  }
  return {item_of(std::move(out))};
}

ItemRefs convert_insert(Context& c) {
  const Collection& from = sequence(c, 0);
  const ItemRef added = tensor(c, 1);
  check_dtype(c, dtype_of(from), dtype_of(added));
  const Expr at = position(c, 2);
  Collection out = from;
  out.dtype = dtype_of(added);
  if (from.packed) {
    out.packed = packed_insert(c, *from.packed, c.value_of(added), at);
    return {item_of(std::move(out))};
  }
  const auto count = static_cast<int64_t>(from.items.size());
  if (!at || as_int(at)) {
    const int64_t known = at ? place(c, *as_int(at), count, true) : count;
    out.items.insert(out.items.begin() + known, added);
    return {item_of(std::move(out))};
  }
  const Expr begin = place(c, at, count, true);
  out.items.push_back(added);
  for (int64_t i = 0; i <= count; ++i) {
    const auto k = static_cast<size_t>(i);
    ItemRefs versions;
    std::vector<Expr> conditions;
    if (i < count) {
      versions.push_back(from.items[k]);
      conditions.push_back(begin > int64(i));
    }
    versions.push_back(added);
    conditions.push_back(eq(begin, int64(i)));
    if (i > 0) versions.push_back(from.items[k - 1]);
    out.items[k] = chosen(c, versions, conditions);
  }
  return {item_of(std::move(out))};
}

ItemRefs convert_erase(Context& c) {
  const Collection& from = sequence(c, 0);
  const Expr at = position(c, 1);
  Collection out = from;
  if (from.packed) {
    out.packed = packed_erase(c, *from.packed, at);
    return {item_of(std::move(out))};
  }
  const auto count = static_cast<int64_t>(from.items.size());
  if (count == 0) c.bad(kOutOfBounds, "`{}` of an empty sequence", c.name());
  out.dtype = dtype_of(from);
  if (!at || as_int(at)) {
    out.items.erase(out.items.begin() + (at ? place(c, *as_int(at), count, false) : count - 1));
    return {item_of(std::move(out))};
  }
  const Expr gone = place(c, at, count, false);
  out.items.pop_back();
  for (size_t i = 0; i < out.items.size(); ++i)
    out.items[i] =
        chosen(c, {from.items[i], from.items[i + 1]}, {gone > int64(static_cast<int64_t>(i))});
  return {item_of(std::move(out))};
}

// ---- asking them

ItemRefs convert_at(Context& c) {
  const Collection& from = sequence(c, 0);
  const Expr at = position(c, 1);
  if (from.packed) return {packed_at(c, *from.packed, at)};
  const auto count = static_cast<int64_t>(from.items.size());
  if (const auto known = as_int(at))
    return {from.items[static_cast<size_t>(place(c, *known, count, false))]};
  if (count == 0) c.bad(kOutOfBounds, "`{}` of an empty sequence", c.name());
  if (count > kMostChoices) return {packed_at(c, *packed(c, from, most_dims(from)).packed, at)};
  const Expr wanted = place(c, at, count, false);
  std::vector<Expr> conditions;
  for (int64_t i = 0; i + 1 < count; ++i) conditions.push_back(eq(wanted, int64(i)));
  return {chosen(c, from.items, conditions)};
}

ItemRefs convert_length(Context& c) {
  const Collection& from = sequence(c, 0);
  return {scalar_item(kInt64, from.packed ? from.packed->length()
                                          : Expr(int64(static_cast<int64_t>(from.items.size()))))};
}

// ---- splitting and joining

ItemRefs convert_split_to_sequence(Context& c) {
  const Value value = c.value_of(tensor(c, 0));
  const int64_t axis = c.axis(c.int_attr("axis", 0), c.ndim(0));
  const bool keeps = c.flag_attr("keepdims", true) || c.has(1);
  const Expr extent = c.shape(0)[static_cast<size_t>(axis)];
  Collection out;
  out.dtype = c.dtype(0);
  Expr chunk = int64(1);
  std::optional<Dims> sizes;
  if (c.has(1)) {
    const Dims given = c.dims(1, "split");
    if (c.ndim(1) > 1)
      c.bad(kRankMismatch, "operand `split` of `{}` has rank {}; expected 0 or 1", c.name(),
            c.ndim(1));
    if (c.ndim(1) == 1)
      sizes = given;
    else
      chunk = given[0];
  }
  if (!sizes) {
    c.require(chunk > int64(0), kBadArgument,
              fmt::format("operand `split` of `{}` is not above 0", c.name()));
    const auto total = as_int(extent), size = as_int(chunk);
    if (!total || !size || *total / *size > kMostTensors) {
      out.packed =
          keeps ? packed_split(c, value, axis, max(chunk, int64(1))) : packed_rows(c, value, axis);
      return {item_of(std::move(out))};
    }
    sizes.emplace();
    for (int64_t at = 0; at < *total; at += *size)
      sizes->push_back(int64(std::min(*size, *total - at)));
  }
  if (sizes->empty()) {
    c.require(eq(extent, int64(0)), kShapeMismatch,
              fmt::format("the sizes of `{}` are not those of its axis", c.name()));
    return {item_of(std::move(out))};
  }
  for (Value& part : split_into(c, axis, *sizes)) {
    if (!keeps) {
      Dims dims = *shaped(part)->shape;
      dims.erase(dims.begin() + axis);
      part = c.reshape(part, dims);
    }
    out.items.push_back(item_of(std::move(part)));
  }
  return {item_of(std::move(out))};
}

// What is known of each tensor, joined: scalars along a new axis, or vectors.
std::optional<Elements> joined_elements(const ItemRefs& items, bool new_axis) {
  Elements out{dtype_of(items[0]), {0}, {}};
  for (const ItemRef& item : items) {
    if (!item->elements || item->elements->ndim() != (new_axis ? 0 : 1)) return std::nullopt;
    out.values.insert(out.values.end(), item->elements->values.begin(),
                      item->elements->values.end());
  }
  out.shape[0] = static_cast<int64_t>(out.values.size());
  if (out.shape[0] > kMostElements) return std::nullopt;
  return out;
}

ItemRefs convert_concat_from_sequence(Context& c) {
  const Collection& from = sequence(c, 0);
  const bool new_axis = c.flag_attr("new_axis");
  int64_t axis = c.int_attr("axis");
  if (from.packed) {
    const int64_t ndim = from.packed->rank.value_or(0) + (new_axis ? 1 : 0);
    axis = c.axis(axis, std::max<int64_t>(ndim, 1));
    return {item_of(packed_concat(c, *from.packed, new_axis, axis))};
  }
  if (from.items.empty()) c.bad(kBadArgument, "`{}` of an empty sequence", c.name());
  const int64_t ndim = from.items[0]->type()->ndim + (new_axis ? 1 : 0);
  axis = c.axis(axis, ndim);
  if (auto known = joined_elements(from.items, new_axis)) return {item_of(std::move(*known))};
  std::vector<Value> parts;
  for (const ItemRef& item : from.items) {
    Value part = c.value_of(item);
    Dims dims = *shaped(part)->shape;
    if (new_axis) {
      if (static_cast<int64_t>(dims.size()) + 1 != ndim)
        c.bad(kRankMismatch, "`{}` of tensors of ranks {} and {}", c.name(), ndim - 1, dims.size());
      dims.insert(dims.begin() + axis, int64(1));
      part = c.reshape(part, dims);
    }
    parts.push_back(std::move(part));
  }
  if (parts.size() == 1) return {item_of(parts[0])};
  return {item_of(c.op("concat", {make<graph::Tuple>(std::move(parts))}, {{"axis", axis}}))};
}

// ---- the body for each, where their number is known (Importer::map_packed where it is not)

ItemRefs convert_map(Context& c) {
  const auto body = c.graph_attr("body");
  const Collection& first = sequence(c, 0);
  std::vector<Collection> results(c.output_count());
  for (size_t k = 0; k < first.items.size(); ++k) {
    ItemRefs args;
    for (size_t i = 0; i < c.input_count(); ++i) {
      const auto& held = c.item(i).collection;
      if (!held) {
        args.push_back(c.ref(i));
        continue;
      }
      if (sequence(c, i).items.size() != first.items.size())
        c.bad(kShapeMismatch, "`{}` of sequences of {} and {} tensors", c.name(),
              first.items.size(), held->items.size());
      args.push_back(held->items[k]);
    }
    const ItemRefs items = c.inlined(*body, args);
    if (items.size() != results.size())
      c.bad(kBadModel, "`{}` has {} outputs; its body has {}", c.name(), results.size(),
            items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i]->collection) unsupported("a body that gives {}", items[i]->collection->kind());
      results[i].items.push_back(items[i]);
    }
  }
  ItemRefs out;
  for (size_t i = 0; i < results.size(); ++i) {
    if (first.items.empty() && i < body->outputs.size()) results[i].dtype = body->outputs[i].dtype;
    out.push_back(item_of(std::move(results[i])));
  }
  return out;
}

// ---- values that may be absent

ItemRefs convert_optional(Context& c) {
  Collection out;
  out.is_optional = true;
  const ValueInfo* type = c.has_attr("type") ? &c.type_attr("type") : nullptr;
  if (c.has(0)) {
    if (c.item(0).collection && c.item(0).collection->is_optional)
      c.bad(kTypeMismatch, "`{}` of an optional", c.name());
    out.items.push_back(c.ref(0));
  } else {
    if (!type) c.bad(kBadAttribute, "`{}` has neither an operand nor attribute `type`", c.name());
    if (!type->unsupported.empty()) unsupported("an optional of {}", type->unsupported);
    out.dtype = type->dtype;
    out.holds_sequence = type->is_sequence();
  }
  return {item_of(std::move(out))};
}

ItemRefs convert_has_element(Context& c) {
  if (!c.has(0)) return {scalar_item(kBool, boolean(false))};
  const auto& held = c.item(0).collection;
  if (held && held->packed && held->present) return {item_of(held->present)};
  return {scalar_item(kBool, boolean(!held || !held->is_optional || !held->items.empty()))};
}

ItemRefs convert_get_element(Context& c) { return {held_by(c, c.ref(0))}; }

}  // namespace

std::vector<OperatorRow> sequence_rows() {
  const auto row = [](std::string name, int first, int least, int most, ConvertItems convert,
                      std::string forms = {}) {
    OperatorRow out{std::move(name), first, least, most, {}, "all", std::move(forms)};
    out.convert_items = std::move(convert);
    return out;
  };
  return {
      row("SequenceEmpty", 11, 0, 0, convert_empty),
      row("SequenceConstruct", 11, 1, -1, convert_construct),
      row("SequenceInsert", 11, 2, 3, convert_insert),
      row("SequenceErase", 11, 1, 2, convert_erase),
      row("SequenceAt", 11, 2, 2, convert_at),
      row("SequenceLength", 11, 1, 1, convert_length),
      row("SplitToSequence", 11, 1, 2, convert_split_to_sequence),
      row("ConcatFromSequence", 11, 1, 1, convert_concat_from_sequence,
          "where only the run knows the length: along the first axis"),
      row("SequenceMap", 17, 1, -1, convert_map),
      row("Optional", 15, 0, 1, convert_optional),
      row("OptionalHasElement", 15, 0, 1, convert_has_element),
      row("OptionalGetElement", 15, 1, 1, convert_get_element),
  };
}

}  // namespace tenon::onnx
