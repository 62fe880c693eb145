// SPDX-License-Identifier: Apache-2.0
// Attributes: named values on functions, blocks, loops, calls and modules.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tenon/ir/node.h"

namespace tenon {

struct AttrValue;
using AttrList = std::vector<AttrValue>;

/// An attribute's value: what a literal of TVMScript can say.
struct AttrValue {
  using Map = std::map<std::string, AttrValue>;
  std::variant<std::monostate, bool, int64_t, double, std::string, DType, AttrList, Map, NodePtr>
      value;

  // What std::variant makes of these is large: it is compiled once, in attrs.cpp.
  AttrValue() = default;
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();

  AttrValue(bool v) : value(v) {}
  AttrValue(int v) : value(int64_t{v}) {}
  AttrValue(int64_t v) : value(v) {}
  AttrValue(double v) : value(v) {}
  AttrValue(const char* v) : value(std::string(v)) {}
  AttrValue(std::string v) : value(std::move(v)) {}
  AttrValue(DType v) : value(v) {}
  AttrValue(AttrList v) : value(std::move(v)) {}
  AttrValue(Map v) : value(std::move(v)) {}
  AttrValue(NodePtr v) : value(std::move(v)) {}
  AttrValue(const std::vector<int64_t>& v);
  AttrValue(const std::vector<std::string>& v);

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(value); }
  bool operator==(const AttrValue& other) const;  // nodes by identity

  /// As a Python literal: `None`, `True`, `3`, `0.5`, `"x"`, `[1, 2]`, `{"k": 1}`.
  std::string str() const;
};

/// Ordered by name, so that printing is deterministic.
class Attrs {
 public:
  Attrs();
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> items);
  Attrs(const Attrs& other);
  Attrs(Attrs&& other) noexcept;
  Attrs& operator=(const Attrs& other);
  Attrs& operator=(Attrs&& other) noexcept;
  ~Attrs();

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool contains(const std::string& name) const { return items_.count(name) != 0; }

  const AttrValue* find(const std::string& name) const;
  /// The value as a T where the name is there and has that type.
  template <typename T>
  std::optional<T> get(const std::string& name) const {
    const AttrValue* found = find(name);
    if (!found) return std::nullopt;
    const T* typed = found->as<T>();
    return typed ? std::optional<T>(*typed) : std::nullopt;
  }
  /// A list of integers, where the value is one.
  std::optional<std::vector<int64_t>> ints(const std::string& name) const;
  std::optional<std::vector<std::string>> strings(const std::string& name) const;
  bool flag(const std::string& name) const;  // True, or an integer that is not 0

  void set(const std::string& name, AttrValue value);
  void erase(const std::string& name);
  Attrs with(const std::string& name, AttrValue value) const;
  Attrs without(const std::string& name) const;
  bool operator==(const Attrs& other) const;
  std::string str() const;

 private:
  friend struct FieldTraits<Attrs>;
  AttrValue::Map items_;
};

template <>
struct FieldTraits<AttrValue> {
  static constexpr bool kHoldsNodes = true;
  static void visit(const AttrValue& m, const NodeVisitor& v);
  static bool map(AttrValue& m, const NodeMapper& f);
  static bool equal(const AttrValue& a, const AttrValue& b);  // all but the nodes
  static uint64_t hash(const AttrValue& m);
  static std::string text(const AttrValue& m) { return m.str(); }
};
template <>
struct FieldTraits<Attrs> {
  static constexpr bool kHoldsNodes = true;
  static void visit(const Attrs& m, const NodeVisitor& v);
  static bool map(Attrs& m, const NodeMapper& f);
  static bool equal(const Attrs& a, const Attrs& b);
  static uint64_t hash(const Attrs& m);
  static std::string text(const Attrs& m) { return m.str(); }
};

}  // namespace tenon
