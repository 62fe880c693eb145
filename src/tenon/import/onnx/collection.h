// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals as the importer holds them (docs/design/0013-sequences.md): lists of what is
// known to be there, or two tensors where only the run knows how many there are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/import/onnx/context.h"

namespace tenon::onnx {

/// A sequence whose length the run decides.
struct Packed {
  Value data;                   // the elements of all tensors, one behind the other
  Value shapes;                 // int64 (n, 1 + r): the rank of each, its dimensions, then ones
  std::optional<int64_t> rank;  // of all tensors, where it is one
  std::optional<Dims> dims;     // the same of their dimensions

  Expr length() const { return (*shaped(shapes)->shape)[0]; }
  int64_t most_dims() const;  // r
};

struct Collection {
  bool is_optional = false;
  std::optional<DType> dtype;  // of the tensors, where something says it
  /// Of a sequence its tensors; of an optional what it holds, a tensor or a sequence, or nothing.
  std::vector<ItemRef> items = {};

  /// In place of `items`, where only the run knows them. An optional's tensor is a sequence of one.
  std::optional<Packed> packed = {};
  Value present = nullptr;      // of an optional that is packed: a bool of rank 0
  bool holds_sequence = false;  // of an optional that is packed, or absent

  /// "a sequence", "an optional".
  std::string kind() const { return is_optional ? "an optional" : "a sequence"; }
};

ItemRef item_of(Value value);
ItemRef item_of(Elements elements);
ItemRef item_of(Collection collection);

/// The sequence or optional as tensors that the run makes, with room for `most_dims` dimensions each.
/// \throws Unsupported where nothing says the dtype
Collection packed(Context& c, const Collection& from, int64_t most_dims);
/// How many dimensions its tensors have at most.
int64_t most_dims(const Collection& from);
/// The tensor at `position`, in [-n, n), with the check that it is one.
ItemRef packed_at(Context& c, const Packed& from, const Expr& position);
/// With `value` before `position`, in [-n, n]; at the end where that is null.
Packed packed_insert(Context& c, const Packed& into, const Value& value, const Expr& position);
Packed packed_erase(Context& c, const Packed& from, const Expr& position);
/// `chunk` along `axis` each, of which the last may be less.
Packed packed_split(Context& c, const Value& value, int64_t axis, const Expr& chunk);
/// One for each place of `axis`, without that axis.
Packed packed_rows(Context& c, const Value& value, int64_t axis);
/// Along an axis, or along a new one in its place; counted from the front.
Value packed_concat(Context& c, const Packed& from, bool new_axis, int64_t axis);

/// What an item is made of, in order: a tensor is one value, of a sequence there are those of its
/// tensors, or of what it is packed in.
void add_values(Context& c, const ItemRef& item, std::vector<Value>& out);
/// The item of the form of `form` that is made of `values` from `next` on.
ItemRef with_values(const ItemRef& form, const std::vector<Value>& values, size_t& next);
/// Whether with_values() of one makes the other too, whatever their dimensions.
bool same_form(const ItemRef& a, const ItemRef& b);

/// The form of what is one of two that are packed alike.
ItemRef either_packed(const ItemRef& a, const ItemRef& b);

/// A packed state of a loop as it begins, with room for what an iteration made of it, `next`: in the
/// next one it may be either.
ItemRef either_form(Context& c, const ItemRef& state, const ItemRef& next);
/// A sequence or an optional that is packed like `form`.
ItemRef with_form(Context& c, const ItemRef& item, const Collection& form);
/// What an optional holds, with the check that it does; another item as it is.
ItemRef held_by(Context& c, const ItemRef& item);

}  // namespace tenon::onnx
