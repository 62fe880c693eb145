// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

namespace {

class Rebuilder : public Rewriter {
 public:
  Rebuilder(BlockBuilder& builder, const BindingRule& rule) : builder_(builder), rule_(rule) {}

  /// Where bindings come to stand in a block of another function, theirs is not opened.
  bool opens_blocks = true;
  /// Bindings that the rule leaves alone stay the very same.
  bool keeps = false;
  /// Whether anything else than the very same bindings was emitted.
  bool changed() const { return changed_ || builder_.emitted() != visited_; }

  Value body(const SeqExpr& seq) {
    for (const Ref<BindingBlock>& block : seq.blocks) {
      const bool opens = block->is_dataflow && opens_blocks;
      if (opens) builder_.begin_dataflow();
      in_dataflow_ = block->is_dataflow;
      for (const Ref<Binding>& binding : block->bindings) bind(*binding);
      if (opens) builder_.end_dataflow();
    }
    return (*this)(seq.body);
  }

 protected:
  // An item of a tuple that is known is that item.
  NodePtr rewrite(const NodePtr& node) override {
    NodePtr next = rewrite_members(node);
    const auto* get = next.as<TupleGetItem>();
    const auto* tuple = get ? get->tuple.as<Tuple>() : nullptr;
    if (!tuple || get->index < 0 || get->index >= static_cast<int64_t>(tuple->values.size()))
      return next;
    return tuple->values[static_cast<size_t>(get->index)];
  }

 private:
  void bind(const Binding& binding) {
    builder_.set_origin(binding.origin ? binding.origin : binding.value->origin);
    Value value = binding.value;
    if (const auto* branch = value.as<If>()) {
      const Value condition = (*this)(branch->condition);
      const bool in_dataflow = in_dataflow_;
      const Ref<SeqExpr> then_branch = arm(branch->then_branch);
      const Ref<SeqExpr> else_branch = arm(branch->else_branch);
      in_dataflow_ = in_dataflow;
      if (!condition.same_as(branch->condition) || !then_branch.same_as(branch->then_branch) ||
          !else_branch.same_as(branch->else_branch))
        value = make<If>(condition, then_branch, else_branch, branch->origin);
      keep(binding);
      stands_for(binding, builder_.emit(value, binding.var->name));
      return;
    }
    value = (*this)(value);
    if (binding.match) {
      const Type match = (*this)(binding.match);
      keep(binding);
      stands_for(binding, builder_.match_cast(value, match, binding.var->name));
      return;
    }
    keep(binding);
    const std::optional<Value> replacement = rule_(builder_, binding, value);
    stands_for(binding, replacement ? builder_.emit(*replacement, binding.var->name)
                                    : builder_.emit(value, binding.var->name));
  }

  Ref<SeqExpr> arm(const Ref<SeqExpr>& given) {
    const bool changed_outside = changed_;
    const size_t emitted = builder_.emitted(), visited = visited_;
    changed_ = false;
    builder_.begin_branch();
    const Value value = body(*given);
    Ref<SeqExpr> made = builder_.end_branch(value);
    if (!changed_ && builder_.emitted() - emitted == visited_ - visited &&
        value.same_as(given->body))
      made = given;
    else
      changed_ = true;
    changed_ = changed_ || changed_outside;
    return made;
  }

  void keep(const Binding& binding) {
    ++visited_;
    builder_.keep(keeps ? ref_to(&binding) : nullptr, in_dataflow_);
  }
  void stands_for(const Binding& binding, const Value& value) {
    builder_.keep(nullptr);
    if (value.same_as(binding.var)) return;
    changed_ = true;
    replace(binding.var, value);
  }

  BlockBuilder& builder_;
  const BindingRule& rule_;
  size_t visited_ = 0;
  bool changed_ = false, in_dataflow_ = false;
};

}  // namespace

namespace {

Ref<Function> rebuild(IRModule& module, const Ref<Function>& function, const BindingRule& rule,
                      bool keeps) {
  if (function->attrs.contains("Pattern")) return function;  // is looked for, not computed
  BlockBuilder builder(module);
  builder.begin_function(function->params);
  Rebuilder rebuilder(builder, rule);
  rebuilder.keeps = keeps;
  const Value result = rebuilder.body(*function->body);
  if (!rebuilder.changed() && function->result && result.same_as(function->body->body))
    return function;
  Ref<Function> out =
      builder.end_function(result, function->attrs, function->pure, function->origin);
  if (out->is_private == function->is_private) return out;
  return with(*out, [&](Function& copy) { copy.is_private = function->is_private; });
}

}  // namespace

Ref<Function> rebuild(IRModule& module, const Ref<Function>& function, const BindingRule& rule) {
  return rebuild(module, function, rule, true);
}

Ref<Function> with_inferred_types(IRModule& module, const Ref<Function>& function) {
  return rebuild(
      module, function, [](BlockBuilder&, const Binding&, const Value&) { return std::nullopt; },
      false);
}

Value emit_body(BlockBuilder& builder, const SeqExpr& body, const Substitution& values,
                const BindingRule& rule) {
  Rebuilder rebuilder(builder, rule);
  rebuilder.opens_blocks = false;
  for (const auto& [node, value] : values) rebuilder.replace(NodePtr(node), value);
  return rebuilder.body(body);
}

IRModule rebuild_all(IRModule module, const BindingRule& rule) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (graph) module.set(name, rebuild(module, graph, rule));
  }
  return module;
}

std::unordered_map<const Node*, int> count_uses(const Function& function) {
  std::unordered_map<const Node*, int> uses;
  const std::function<void(const NodePtr&)> count = [&](const NodePtr& node) {
    each_member(node, [&](const NodePtr& member, FieldRole role) {
      if (member.as<Var>()) {
        if (role != FieldRole::kDefinition) ++uses[member.get()];
        return;
      }
      if (member.as<TypeNode>() || member.as<ExprNode>()) return;
      count(member);
    });
  };
  count(function.body);
  return uses;
}

}  // namespace tenon::graph
