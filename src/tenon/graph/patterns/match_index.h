// SPDX-License-Identifier: Apache-2.0
// Indexes a function for the matcher. Internal to graph/patterns/.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/graph/patterns/matcher.h"

namespace tenon::graph {

/// Where a variable is bound.
struct Definition {
  Ref<Binding> binding;
  int64_t position = 0;  // in the order of the text, branches included
  const BindingBlock* block = nullptr;
};

struct Matcher::Index {
  const IRModule* module = nullptr;
  std::unordered_map<const Node*, Definition> definitions;  // by variable
  /// Variables whose bindings use a variable; null: a result of the function or of a branch.
  std::unordered_map<const Node*, std::vector<const Node*>> users;
  std::unordered_map<const OpDef*, std::vector<Ref<Binding>>> by_operator;
  std::vector<Ref<Binding>> bindings;       // all but those of inner functions
  std::unordered_set<const Node*> indexed;  // functions of the module whose bindings are known
  int64_t positions = 0;
  int64_t steps = 0;

  void add(const SeqExpr& body, bool is_inner_function);
  void add_binding(const Ref<Binding>& binding, const BindingBlock* block, bool is_inner_function);
  /// Makes the bindings of another function known, so that its body can be looked through.
  void add_function(const Function& function);
  const Definition* definition(const Value& var) const;
  const std::vector<const Node*>& users_of(const Value& var) const;
};

/// Calls `visit` on the variables, tuple items and constants that a bound value takes as input, not
/// on those inside of branches and functions.
void each_input(const Value& value, const std::function<void(const Value&)>& visit);

/// The same value: one node, equal constants, or equal structures of the same variables.
bool is_same_value(const Value& a, const Value& b);

}  // namespace tenon::graph
