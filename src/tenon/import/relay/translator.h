// SPDX-License-Identifier: Apache-2.0
// Builds graph functions from the tree of a Relay text. Used by read_relay.cpp only.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "tenon/graph/builder.h"
#include "tenon/import/relay/operators.h"
#include "tenon/import/relay/read_relay.h"
#include "tenon/import/relay/tree.h"

namespace tenon::relay {

/// What a name stands for.
struct Item {
  Value value;                       // null where `poisoned`
  std::vector<Value> captured = {};  // of a function: what its calls pass besides their arguments
  bool poisoned = false;             // it needs what is not read, and is listed already
};

class Translator {
 public:
  Translator(std::shared_ptr<const SourceFile> file, const ModuleTree& tree,
             std::vector<Ref<TensorData>> constants, const ReadOptions& options)
      : file_(std::move(file)),
        tree_(tree),
        constants_(std::move(constants)),
        options_(options),
        builder_(module_) {}

  IRModule run();

 private:
  using Scope = std::unordered_map<std::string, Item>;

  // -- modules
  void add_scripts();
  std::vector<const Definition*> callees_first() const;
  void find_entry();
  void definition(const Definition& definition);
  void refuse_if_any();
  IRModule in_order_of_text() const;

  // -- functions
  Ref<graph::Function> function(const FunctionTree& tree, const std::string& name, bool is_entry,
                                std::vector<std::pair<std::string, Item>> visible,
                                std::vector<Ref<graph::Var>> captures, bool& poisoned);
  Attrs attributes(const FunctionTree& tree, const std::string& name, bool is_public) const;
  Ref<TensorData> given(const Parameter& parameter, const graph::Type& declared);
  void check_params_used() const;
  Item lift(const Tree& tree, const std::string& hint);
  std::string new_name(const FunctionTree& tree, const std::string& hint);

  // -- types
  using Names = std::map<std::string, Expr>;  // symbolic dimensions of one function
  graph::Type type(const TypeTree& tree, Names& names) const;
  void check_type(const TypeTree& declared, const Value& value, std::string_view what) const;

  // -- values
  Item block(const Block& block);
  Item value(const Tree& tree, const std::string& hint = "lv");
  Item local(const Tree& tree);
  Item global(const Tree& tree);
  Item constant(const Tree& tree);
  Item metadata(const Tree& tree);
  Item tuple(const Tree& tree);
  Item projected(const Item& tuple, int64_t index, const Place& place);
  Item operation(const Tree& tree, const std::string& hint);
  Item call(const Tree& tree, const std::string& hint);
  Item call_function(const Tree& tree, const std::string& name, const Item& callee,
                     std::vector<Value> args, const std::string& hint);
  Item call_prim_func(const Tree& tree, const std::string& name, std::vector<Value> args,
                      const std::string& hint);
  Item call_lowered(const Tree& tree, const std::string& hint);
  Item if_else(const Tree& tree, const std::string& hint);
  /// Null where one of them is poisoned. \throws CompileError at a function as an operand.
  std::optional<std::vector<Value>> values(const std::vector<TreePtr>& trees, size_t first);
  const Item* find(const std::string& name) const;
  /// The variable that a name with projections refers to, and these.
  const Item* resolve(const std::string& text, std::vector<int64_t>& projections,
                      std::string& base) const;
  void define(const Binding& binding, Item item);
  static void free_names(const Block& block, std::set<std::string> bound,
                         std::set<std::string>& out);
  static void free_names(const Tree& tree, const std::set<std::string>& bound,
                         std::set<std::string>& out);

  Origin origin(const Place& place) const;
  Origin origin(const Tree& tree) const;
  template <typename... Args>
  [[noreturn]] void fail(const Code& code, const Place& place, fmt::format_string<Args...> format,
                         Args&&... args) const {
    throw CompileError(code, origin(place), format, std::forward<Args>(args)...);
  }

  std::shared_ptr<const SourceFile> file_;
  const ModuleTree& tree_;
  std::vector<Ref<TensorData>> constants_;
  const ReadOptions& options_;
  IRModule module_;
  graph::BlockBuilder builder_;
  std::vector<Scope> scopes_;
  Refusals refusals_;
  std::set<std::string> poisoned_functions_, used_params_;
  std::map<std::string, const Definition*> definitions_;
  std::map<std::string, std::vector<std::string>> lifted_;  // by the definition that holds them
  std::map<std::string, int> next_name_;
  std::string entry_, current_;
};

}  // namespace tenon::relay
