// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/remove_unused.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/graph/op.h"

namespace tenon::graph {

static bool is_pure(const Value& value) {
  if (const auto* call = value.as<Call>()) return call->op && call->op->pure;
  if (const auto* branch = value.as<If>()) {
    bool pure = true;
    walk<Call>(value, [&](const Call& call) { pure &= call.op && call.op->pure; });
    (void)branch;
    return pure;
  }
  return true;
}

namespace {

/// Marks from the results backwards, then keeps what is marked.
class Eliminator {
 public:
  Ref<Function> run(const Ref<Function>& function) {
    const Ref<SeqExpr> body = sequence(function->body);
    return body.same_as(function->body) ? function : function->with_body(body);
  }

 private:
  void use(const NodePtr& node) {
    walk(node, [&](const NodePtr& inner) {
      if (inner.as<Var>()) needed_.insert(inner.get());
    });
  }

  Ref<SeqExpr> sequence(const Ref<SeqExpr>& seq) {
    use(seq->body);
    std::vector<Ref<BindingBlock>> blocks(seq->blocks.size());
    bool changed = false;
    for (size_t b = seq->blocks.size(); b-- > 0;) {
      const Ref<BindingBlock>& block = seq->blocks[b];
      std::vector<Ref<Binding>> kept;
      for (size_t i = block->bindings.size(); i-- > 0;) {
        Ref<Binding> binding = block->bindings[i];
        // A match_cast checks something at run time and may define dimensions: it stays.
        if (!needed_.count(binding->var.get()) && !binding->match && is_pure(binding->value)) {
          changed = true;
          continue;
        }
        if (const auto* branch = binding->value.as<If>()) {
          const Ref<SeqExpr> then_branch = sequence(branch->then_branch);
          const Ref<SeqExpr> else_branch = sequence(branch->else_branch);
          if (!then_branch.same_as(branch->then_branch) ||
              !else_branch.same_as(branch->else_branch)) {
            changed = true;
            binding = make<Binding>(
                binding->var, make<If>(branch->condition, then_branch, else_branch, branch->origin),
                binding->match, binding->origin);
          }
        }
        use(binding->value);
        kept.push_back(binding);
      }
      std::reverse(kept.begin(), kept.end());
      blocks[b] = kept.size() == block->bindings.size() && !changed
                      ? block
                      : make<BindingBlock>(std::move(kept), block->is_dataflow, block->origin);
    }
    if (!changed) return seq;
    std::erase_if(blocks, [](const Ref<BindingBlock>& block) { return block->bindings.empty(); });
    return make<SeqExpr>(std::move(blocks), seq->body, seq->origin);
  }

  std::unordered_set<const Node*> needed_;
};

}  // namespace

Ref<Function> remove_unused(const Ref<Function>& function) { return Eliminator().run(function); }

}  // namespace tenon::graph
