// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/fusion_pattern.h"

#include <algorithm>
#include <numeric>

#include "tenon/graph/operator_attributes.h"
#include "tenon/tir/patterns/block_pattern.h"

namespace tenon::graph {

std::string backend_of(const FusionPattern& pattern) {
  return pattern.name.substr(0, pattern.name.find('.'));
}

std::map<std::string, Value> annotated_values(const FusionPattern& pattern, const Match& match) {
  std::map<std::string, Value> out;
  for (const auto& [name, part] : pattern.annotations)
    if (const Value value = match[part]) out.emplace(name, value);
  return out;
}

static void add_labels(Composite& composite, const FusionPattern& pattern, const Match& match) {
  std::unordered_map<const Node*, int64_t> positions;
  for (const Ref<Binding>& binding : match.bindings) {
    const auto* call = binding->value.as<Call>();
    if (call && call->op)
      positions.emplace(binding->var.get(), static_cast<int64_t>(positions.size()));
  }
  if (positions.size() != operator_bindings(*composite.function).size()) return;
  AttrValue::Map labels;
  for (const auto& [name, value] : annotated_values(pattern, match)) {
    const auto found = positions.find(value.get());
    if (found != positions.end()) labels.emplace(name, found->second);
  }
  if (labels.empty()) return;
  composite.function = with(*composite.function,
                            [&](Function& copy) { copy.attrs.set(kLabels, std::move(labels)); });
}

Composite make_composite(const FusionPattern& pattern, const Match& match,
                         CompositeOptions options) {
  options.bind_constants = pattern.bind_constants.value_or(options.bind_constants);
  options.names = annotated_values(pattern, match);
  Composite composite = make_composite(pattern.name, match, options);
  add_labels(composite, pattern, match);
  return composite;
}

std::vector<size_t> order_of_patterns(const std::vector<FusionPattern>& patterns) {
  std::vector<size_t> sizes, order(patterns.size());
  for (const FusionPattern& pattern : patterns)
    sizes.push_back(pattern.pattern ? pattern_size(pattern.pattern) : 0);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (patterns[a].priority != patterns[b].priority)
      return patterns[a].priority > patterns[b].priority;
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
  });
  return order;
}

// Attribute `key` of a pattern, where it has it.
template <typename T>
static std::optional<T> attribute(const std::string& name, const BaseFunc& function,
                                  const char* key, const char* wanted) {
  const AttrValue* value = function->attrs.find(key);
  if (!value) return std::nullopt;
  const T* found = value->as<T>();
  if (!found)
    throw CompileError(kBadPattern, function->origin, "`{}` of pattern `{}` is {}; expected {}",
                       key, name, value->str(), wanted);
  return *found;
}

std::vector<FusionPattern> read_patterns(const IRModule& module, const std::string& backend) {
  std::vector<FusionPattern> out;
  for (const auto& [name, base] : module.functions()) {
    FusionPattern pattern;
    const auto composite = attribute<std::string>(name, base, "Composite", "a name");
    const auto given =
        composite ? composite : attribute<std::string>(name, base, "Pattern", "a name");
    pattern.name = given.value_or(name);
    if (!backend.empty() && pattern.name.find('.') == std::string::npos)
      pattern.name = backend + "." + pattern.name;
    pattern.priority = static_cast<int>(std::clamp<int64_t>(
        attribute<int64_t>(name, base, "priority", "a number").value_or(0), -1'000'000, 1'000'000));
    pattern.bind_constants = attribute<bool>(name, base, "bind_constants", "True or False");
    pattern.origin = base->origin;
    if (const auto graph = cast<Function>(base)) {
      pattern.pattern = pattern_from_function(pattern.name, *graph,
                                              {.module = &module, .labels = &pattern.annotations});
    } else if (const auto prim = cast<tir::PrimFunc>(base)) {
      // One that a graph pattern names is a part of that one.
      bool named = false;
      for (const auto& [other, function] : module.functions())
        if (function.as<Function>())
          walk<FuncRef>(function, [&](const FuncRef& ref) { named |= ref.name == name; });
      if (named && !given) continue;
      tir::check_block_pattern(*prim);
      pattern.tir = prim;
    } else {
      throw CompileError(kBadPattern, base->origin,
                         "pattern `{}` is no graph function and no PrimFunc", name);
    }
    out.push_back(std::move(pattern));
  }
  return out;
}

}  // namespace tenon::graph
