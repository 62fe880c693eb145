// SPDX-License-Identifier: Apache-2.0
// SelectKernels: the module's own kernels take the calls of their operators before any other pass
// changes these.
#include <algorithm>
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

// The function that `value` calls in the place of a node of the network, or of a group of
// operators; null where it calls none.
Ref<Function> whole_of(const IRModule& module, const Value& value) {
  const auto* call = value.as<Call>();
  const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
  const auto function = ref ? module.find<Function>(ref->name) : nullptr;
  return function && (is_node_function(*function) || is_group(module, *function)) ? function
                                                                                  : nullptr;
}

Value inlined(BlockBuilder& builder, const Function& whole, const Call& call,
              const BindingRule& rule) {
  const Ref<Function> copy = renew_definitions(ref_to(&whole));
  Substitution values;
  for (size_t i = 0; i < call.args.size(); ++i) {
    unify(copy->params[i]->type, type_of(call.args[i]), values);
    values.emplace(copy->params[i].get(), call.args[i]);
  }
  return emit_body(builder, *copy->body, values, rule);
}

// What no kernel takes as a whole stands in the place of the call again, where kernels for the
// operators in it are asked.
class Selection {
 public:
  Selection(const IRModule& module, const KernelTable& table) : module_(module), table_(table) {}

  BindingRule rule() const {
    return [this](BlockBuilder& builder, const Binding& binding, const Value& value) {
      return select(builder, binding, value);
    };
  }

 private:
  std::optional<Value> select(BlockBuilder& builder, const Binding& binding,
                              const Value& value) const {
    const auto* call = value.as<Call>();
    if (!call) return std::nullopt;
    const Ref<Function> whole = whole_of(module_, value);
    if (!whole) return table_.use(builder, *call, binding.var->name);
    std::optional<Value> out;
    std::vector<Remark> outside, inside;
    {
      const RemarkScope scope;
      out = table_.use(builder, *call, binding.var->name);
      outside = scope.remarks();
    }
    if (!out) {
      const RemarkScope scope;
      out = inlined(builder, *whole, *call, rule());
      builder.set_origin(binding.origin);
      inside = scope.remarks();
    }
    tell(outside, inside);
    return out;
  }

  // Each kernel has one answer: that it is used for what is inside, else why not for the whole.
  static void tell(const std::vector<Remark>& outside, const std::vector<Remark>& inside) {
    std::set<std::string> used, refused;
    for (const Remark& remark : inside)
      if (is_taken(remark)) used.insert(remark.decision->candidate);
    for (const Remark& remark : outside) {
      const std::string& kernel = remark.decision->candidate;
      if (!is_taken(remark) && !refused.insert(kernel).second) continue;
      if (!used.count(kernel)) record(remark);
    }
    for (const Remark& remark : inside)
      if (is_taken(remark) || !refused.count(remark.decision->candidate)) record(remark);
  }
  static bool is_taken(const Remark& remark) {
    return remark.decision->kind == Decision::Kind::kTaken;
  }

  const IRModule& module_;
  const KernelTable& table_;
};

// `module` with its graph functions rebuilt, but for declarations and patterns.
template <typename Rule>
IRModule rebuilt(IRModule module, const Rule& rule) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph || declares_operator(*graph) || is_node_function(*graph) || is_group(module, *graph))
      continue;
    module.set(name, rebuild(module, graph, rule));
  }
  return module;
}

// Whether the call of `node`, or something in it, stands at one of these places.
bool is_at(const Function& node, const Binding& call, const std::set<std::string>& places) {
  const auto holds = [&](const Binding& binding) {
    const Origin& origin = binding.origin ? binding.origin : binding.value->origin;
    return origin && places.count(origin.name());
  };
  bool found = holds(call);
  walk<Binding>(node.body, [&](const Binding& binding) { found |= holds(binding); });
  return found;
}

// Nodes at these places (all: where there are none) stand in pieces.
IRModule without_nodes(IRModule module, const std::set<std::string>* places) {
  const IRModule given = module;
  return rebuilt(std::move(module),
                 [&](BlockBuilder& builder, const Binding& binding,
                     const Value& value) -> std::optional<Value> {
                   const auto node = whole_of(given, value);
                   const auto* call = value.as<Call>();
                   if (!node || (places && !is_at(*node, binding, *places))) return std::nullopt;
                   const Value out = inlined(
                       builder, *node, *call,
                       [](BlockBuilder&, const Binding&, const Value&) { return std::nullopt; });
                   builder.set_origin(binding.origin);
                   return out;
                 });
}

bool is_pattern(const BaseFunc& function) { return function->attrs.contains("Pattern"); }

// Composites of what the patterns of kernels match, where a kernel takes it. All functions of the
// module stay, in their order.
IRModule with_groups(const IRModule& module, const KernelTable& table,
                     const std::vector<std::string>& names, std::vector<Remark>& refusals) {
  IRModule patterns;
  for (const std::string& name : names) patterns.set(name, pattern_named(module, name));
  std::vector<FusionPattern> found = read_patterns(patterns);
  for (size_t i = 0; i < found.size(); ++i) {
    // In the order of their kernels; of patterns of equal priority the larger is tried first.
    for (const OperatorKernel& kernel : table.kernels())
      if (kernel.operators.front() == found[i].name)
        found[i].priority =
            std::max(found[i].priority,
                     static_cast<int>(std::clamp<int64_t>(kernel.priority, -1000000, 1000000)));
    found[i].check = [&, name = found[i].name](const PatternCheck& check) {
      const Origin& origin = check.composite->origin;
      const auto refusal = table.refusal_of_group(module, *check.composite, origin);
      if (!refusal) return Verdict{};
      const std::string words = refusal->kernel.empty()
                                    ? refusal->why.words
                                    : fmt::format("`{}`: {}", refusal->kernel, refusal->why.words);
      refusals.push_back({kSelectKernels,
                          origin ? origin.name() : name,
                          "refused",
                          refusal->why.code,
                          {},
                          fmt::format("{} ({})", words, name),
                          origin,
                          Decision{Decision::Step::kKernels, Decision::Kind::kRefused, kKernels,
                                   refusal->kernel, refusal->why.code}});
      return Verdict::refuse(refusal->why.code, words);
    };
  }
  IRModule fused = module;
  for (const auto& [name, function] : module.functions())
    if (const auto pattern = is_pattern(function) ? cast<Function>(function) : nullptr) {
      fused.set(name, with(pattern, [](Function& copy) {
                  copy.attrs.set("Primitive", true);  // is not looked through
                }));
    }
  {
    const RemarkScope unheard;  // kernels have remarks of their own
    fused = fuse_ops_by_pattern(std::move(fused), found, {});
  }
  IRModule out;
  out.attrs = module.attrs;
  for (const auto& [name, function] : module.functions()) {
    const BaseFunc changed = fused.find(name);
    out.set(name, changed && !is_pattern(function) ? changed : function);
  }
  for (const auto& [name, function] : fused.functions())
    if (!out.contains(name)) out.set(name, function);
  return out;
}

// Nodes that are kept whole stand in pieces where a group takes some of these.
IRModule take_groups(IRModule module, const KernelTable& table, bool has_nodes) {
  const std::vector<std::string> names = table.groups(module);
  if (names.empty()) return module;
  std::vector<Remark> refusals;
  if (has_nodes) {
    const IRModule tried = with_groups(without_nodes(module, nullptr), table, names, refusals);
    refusals.clear();
    std::set<std::string> places;
    for (const auto& [name, function] : tried.functions()) {
      if (!is_group(tried, *function) || !function->origin) continue;
      const Origin& origin = function->origin;
      if (origin->kind != OriginInfo::Kind::kMerged) places.insert(origin.name());
      if (origin->kind == OriginInfo::Kind::kMerged)
        for (const Origin& part : origin->parts) places.insert(part.name());
    }
    module = without_nodes(std::move(module), &places);
  }
  module = with_groups(module, table, names, refusals);
  for (const Remark& refusal : refusals) record(refusal);
  return module;
}

}  // namespace

IRModule select_kernels(IRModule module) {
  const KernelTable table(module, UserPlacement::of(module).nodes);
  const std::vector<IRModule::Entry> entries = module.functions();
  const bool has_nodes = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return is_node_function(*entry.second);
  });
  if (table.empty() && !has_nodes) return module;
  module = take_groups(std::move(module), table, has_nodes);
  const IRModule given = module;
  module = rebuilt(std::move(module), Selection(given, table).rule());
  for (const auto& [name, function] : given.functions())
    if (is_node_function(*function) || is_group(given, *function)) module.erase(name);
  return module;
}

}  // namespace tenon::graph
