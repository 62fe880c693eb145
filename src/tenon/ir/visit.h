// SPDX-License-Identifier: Apache-2.0
// Walking, rewriting, comparing and hashing nodes, derived from their member tables. Recursion is
// bounded by kMaxHeight; a shared node is entered once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/ir/node.h"
#include "tenon/ir/node_table.h"
#include "tenon/support/function_ref.h"

namespace tenon {

/// Calls `visitor` on every node reachable from `root`, parents first, members in order, a shared
/// node once. A Var or Buffer is seen at its uses and its definition alike (once in all), but
/// entered only at its definition.
void walk(const NodePtr& root, NodeVisitor visitor);

/// The same for nodes of one kind: `walk<Call>(body, [&](const Call& call) { ... })`.
template <typename T, typename F>
void walk(const NodePtr& root, const F& visitor) {
  walk(root, [&](const NodePtr& node) {
    if (const T* typed = node.as<T>()) visitor(*typed);
  });
}

/// Like walk, where `enter(node)` says whether the members of `node` are visited.
void walk_if(const NodePtr& root, FunctionRef<bool(const NodePtr&)> enter);

/// Calls `visitor` on every member node of `node` with the member's role; not deeper.
void each_member(const NodePtr& node, FunctionRef<void(const NodePtr&, FieldRole)> visitor);

/// Rewrites a tree, sharing what does not change. Derive from it where order or scope matters; the
/// class stays in its .cpp. Definitions that change (a buffer whose shape is substituted) take
/// their uses with them.
class Rewriter {
 public:
  virtual ~Rewriter() = default;

  /// What stands for `node` afterwards; null only for a statement that is dropped.
  NodePtr operator()(const NodePtr& node);
  template <typename T>
  Ref<T> operator()(const Ref<T>& node) {
    NodePtr next = (*this)(static_cast<const NodePtr&>(node));
    check(!next || next.as<T>() != nullptr, "a rewrite returned a node of the wrong kind");
    return Ref<T>(static_cast<const T*>(next.get()));
  }

  /// From now on uses of `definition` (a Var or Buffer) become `value`.
  void replace(const NodePtr& definition, NodePtr value);

 protected:
  /// Override this: return the replacement of `node`, calling rewrite_members(node) for the usual
  /// treatment of what is inside. Not called for uses of variables and buffers; see rewrite_use.
  virtual NodePtr rewrite(const NodePtr& node) { return rewrite_members(node); }
  /// What stands for a use of a Var or Buffer that was not replaced; itself by default.
  virtual NodePtr rewrite_use(const NodePtr& node) { return node; }
  /// A definition; by default its members are rewritten, and where they change a new one takes its
  /// place.
  virtual NodePtr rewrite_definition(const NodePtr& node) { return rewrite_members(node); }

  /// `node` with its members rewritten, itself where none changed. The origin stays.
  NodePtr rewrite_members(const NodePtr& node);

  /// False for a rewriter whose result depends on where the node stands.
  bool memoise_ = true;
  /// True where a bare Var first seen in a dimension is defined there (the root is a whole
  /// function) and rewrite_definition is to see it.
  bool closed_ = false;

 private:
  NodePtr rewrite_member(const NodePtr& member, FieldRole role);

  NodeMap<NodePtr> memo_, replaced_;  // replaced_: of definitions
};

/// Rebuilds `root`, members first. `f` sees each node (never a definition or use of one) with its
/// members final and returns its replacement, or nothing to keep it.
NodePtr rewrite(const NodePtr& root, FunctionRef<std::optional<NodePtr>(const NodePtr&)> f);

template <typename T>
Ref<T> rewrite(const Ref<T>& root, FunctionRef<std::optional<NodePtr>(const NodePtr&)> f) {
  return downcast<T>(rewrite(static_cast<const NodePtr&>(root), f));
}

/// Uses of the keys (Vars, Buffers) become the values.
using Substitution = std::unordered_map<const Node*, NodePtr>;
NodePtr substitute(const NodePtr& root, const Substitution& values);
template <typename T>
Ref<T> substitute(const Ref<T>& root, const Substitution& values) {
  return downcast<T>(substitute(static_cast<const NodePtr&>(root), values));
}

/// A copy in which every Var and Buffer that `root` defines is a new one.
NodePtr renew_definitions(const NodePtr& root);
template <typename T>
Ref<T> renew_definitions(const Ref<T>& root) {
  return downcast<T>(renew_definitions(static_cast<const NodePtr&>(root)));
}

/// Says where two structures differ: `body.value.lhs: 3 and 4`; empty where they are equal.
struct Difference {
  std::string where;
  std::string message;
};

struct EqualOptions {
  bool map_free = false;  // free variables may correspond too, one to one, as definitions do
};

/// Equality of meaning: definitions correspond by position, origins and ignored members do not
/// count.
bool structural_equal(const NodePtr& a, const NodePtr& b, EqualOptions options = {});
/// The first difference, or nothing.
std::optional<Difference> structural_difference(const NodePtr& a, const NodePtr& b,
                                                EqualOptions options = {});

/// Equal structures (without map_free) have equal hashes, the same on every run and host.
uint64_t structural_hash(const NodePtr& node);

/// Hash and equality for containers keyed by structure.
struct StructuralHash {
  size_t operator()(const NodePtr& node) const { return structural_hash(node); }
};
struct StructuralEqual {
  bool operator()(const NodePtr& a, const NodePtr& b) const { return structural_equal(a, b); }
};

}  // namespace tenon
