// SPDX-License-Identifier: Apache-2.0
// Attributes of operators by the names that people give them: in the annotations and parameters of
// kernels, and in the signatures of C functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// The attributes of one operator, or of several that one function computes. An argument that is a
/// scalar or a shape counts as an attribute of the input's name (`min` of `clip`).
///
/// Names: `strides` where one operator only has it (or all have the same), `conv2d.strides` of a
/// certain one. It may be named by its label in the pattern, by its name, all of it
/// (`nn.conv2d`) or the end (`conv2d`, `conv`), or by ONNX's (`Conv`). Operators that ONNX has too
/// have attributes under ONNX's names as well: `pads` beside `padding`. `strides[1]` is an item of
/// a list, where a list of one item stands for any length. Where a name can have no dots and
/// brackets, `_` stands for them: `conv2d_strides_1`.
class OperatorAttributes {
 public:
  OperatorAttributes() = default;
  /// Of the calls of operators in the body of `function`, a composite for example; its attribute
  /// `labels` maps labels to positions among these. What attribute `op_values` says of the whole
  /// comes before them.
  static OperatorAttributes of(const IRModule& module, const Function& function);

  void add(std::string op, Attrs attrs, std::string label = {});
  /// Attributes of the whole, which an unqualified name means first.
  void add_whole(std::string op, Attrs attrs);

  /// The value, a list as a list. Nothing where no operator has the attribute, or several do with
  /// different values.
  std::optional<AttrValue> find(std::string_view name) const;
  /// Whether some operator has it.
  bool has(std::string_view name) const { return !all(name).empty(); }
  /// A scalar: the value, or the item of a list of one.
  std::optional<AttrValue> scalar(std::string_view name) const;
  /// A number as an expression of dtype int64 or float64; null where it is none.
  Expr number(std::string_view name) const;
  /// Which attribute of which operator a name means, in the order in which these were added.
  struct Place {
    size_t position;
    std::string attr;             // as the operator has it
    std::optional<size_t> index;  // of a list
  };
  std::vector<Place> places(std::string_view name) const;
  /// Why find() or scalar() gives nothing: both sides of an ambiguity, or what there is.
  std::string missing(std::string_view name) const;
  /// What may be named, sorted: `strides` or, where that is ambiguous, `conv2d.strides`.
  std::vector<std::string> names() const;
  /// Those that have a value, with it.
  Attrs values() const;

 private:
  struct Member {
    std::string op, label;
    Attrs attrs, onnx;  // as the operator has them, and under ONNX's names
    bool is_whole = false;
  };
  struct Found {
    const Member* member;
    AttrValue value;
    std::string attr;
    std::optional<size_t> index;
  };
  const AttrValue* of_member(const Member& member, const std::string& attr) const;
  static bool is_called(const Member& member, std::string_view qualifier);
  std::vector<Found> all(std::string_view name) const;

  std::vector<Member> members_;
};

/// The bindings of a function's body that call operators, in order, without those that lead from a
/// parameter to what was matched (`view = R.reshape(param)`).
std::vector<const Binding*> operator_bindings(const Function& function);

/// The number that an attribute's value is; nothing where it is none.
std::optional<double> number_of(const AttrValue& value);

}  // namespace tenon::graph
