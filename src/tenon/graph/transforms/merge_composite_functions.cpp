// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tenon/graph/backend.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

Ref<Function> with_local_composites(const IRModule& module, const Ref<Function>& function) {
  // Bound first, called by their variables.
  std::vector<Ref<Binding>> locals;
  std::map<std::string, Ref<Var>> by_name;
  const Ref<SeqExpr> calls =
      rewrite(function->body, [&](const NodePtr& node) -> std::optional<NodePtr> {
        const auto* call = node.as<Call>();
        const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
        const auto composite = ref ? module.find<Function>(ref->name) : nullptr;
        if (!composite || !composite->attrs.contains("Composite")) return std::nullopt;
        Ref<Var>& local = by_name[ref->name];
        if (!local) {
          const Value value = make<FunctionValue>(renew_definitions(composite), composite->origin);
          local = make<Var>("local_" + ref->name, type_of(value));
          locals.push_back(make<Binding>(local, value, Type(), composite->origin));
        }
        return make<Call>(Value(local), call->args, call->attrs, call->type_args, call->origin);
      });
  if (locals.empty()) return function;
  // Neighbouring blocks without dataflow are one.
  std::vector<Ref<BindingBlock>> blocks = calls->blocks;
  if (!blocks.empty() && !blocks[0]->is_dataflow) {
    locals.insert(locals.end(), blocks[0]->bindings.begin(), blocks[0]->bindings.end());
    blocks[0] = make<BindingBlock>(std::move(locals), false, blocks[0]->origin);
  } else {
    blocks.insert(blocks.begin(), make<BindingBlock>(std::move(locals), false));
  }
  return function->with_body(make<SeqExpr>(std::move(blocks), calls->body));
}

std::string add_region(IRModule& module, const std::string& hint, const std::string& backend,
                       const Ref<Function>& body) {
  const Ref<Function> region =
      with(renew_definitions(with_local_composites(module, body)), [&](Function& copy) {
        copy.is_private = true;
        copy.attrs = {{"Codegen", backend}};
      });
  const std::string name = module.add_unique(hint, region);
  module.set(name, with(*region, [&](Function& copy) { copy.attrs.set("global_symbol", name); }));
  return name;
}

namespace {

class Merger {
 public:
  explicit Merger(IRModule& module) : module_(module) {}

  Ref<BindingBlock> run(const BindingBlock& block,
                        const std::unordered_set<const Node*>& escaping) {
    BlockPartition partition(module_, block);
    const size_t count = block.bindings.size();
    std::vector<std::string> backends(count);
    bool any = false;
    for (size_t i = 0; i < count; ++i) {
      backends[i] = backend_of_call(*block.bindings[i]);
      any |= !backends[i].empty();
    }
    if (!any) return {};
    join_neighbours(block, backends, partition);
    std::vector<Ref<Binding>> bindings;
    for (const std::vector<size_t>& group : partition.groups()) {
      if (backends[group[0]].empty())
        bindings.push_back(block.bindings[group[0]]);
      else
        region(block, partition, group, backends[group[0]], escaping, bindings);
    }
    return make<BindingBlock>(std::move(bindings), block.is_dataflow, block.origin);
  }

 private:
  // Empty where it is no call of a composite.
  std::string backend_of_call(const Binding& binding) const {
    const auto* call = binding.value.as<Call>();
    const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
    const auto function = ref ? module_.find<Function>(ref->name) : nullptr;
    if (binding.match || !function || !function->attrs.contains("Composite")) return "";
    return backend_of(*function);
  }

  void region(const BindingBlock& block, const BlockPartition& partition,
              const std::vector<size_t>& members, const std::string& backend,
              const std::unordered_set<const Node*>& escaping, std::vector<Ref<Binding>>& out) {
    std::vector<Ref<Binding>> inner;
    std::string hint = "fused";
    size_t composites = 0;
    for (const size_t member : members) {
      inner.push_back(block.bindings[member]);
      const auto* call = inner.back()->value.as<Call>();
      if (!call) continue;
      ++composites;
      hint += "_" + call->callee.as<FuncRef>()->name;
    }
    constexpr size_t kLongest = 60;
    hint = hint.substr(0, kLongest) + "_" + identifier(backend);
    const std::vector<Ref<Var>> outputs = outputs_of(block, partition, members, escaping);
    auto outlined = outline_bindings(
        inner, outputs,
        {.constants = OutlineOptions::Constants::kLifted, .param_name = {}, .attrs = {}});
    if (!outlined) {
      record({"MergeCompositeFunctions",
              hint,
              "kept",
              "symbolic",
              {{"composites", static_cast<double>(composites)}},
              "a dimension in it is that of no input",
              inner.back()->origin});
      out.insert(out.end(), inner.begin(), inner.end());
      return;
    }
    const Origin& origin = outlined->function->origin;
    std::string& name = known_[outlined->function];
    if (name.empty()) name = add_region(module_, hint, backend, outlined->function);
    record({"MergeCompositeFunctions",
            name,
            "merged",
            backend,
            {{"composites", static_cast<double>(composites)},
             {"outputs", static_cast<double>(outputs.size())}},
            "",
            origin});
    const auto call = make<Call>(make<FuncRef>(name), std::move(outlined->arguments), Attrs(),
                                 std::vector<Type>{}, origin);
    bind_outputs(outputs, call, type_of_outputs(outputs), block.is_dataflow, origin, out);
  }

  IRModule& module_;
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known_;
};

}  // namespace

IRModule merge_composite_functions(IRModule module) {
  Merger merger(module);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || !backend_of(*function).empty()) continue;
    module.set(name, rewrite_blocks(function, [&](const BindingBlock& block, const auto& escaping) {
                 return merger.run(block, escaping);
               }));
  }
  return eliminate_dead_code(std::move(module));
}

}  // namespace tenon::graph
