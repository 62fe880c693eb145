// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/match_index.h"

#include "tenon/ir/visit.h"

namespace tenon::graph {

void each_input(const Value& value, const std::function<void(const Value&)>& visit) {
  if (!value) return;
  if (const auto* call = value.as<Call>()) {
    if (call->callee) each_input(call->callee, visit);
    for (const Value& arg : call->args) each_input(arg, visit);
    return;
  }
  if (const auto* tuple = value.as<Tuple>()) {
    for (const Value& item : tuple->values) each_input(item, visit);
    return;
  }
  if (const auto* branch = value.as<If>()) return each_input(branch->condition, visit);
  if (value.as<Var>() || value.as<TupleGetItem>() || value.as<Constant>()) visit(value);
}

bool is_same_value(const Value& a, const Value& b) {
  if (a.same_as(b)) return true;
  if (!a || !b || a.as<Var>() || b.as<Var>()) return false;
  const auto *x = a.as<Constant>(), *y = b.as<Constant>();
  if (x || y) return x && y && x->data->content_hash() == y->data->content_hash();
  return structural_equal(a, b);
}

void Matcher::Index::add_binding(const Ref<Binding>& binding, const BindingBlock* block,
                                 bool is_inner_function) {
  const int64_t first_inside = positions;
  const Value& value = binding->value;
  std::vector<const Node*> used;  // each once
  std::unordered_set<const Node*> seen;
  const auto use = [&](const Node* var) {
    if (seen.insert(var).second) used.push_back(var);
  };
  if (const auto* branch = value.as<If>()) {
    add(*branch->then_branch, is_inner_function);
    add(*branch->else_branch, is_inner_function);
  } else if (const auto* inner = value.as<FunctionValue>()) {
    add_function(*inner->function);
  }
  if (value.as<If>() || value.as<FunctionValue>()) {
    walk<Var>(value, [&](const Var& var) {
      const auto found = definitions.find(&var);
      const bool inside = found != definitions.end() && found->second.position >= first_inside;
      if (!inside) use(&var);
    });
  } else {
    walk_if(value, [&](const NodePtr& node) {
      if (node.as<Var>()) use(node.get());
      return !node.as<Var>() && !node.as<TypeNode>();
    });
  }
  for (const Node* var : used) users[var].push_back(binding->var.get());
  definitions[binding->var.get()] = {binding, positions++, block};
  if (is_inner_function) return;
  bindings.push_back(binding);
  const auto* call = value.as<Call>();
  if (call && call->op && !binding->match) by_operator[call->op].push_back(binding);
}

void Matcher::Index::add(const SeqExpr& body, bool is_inner_function) {
  for (const Ref<BindingBlock>& block : body.blocks)
    for (const Ref<Binding>& binding : block->bindings)
      add_binding(binding, block.get(), is_inner_function);
  each_input(body.body, [&](const Value& value) {
    walk<Var>(value, [&](const Var& var) { users[&var].push_back(nullptr); });
  });
}

void Matcher::Index::add_function(const Function& function) {
  if (indexed.insert(&function).second) add(*function.body, true);
}

const Definition* Matcher::Index::definition(const Value& var) const {
  const auto found = definitions.find(var.get());
  return found == definitions.end() ? nullptr : &found->second;
}

const std::vector<const Node*>& Matcher::Index::users_of(const Value& var) const {
  static const std::vector<const Node*> kNone;
  const auto found = users.find(var.get());
  return found == users.end() ? kNone : found->second;
}

}  // namespace tenon::graph
