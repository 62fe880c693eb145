// SPDX-License-Identifier: Apache-2.0
// The operands of a match, in the order in which its pattern writes them.
#include <algorithm>

#include "tenon/graph/patterns/match_run.h"

namespace tenon::graph {

std::vector<MatchInput> MatchRun::operands(const std::vector<Ref<Binding>>& bindings) const {
  std::unordered_set<const Node*> inside;
  for (const Ref<Binding>& binding : bindings) inside.insert(binding->var.get());
  std::vector<MatchInput> out;
  for (const Ref<Binding>& binding : bindings)
    each_input(binding->value, [&](const Value& value) {
      Value at = value;
      while (const auto* get = at.as<TupleGetItem>()) at = get->tuple;
      const auto* var = at.as<Var>();
      if (var ? inside.count(var) != 0 : !value.as<Constant>()) return;
      if (std::ranges::any_of(
              out, [&](const MatchInput& known) { return is_same_value(known.seen, value); }))
        return;
      out.push_back({.name = var ? var->name : "constant",
                     .seen = value,
                     .argument = value,
                     .matched = item_of(resolved(value))});
    });
  return in_order_of_pattern(out);
}

// The order of bindings is the network's; two networks with the same match may differ in it.
std::vector<MatchInput> MatchRun::in_order_of_pattern(const std::vector<MatchInput>& found) const {
  std::vector<MatchInput> out;
  std::vector<bool> placed(found.size());
  const auto place = [&](const Value& value) {
    for (size_t i = 0; i < found.size(); ++i) {
      if (placed[i] ||
          !(is_same_value(found[i].seen, value) || is_same_value(found[i].matched, value) ||
            is_same_value(resolved(found[i].seen), value)))
        continue;
      placed[i] = true;
      out.push_back(found[i]);
    }
  };
  std::vector<Part> todo;  // the last is next
  for (size_t i = roots_.size(); i-- > 0;) todo.push_back({.pattern = roots_[i]});
  std::unordered_set<const PatternNode*> seen;
  while (!todo.empty()) {
    const Part part = todo.back();
    todo.pop_back();
    if (!part.pattern) {
      each_input(part.open, place);
      continue;
    }
    const Value value = known(part.pattern);
    // Alternatives that were not taken have no value.
    if (!value || !seen.insert(part.pattern).second) continue;
    place(value);
    const std::vector<Part> parts = parts_of(*part.pattern, value);
    todo.insert(todo.end(), parts.rbegin(), parts.rend());
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!placed[i]) out.push_back(found[i]);
  return out;
}

std::vector<MatchRun::Part> MatchRun::parts_of(const PatternNode& pattern,
                                               const Value& value) const {
  const NodePtr node(&pattern);
  std::vector<Part> out;
  const auto add = [&](const PatternPtr& part) { out.push_back({.pattern = part.get()}); };
  if (const auto* call = node.as<CallPattern>()) {
    const Value expr = computed(value);
    const auto* matched = expr.as<Call>();
    if (!matched) return out;
    add(call->callee);
    const size_t stated = call->args ? call->args->size() : 0;
    if (call->args) std::ranges::for_each(*call->args, add);
    for (size_t i = stated; i < matched->args.size(); ++i)
      out.push_back({.open = matched->args[i]});
  } else if (const auto* tuple = node.as<TuplePattern>()) {
    std::ranges::for_each(tuple->items, add);
  } else if (const auto* graph = node.as<GraphPattern>()) {
    std::ranges::for_each(graph->results, add);
  } else if (const auto* item = node.as<TupleGetItemPattern>()) {
    add(item->tuple);
  } else if (const auto* function = node.as<FunctionPattern>()) {
    add(function->body);
  } else if (const auto* both = node.as<AndPattern>()) {
    add(both->lhs);
    add(both->rhs);
  } else if (const auto* either = node.as<OrPattern>()) {
    for (const PatternPtr& side : {either->lhs, either->rhs})
      if (const Value of_side = known(side.get()); of_side && is_same_value(of_side, value))
        add(side);
  } else if (const PatternPtr inner = conditioned(PatternPtr(&pattern))) {
    add(inner);
  } else {
    out.push_back({.open = value});  // of a tuple that stands there its items
  }
  return out;
}

}  // namespace tenon::graph
