// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/composites.h"

#include <map>

#include "tenon/graph/transforms/partition.h"

namespace tenon::graph {

namespace {

class Splicer {
 public:
  Splicer(IRModule& module, const std::vector<Replacement>& replacements) : module_(module) {
    for (const Replacement& replacement : replacements)
      for (const Ref<Binding>& binding : replacement.match.bindings)
        check(of_.emplace(binding->var.get(), &replacement).second, "a binding is in two matches");
  }

  Ref<BindingBlock> rewrite(const BindingBlock& block) {
    std::map<size_t, const Replacement*> groups;  // by the position of the last member
    BlockPartition partition(module_, block);
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      const auto found = of_.find(block.bindings[i]->var.get());
      if (found == of_.end() || !found->second->match.bindings.back().same_as(block.bindings[i]))
        continue;
      std::vector<size_t> members;
      for (const Ref<Binding>& binding : found->second->match.bindings)
        members.push_back(*partition.index_of(binding->var.get()));
      if (!partition.merge(members))
        throw CompileError(kCyclicPartition, block.bindings[i]->origin,
                           "composite `{}` would depend on its own result",
                           name_of(*found->second));
      groups.emplace(members.back(), found->second);
    }
    if (groups.empty()) return {};
    std::vector<Ref<Binding>> bindings;
    for (const std::vector<size_t>& group : partition.groups()) {
      const auto found = groups.find(group.back());
      if (found == groups.end())
        bindings.push_back(block.bindings[group[0]]);
      else
        call(*found->second, block.is_dataflow, bindings);
    }
    return make<BindingBlock>(std::move(bindings), block.is_dataflow, block.origin);
  }

 private:
  static std::string name_of(const Replacement& group) {
    return group.composite.function->attrs.get<std::string>("Composite").value_or("composite");
  }

  void call(const Replacement& group, bool is_dataflow, std::vector<Ref<Binding>>& out) {
    std::vector<Origin> parts;
    for (const Ref<Binding>& binding : group.match.bindings)
      parts.push_back(binding->origin ? binding->origin : binding->value->origin);
    const Origin origin = Origin::merge(parts);
    std::vector<Value> args;
    for (const Value& argument : group.composite.arguments) {
      if (!argument.as<Call>()) {
        args.push_back(argument);
        continue;
      }
      const auto var = make<Var>("packed", type_of(argument), is_dataflow);
      out.push_back(make<Binding>(var, argument, Type(), origin));
      args.push_back(var);
    }
    std::string& name = known_[group.composite.function];
    if (name.empty())
      name = module_.add_unique(identifier(name_of(group)), group.composite.function);
    const Value value =
        make<Call>(make<FuncRef>(name), std::move(args), Attrs(), std::vector<Type>{}, origin);
    bind_outputs(group.match.outputs, value, type_of_outputs(group.match.outputs), is_dataflow,
                 origin, out);
  }

  IRModule& module_;
  std::unordered_map<const Node*, const Replacement*> of_;  // by variable
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known_;
};

}  // namespace

Ref<Function> with_composites(IRModule& module, const Ref<Function>& function,
                              const std::vector<Replacement>& replacements) {
  if (replacements.empty()) return function;
  Splicer splicer(module, replacements);
  return rewrite_blocks(
      function, [&](const BindingBlock& block, const auto&) { return splicer.rewrite(block); });
}

}  // namespace tenon::graph
