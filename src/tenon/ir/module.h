// SPDX-License-Identifier: Apache-2.0
// The module: functions of three kinds by name, side by side. Everything the compiler does is
// IRModule -> IRModule.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/ir/attrs.h"
#include "tenon/ir/expr.h"
#include "tenon/ir/visit.h"

namespace tenon {

/// Kinds of functions: graph::Function, tir::PrimFunc, tir::ExternFunction, ExternFunc.
enum class FunctionKind : uint8_t {
  kFunction,
  kPrimFunc,
  kExternFunction,
  kExternFunc,
};

/// The base of graph::Function, tir::PrimFunc and ExternFunc.
struct FunctionNode : Node {
  using Kind = FunctionKind;
  static constexpr NodeFamily kFamily = NodeFamily::kFunction;
  Attrs attrs;
  /// `global_symbol` is implied for public functions and not kept in attrs; private ones may be
  /// inlined or dropped.
  bool is_private = false;

 protected:
  explicit FunctionNode(Origin origin) : Node(std::move(origin)) {}
};
using BaseFunc = Ref<FunctionNode>;

/// A symbol of a foreign library. Its signature (C types, effects, shape relations) lives in attrs
/// until it is declared.
struct ExternFunc final : NodeOf<ExternFunc, FunctionNode> {
  std::string symbol;

  explicit ExternFunc(std::string symbol, Attrs attrs = {}, Origin origin = {});
  void finish() {}
  static constexpr FunctionKind kKind = FunctionKind::kExternFunc;
  static constexpr std::string_view kName = "ExternFunc";
  static std::vector<FieldInfo> fields();
};

/// Functions in the order in which they were added, and attributes. A value: copying it copies
/// handles.
class IRModule {
 public:
  using Entry = std::pair<std::string, BaseFunc>;

  bool contains(const std::string& name) const { return index_of(name) >= 0; }
  /// Null where there is none of this name (or it is of another kind).
  BaseFunc find(const std::string& name) const;
  template <typename T>
  Ref<T> find(const std::string& name) const {
    return cast<T>(find(name));
  }
  /// Adds it at the end, or replaces the one of this name in its place.
  void set(const std::string& name, BaseFunc function);
  /// Adds it under `name`, or `name_1`, `name_2`, ... where that is taken; returns the name taken.
  std::string add_unique(const std::string& name, BaseFunc function);
  void erase(const std::string& name);

  const std::vector<Entry>& functions() const { return functions_; }
  size_t size() const { return functions_.size(); }

  Attrs attrs;

 private:
  int index_of(const std::string& name) const;
  std::vector<Entry> functions_;
  std::map<std::string, size_t> index_;
  std::map<std::string, int> next_name_;  // of add_unique, so that it need not count from 1
};

/// The first difference, or nothing. The order of functions does not count.
std::optional<Difference> structural_difference(const IRModule& a, const IRModule& b);
inline bool structural_equal(const IRModule& a, const IRModule& b) {
  return !structural_difference(a, b);
}
uint64_t structural_hash(const IRModule& module);

}  // namespace tenon
