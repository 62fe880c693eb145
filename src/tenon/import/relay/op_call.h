// SPDX-License-Identifier: Apache-2.0
// The interface of a Relay converter: one call with its operands and attributes, and the builder of
// the function.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/graph/builder.h"
#include "tenon/graph/shape.h"
#include "tenon/graph/unsupported_form.h"
#include "tenon/import/relay/tree.h"

namespace tenon::relay {

using graph::Value;
using Dims = std::vector<Expr>;
using Ints = std::vector<int64_t>;

using graph::unsupported;
using graph::Unsupported;

class OpCall {
 public:
  OpCall(const Tree& tree, std::vector<Value> args, graph::BlockBuilder& builder, std::string hint)
      : tree_(tree), args_(std::move(args)), builder_(builder), hint_(std::move(hint)) {}

  const std::string& name() const { return tree_.text; }
  const Origin& origin() const { return builder_.origin(); }
  graph::BlockBuilder& builder() { return builder_; }

  // ---- operands

  size_t count() const { return args_.size(); }
  const Value& arg(size_t i) const;
  /// \throws Unsupported where the shape is known only at run time.
  Ref<graph::TensorType> type(size_t i) const { return shaped(arg(i)); }
  Dims shape(size_t i) const { return *type(i)->shape; }
  DType dtype(size_t i) const { return type(i)->dtype; }
  int64_t ndim(size_t i) const { return type(i)->ndim; }
  /// The items of a tuple operand.
  std::vector<Value> items(size_t i) const;
  /// Null where the operand is no constant.
  Ref<TensorData> constant(size_t i) const;
  /// \throws Unsupported where they are known only at run time.
  Ints ints(size_t i, std::string_view what) const;
  double number(size_t i, std::string_view what) const;
  /// A constant of one element as an expression of its dtype.
  Expr scalar(size_t i, std::string_view what) const;
  static Ref<graph::TensorType> shaped(const Value& value);

  // ---- attributes. Those that are `None` count as not given. \throws CompileError (kBadAttribute)
  // where one has another kind, or is missing.

  bool has(const std::string& name);
  int64_t integer(const std::string& name, std::optional<int64_t> otherwise = {});
  bool flag(const std::string& name, bool otherwise);
  double real(const std::string& name, std::optional<double> otherwise = {});
  std::string text(const std::string& name, const std::string& otherwise);
  /// One number counts as a list of it.
  Ints list(const std::string& name, std::optional<Ints> otherwise = {});
  /// Whether it is written as a list.
  bool is_list(const std::string& name);
  /// A list of pairs, flat: `[[0, 0], [1, 1]]`.
  Ints pairs(const std::string& name);
  /// Void where it is not given or "".
  DType dtype_attr(const std::string& name, DType otherwise = kVoid);
  /// Attributes that change nothing here.
  void ignore(std::initializer_list<const char*> names);
  /// The first attribute that nobody asked for; empty where there is none.
  std::string unread() const;

  // ---- building

  Value op(std::string_view name, std::vector<Value> args, Attrs attrs = {});
  Value scalar_value(DType dtype, double value) const;
  Value filled(DType dtype, const Ints& shape, double value) const;
  static Value ints_value(const Ints& values);
  static Value shape_value(const Dims& dims) { return make<graph::ShapeExpr>(dims); }
  static Value prim(const Expr& value) { return make<graph::PrimValue>(value); }
  Value cast(const Value& value, DType dtype);
  Value reshape(const Value& value, const Dims& dims);
  Value transpose(const Value& value, const Ints& axes);

  // ---- arithmetic

  /// `axis` counted from the front. \throws CompileError (kBadAttribute) out of [-ndim, ndim).
  int64_t axis(int64_t axis, int64_t ndim) const;
  Ints axes(Ints axes, int64_t ndim) const;
  template <typename... Args>
  [[noreturn]] void bad(const Code& code, fmt::format_string<Args...> format,
                        Args&&... args) const {
    throw CompileError(code, origin(), format, std::forward<Args>(args)...);
  }

 private:
  const Attribute* find(const std::string& name);
  [[noreturn]] void wrong_kind(const Attribute& attr, std::string_view wanted) const;

  const Tree& tree_;
  std::vector<Value> args_;
  graph::BlockBuilder& builder_;
  std::string hint_;
  std::set<std::string> read_;
};

}  // namespace tenon::relay
