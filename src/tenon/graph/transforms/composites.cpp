#include "tenon/graph/transforms/composites.h"

#include <set>

namespace tenon::graph {

namespace {

// "dnnl.conv2d_relu" as the name of a function.
std::string identifier(const std::string& composite) {
  std::string name;
  for (const char c : composite) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class Splicer {
 public:
  Splicer(IRModule& module, const std::vector<Replacement>& replacements) : module_(module) {
    for (const auto& [name, base] : module.functions())
      if (base.as<Function>() && base->attrs.contains("Composite")) known_.emplace(base, name);
    for (const Replacement& replacement : replacements)
      for (const Ref<Binding>& binding : replacement.match.bindings)
        check(group_of_.emplace(binding->var.get(), &replacement).second,
              "a binding is in two matches");
  }

  Ref<SeqExpr> sequence(const Ref<SeqExpr>& seq) {
    std::vector<Ref<BindingBlock>> blocks;
    bool changed = false;
    for (const Ref<BindingBlock>& old : seq->blocks) {
      blocks.push_back(block(old));
      changed |= !blocks.back().same_as(old);
    }
    return changed ? make<SeqExpr>(std::move(blocks), seq->body, seq->origin) : seq;
  }

 private:
  // A binding that stays, or a group that becomes one call, at the place of its last binding.
  struct Item {
    const Replacement* group = nullptr;
    Ref<Binding> binding;
    std::set<size_t> needs;
  };

  Ref<BindingBlock> block(const Ref<BindingBlock>& old) {
    std::vector<Item> items;
    std::unordered_map<const Node*, size_t> item_of;  // by variable
    std::unordered_map<const Replacement*, size_t> last;
    for (size_t i = 0; i < old->bindings.size(); ++i)
      if (const Replacement* group = group_at(*old->bindings[i])) last[group] = i;
    bool changed = !last.empty();
    std::unordered_map<const Replacement*, size_t> placed;
    for (size_t i = 0; i < old->bindings.size(); ++i) {
      const Ref<Binding>& binding = old->bindings[i];
      if (const Replacement* group = group_at(*binding)) {
        if (last.at(group) == i) {
          placed[group] = items.size();
          items.push_back({group, binding, {}});
        }
        continue;
      }
      item_of[binding->var.get()] = items.size();
      items.push_back({nullptr, branches(binding), {}});
      changed |= !items.back().binding.same_as(binding);
    }
    if (!changed) return old;
    for (const Ref<Binding>& binding : old->bindings)
      if (const Replacement* group = group_at(*binding))
        item_of[binding->var.get()] = placed.at(group);
    for (const Ref<Binding>& binding : old->bindings) add_needs(*binding, item_of, items);
    std::vector<Ref<Binding>> bindings;
    for (const size_t i : order_of(items)) {
      if (items[i].group)
        call(*items[i].group, *items[i].binding, old->is_dataflow, bindings);
      else
        bindings.push_back(items[i].binding);
    }
    return make<BindingBlock>(std::move(bindings), old->is_dataflow, old->origin);
  }

  const Replacement* group_at(const Binding& binding) const {
    const auto found = group_of_.find(binding.var.get());
    return found == group_of_.end() ? nullptr : found->second;
  }

  Ref<Binding> branches(const Ref<Binding>& binding) {
    const auto* branch = binding->value.as<If>();
    if (!branch) return binding;
    const Ref<SeqExpr> then_branch = sequence(branch->then_branch);
    const Ref<SeqExpr> else_branch = sequence(branch->else_branch);
    if (then_branch.same_as(branch->then_branch) && else_branch.same_as(branch->else_branch))
      return binding;
    return make<Binding>(binding->var,
                         make<If>(branch->condition, then_branch, else_branch, branch->origin),
                         binding->match, binding->origin);
  }

  static void add_needs(const Binding& binding,
                        const std::unordered_map<const Node*, size_t>& item_of,
                        std::vector<Item>& items) {
    const size_t item = item_of.at(binding.var.get());
    walk(binding.value, [&](const NodePtr& node) {
      if (!node.as<Var>()) return;
      const auto found = item_of.find(node.get());
      if (found != item_of.end() && found->second != item) items[item].needs.insert(found->second);
    });
  }

  // As they stand, but after what they need.
  static std::vector<size_t> order_of(const std::vector<Item>& items) {
    std::vector<size_t> waits(items.size()), order;
    std::vector<std::vector<size_t>> users(items.size());
    std::set<size_t> ready;
    for (size_t i = 0; i < items.size(); ++i) {
      waits[i] = items[i].needs.size();
      for (const size_t needed : items[i].needs) users[needed].push_back(i);
      if (waits[i] == 0) ready.insert(i);
    }
    while (!ready.empty()) {
      const size_t next = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(next);
      for (const size_t user : users[next])
        if (--waits[user] == 0) ready.insert(user);
    }
    for (size_t i = 0; order.size() < items.size() && i < items.size(); ++i)
      if (waits[i] != 0 && items[i].group)
        throw CompileError(
            kCyclicPartition, items[i].binding->origin,
            "composite `{}` would depend on its own result",
            items[i].group->composite.function->attrs.get<std::string>("Composite").value_or("?"));
    return order;
  }

  void call(const Replacement& group, const Binding& root, bool is_dataflow,
            std::vector<Ref<Binding>>& out) {
    const Ref<Function>& function = group.composite.function;
    std::vector<Value> args;
    for (const Value& argument : group.composite.arguments) {
      if (!argument.as<Call>()) {
        args.push_back(argument);
        continue;
      }
      const auto var = make<Var>("packed", type_of(argument), is_dataflow);
      out.push_back(make<Binding>(var, argument, Type(), root.origin));
      args.push_back(var);
    }
    std::string& name = known_[function];
    if (name.empty()) {
      const auto composite = function->attrs.get<std::string>("Composite");
      name = module_.add_unique(identifier(composite.value_or("composite")), function);
    }
    std::vector<Origin> parts;
    for (const Ref<Binding>& binding : group.match.bindings)
      parts.push_back(binding->origin ? binding->origin : binding->value->origin);
    const Origin origin = Origin::merge(parts);
    const auto value =
        make<Call>(make<FuncRef>(name), std::move(args), Attrs(), std::vector<Type>{}, origin);
    const std::vector<Ref<Var>>& outputs = group.match.outputs;
    if (outputs.size() == 1) {
      out.push_back(make<Binding>(outputs[0], value, Type(), origin));
      return;
    }
    std::vector<Type> types;
    for (const Ref<Var>& var : outputs) types.push_back(var->type);
    const auto tuple = make<Var>(name, make<TupleType>(std::move(types)), is_dataflow);
    out.push_back(make<Binding>(tuple, value, Type(), origin));
    for (size_t i = 0; i < outputs.size(); ++i)
      out.push_back(make<Binding>(outputs[i], make<TupleGetItem>(tuple, static_cast<int64_t>(i)),
                                  Type(), origin));
  }

  IRModule& module_;
  std::unordered_map<const Node*, const Replacement*> group_of_;  // by variable
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known_;
};

}  // namespace

Ref<Function> with_composites(IRModule& module, const Ref<Function>& function,
                              const std::vector<Replacement>& replacements) {
  if (replacements.empty()) return function;
  return function->with_body(Splicer(module, replacements).sequence(function->body));
}

}  // namespace tenon::graph
