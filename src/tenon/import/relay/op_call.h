// SPDX-License-Identifier: Apache-2.0
// The interface of a Relay converter: one call with its operands and attributes, and the builder of
// the function.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/import/converter_context.h"
#include "tenon/import/relay/tree.h"

namespace tenon::relay {

using namespace importers;

class OpCall final : public ConverterContext {
 public:
  OpCall(const Tree& tree, std::vector<Value> args, graph::BlockBuilder& builder, std::string hint)
      : ConverterContext(builder, tree.text, std::move(hint)),
        tree_(tree),
        args_(std::move(args)),
        known_(args_.size()) {}

  // ---- operands

  size_t count() const { return args_.size(); }
  const Value& arg(size_t i) const;
  Ref<graph::TensorType> type(size_t i) const override { return shaped(arg(i)); }
  /// The items of a tuple operand.
  std::vector<Value> items(size_t i) const;
  const Elements* elements(size_t i) override;
  Ref<TensorData> constant(size_t i) const override;
  /// A constant of one element as an expression of its dtype.
  Expr scalar_expr(size_t i, std::string_view what);

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

 private:
  const Attribute* find(const std::string& name);
  [[noreturn]] void wrong_kind(const Attribute& attr, std::string_view wanted) const;

  const Tree& tree_;
  std::vector<Value> args_;
  std::vector<std::optional<Elements>> known_;
  std::set<std::string> read_;
};

}  // namespace tenon::relay
