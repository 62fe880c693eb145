// SPDX-License-Identifier: Apache-2.0
// Groups bindings of a block and outlines them as functions: shared by the passes that hand parts
// of a graph to back ends.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// Which bindings of one block are taken together. At every time there is an order of the groups in
/// which each uses only what comes before it: no group depends on its own result.
class BlockPartition {
 public:
  /// Each binding is a group of its own. `module` tells which functions have effects; bindings with
  /// effects keep their order.
  BlockPartition(const IRModule& module, const BindingBlock& block);

  /// Position in the block of the binding of `var`; nothing where it is bound elsewhere.
  std::optional<size_t> index_of(const Node* var) const;
  /// Makes one group of the groups of these bindings. False, and nothing changes, where a path from
  /// one of them leads through another group back to one of them.
  bool merge(const std::vector<size_t>& bindings);
  /// The group of a binding: the position of one of its members.
  size_t group_of(size_t binding) const;
  /// Bindings that `binding` uses, and those that use it; in order.
  const std::vector<size_t>& uses(size_t binding) const { return uses_[binding]; }
  const std::vector<size_t>& users(size_t binding) const { return users_[binding]; }
  /// All groups in such an order; the members of each in that of the block.
  std::vector<std::vector<size_t>> groups() const;

 private:
  std::unordered_map<const Node*, size_t> index_;
  std::vector<std::vector<size_t>> uses_, users_;
  mutable std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> members_;  // of representatives
  std::vector<size_t> position_;              // of representatives, in `order_`
  std::vector<size_t> order_;                 // representatives, or kNone where one went
};

/// Joins neighbours that have the same `kind` (by position; empty: stays alone) until no two can be
/// joined any more. Items of the tuples that they give get their kind and go with them.
void join_neighbours(const BindingBlock& block, std::vector<std::string>& kinds,
                     BlockPartition& partition);

/// What a function of bindings is made of.
struct OutlineOptions {
  /// Whether constants stand in the function, or are parameters of it.
  enum class Constants : uint8_t { kBound, kLifted } constants = Constants::kBound;
  /// The name of parameter i; by default that of the variable that it stands for.
  std::function<std::string(size_t)> param_name = {};
  Attrs attrs = {};
};
struct OutlinedBindings {
  Ref<Function> function;        // private
  std::vector<Value> arguments;  // leaves
};
/// Bindings (in order) as a function that returns `outputs`, as a tuple where there are several.
/// Its parameters are what they use from outside, in order of first use. Nothing where they name a
/// dimension that is that of no parameter.
std::optional<OutlinedBindings> outline_bindings(const std::vector<Ref<Binding>>& bindings,
                                                 const std::vector<Ref<Var>>& outputs,
                                                 const OutlineOptions& options = {});

/// The variables of `members` (positions in the block) that something else uses: another binding of
/// the block, or what `escaping` holds. In order.
std::vector<Ref<Var>> outputs_of(const BindingBlock& block, const BlockPartition& partition,
                                 const std::vector<size_t>& members,
                                 const std::unordered_set<const Node*>& escaping);

/// Binds `outputs` to what `call` gives, through a tuple where there are several. `type` is that of
/// the call.
void bind_outputs(const std::vector<Ref<Var>>& outputs, Value call, const Type& type,
                  bool is_dataflow, const Origin& origin, std::vector<Ref<Binding>>& out);

/// The type of several outputs: a tuple, or the one.
Type type_of_outputs(const std::vector<Ref<Var>>& outputs);

/// Rewrites each block of a function, those of branches of If first. `escaping` are its variables
/// that are used outside of it. Null: the block stays.
using BlockRule = std::function<Ref<BindingBlock>(const BindingBlock& block,
                                                  const std::unordered_set<const Node*>& escaping)>;
Ref<Function> rewrite_blocks(const Ref<Function>& function, const BlockRule& rule);

/// `function` with the composites of the module that it calls as local functions.
Ref<Function> with_local_composites(const IRModule& module, const Ref<Function>& function);

/// Adds a function whose body calls composites of the module as a region of a back end: private,
/// attrs `Codegen` and `global_symbol` (its name), the composites in it as local functions. Returns
/// its name, which begins with `hint`.
std::string add_region(IRModule& module, const std::string& hint, const std::string& backend,
                       const Ref<Function>& body);

/// A name that Python and C take: what is no letter or digit becomes `_`.
std::string identifier(const std::string& text);

}  // namespace tenon::graph
