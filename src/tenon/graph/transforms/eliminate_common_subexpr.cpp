// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

namespace {

/// Structure, and which variables are used: all free variables are alike to structural_hash, which
/// would put every call of a long chain of equal operators into one bucket.
struct CallHash {
  size_t operator()(const NodePtr& value) const {
    uint64_t h = structural_hash(value);
    walk<Var>(value,
              [&](const Var& var) { h = hash_combine(h, reinterpret_cast<uintptr_t>(&var)); });
    return h;
  }
};

}  // namespace

IRModule eliminate_common_subexpr(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph) continue;
    // A value bound inside a branch is not in scope outside it: only calls outside branches are
    // remembered.
    std::unordered_map<const Node*, bool> in_branch;
    walk<If>(graph, [&](const If& branch) {
      for (const Ref<SeqExpr>& arm : {branch.then_branch, branch.else_branch})
        walk<Binding>(arm, [&](const Binding& binding) { in_branch[binding.var.get()] = true; });
    });
    std::unordered_map<NodePtr, Value, CallHash, StructuralEqual> known;  // looked up only
    const BindingRule rule = [&](BlockBuilder& builder, const Binding& binding,
                                 const Value& value) -> std::optional<Value> {
      const auto* call = value.as<Call>();
      if (!call || !call->op || !call->op->pure) return std::nullopt;
      const auto it = known.find(value);
      if (it != known.end()) return it->second;
      if (in_branch.count(binding.var.get())) return std::nullopt;
      Value bound = builder.emit(value, binding.var->name);
      known.emplace(value, bound);
      return bound;
    };
    module.set(name, rebuild(module, graph, rule));
  }
  return module;
}

}  // namespace tenon::graph
