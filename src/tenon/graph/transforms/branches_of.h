// SPDX-License-Identifier: Apache-2.0
// Where the bindings of a graph function stand.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

/// The branches in which the bindings of a function stand, by their variables, from the outside.
class BranchesOf {
 public:
  explicit BranchesOf(const SeqExpr& body) { visit(body); }
  const std::vector<const SeqExpr*>& operator()(const Ref<Var>& var) const {
    static const std::vector<const SeqExpr*> kNone;
    const auto it = around_.find(var.get());
    return it == around_.end() ? kNone : it->second;
  }
  /// What functions and branches result in, and what a match_cast has: its type is that of the planar
  /// value.
  bool stays_planar(const Ref<Var>& var) const { return planar_.count(var.get()) != 0; }

 private:
  void visit(const SeqExpr& body) {
    const auto keeps = [&](const NodePtr& value) {
      walk(value, [&](const NodePtr& node) { planar_.insert(node.get()); });
    };
    keeps(body.body);
    for (const Ref<BindingBlock>& block : body.blocks)
      for (const Ref<Binding>& binding : block->bindings) {
        if (binding->match) keeps(binding->value);
        if (!path_.empty()) around_.emplace(binding->var.get(), path_);
        const auto* branch = binding->value.as<If>();
        if (!branch) continue;
        for (const Ref<SeqExpr>& arm : {branch->then_branch, branch->else_branch}) {
          path_.push_back(arm.get());
          visit(*arm);
          path_.pop_back();
        }
      }
  }

  std::vector<const SeqExpr*> path_;
  std::unordered_map<const Node*, std::vector<const SeqExpr*>> around_;
  std::unordered_set<const Node*> planar_;
};

}  // namespace tenon::graph
