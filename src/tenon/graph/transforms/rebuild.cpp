#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

namespace {

class Rebuilder : public Rewriter {
 public:
  Rebuilder(BlockBuilder& builder, const BindingRule& rule) : builder_(builder), rule_(rule) {}

  /// Where bindings come to stand in a block of another function, theirs is not opened.
  bool opens_blocks = true;

  Value body(const SeqExpr& seq) {
    for (const Ref<BindingBlock>& block : seq.blocks) {
      const bool opens = block->is_dataflow && opens_blocks;
      if (opens) builder_.begin_dataflow();
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
      builder_.begin_branch();
      const Value then_value = body(*branch->then_branch);
      const Ref<SeqExpr> then_branch = builder_.end_branch(then_value);
      builder_.begin_branch();
      const Value else_value = body(*branch->else_branch);
      const Ref<SeqExpr> else_branch = builder_.end_branch(else_value);
      value = make<If>(condition, then_branch, else_branch, branch->origin);
      replace(binding.var, builder_.emit(value, binding.var->name));
      return;
    }
    value = (*this)(value);
    if (binding.match) {
      replace(binding.var, builder_.match_cast(value, (*this)(binding.match), binding.var->name));
      return;
    }
    const std::optional<Value> replacement = rule_(builder_, binding, value);
    replace(binding.var, replacement ? builder_.emit(*replacement, binding.var->name)
                                     : builder_.emit(value, binding.var->name));
  }

  BlockBuilder& builder_;
  const BindingRule& rule_;
};

}  // namespace

Ref<Function> rebuild(IRModule& module, const Ref<Function>& function, const BindingRule& rule) {
  BlockBuilder builder(module);
  builder.begin_function(function->params);
  Rebuilder rebuilder(builder, rule);
  const Value result = rebuilder.body(*function->body);
  Ref<Function> out =
      builder.end_function(result, function->attrs, function->pure, function->origin);
  if (out->is_private == function->is_private) return out;
  auto* copy = new Function(*out);
  copy->is_private = function->is_private;
  return Ref<Function>(copy);
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

std::unordered_map<const Node*, Value> bound_values(const Function& function) {
  std::unordered_map<const Node*, Value> values;
  walk<Binding>(function.body, [&](const Binding& binding) {
    if (!binding.match) values.emplace(binding.var.get(), binding.value);
  });
  return values;
}

}  // namespace tenon::graph
