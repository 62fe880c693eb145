// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/lifetimes.h"

#include <algorithm>

namespace tenon::graph {

// The variable whose memory a bound value shows in another shape or under another name; null where
// it is memory of its own.
static Value viewed(const Binding& binding) {
  const Value& value = binding.value;
  if (binding.match.as<ShapeType>()) return {};  // numbers, which are read here
  if (value.as<Var>()) return value;
  if (const auto* item = value.as<TupleGetItem>()) return item->tuple;
  const auto* call = value.as<Call>();
  // The elements that tensor_to_shape gives are read by the match_cast that names them.
  const bool is_view =
      call && (call->is("reshape") || call->is("words") || call->is("tensor_to_shape"));
  return is_view ? call->args[0] : Value();
}

// Variables that `value` names, as often as it does.
static void each_variable(const Value& value, const std::function<void(const Value&)>& f) {
  if (value.as<Var>()) return f(value);
  each_member(value, [&](const NodePtr& member, FieldRole) {
    if (const auto* inner = member.as<ValueNode>()) each_variable(ref_to(inner), f);
  });
}

std::vector<tir::SharedBuffer> shared_buffers_of(const Function& function) {
  const auto* results = function.body->body.as<Tuple>();
  return tir::shared_buffers(function.attrs, function.params.size(),
                             results ? results->values.size() : 1, function.origin);
}

Lifetimes::Lifetimes(const Function& function) {
  for (const tir::SharedBuffer& pair : shared_buffers_of(function))
    shared_.insert(function.params[pair.input].get());
  sequence(*function.body);
  use(function.body->body, kForever);
}

void Lifetimes::sequence(const SeqExpr& seq) {
  for (const Ref<BindingBlock>& block : seq.blocks)
    for (const Ref<Binding>& binding : block->bindings) bind(*binding);
}

void Lifetimes::bind(const Binding& binding) {
  if (const auto* branch = binding.value.as<If>()) {
    use(branch->condition, ++now_);
    for (const Ref<SeqExpr>& arm : {branch->then_branch, branch->else_branch}) {
      sequence(*arm);
      use(arm->body, ++now_);  // it is copied to where both branches leave their result
    }
  }
  time_[&binding] = ++now_;
  bindings_[binding.var.get()] = &binding;
  if (const Value source = viewed(binding)) memory_[binding.var.get()] = memory_of(source);
  if (binding.value.as<If>()) return;
  // Tuples and closures hold on to what they name.
  const bool is_held =
      binding.value.as<Tuple>() || binding.value.as<FunctionValue>() || binding.value.as<SeqExpr>();
  use(binding.value, is_held ? kForever : now_);
}

void Lifetimes::use(const Value& value, int64_t time) {
  if (const auto* function = value.as<FunctionValue>()) {
    walk<Var>(function->function, [&](const Var& var) { use(ref_to(&var), time); });
    return;
  }
  if (const auto* seq = value.as<SeqExpr>()) {
    walk<Var>(ref_to(seq), [&](const Var& var) { use(ref_to(&var), time); });
    return;
  }
  each_variable(value, [&](const Value& var) {
    int64_t& last = last_use_[memory_of(var)];
    last = std::max(last, time);
  });
}

const Node* Lifetimes::memory_of(const Value& value) const {
  Value at = value;
  while (const auto* item = at.as<TupleGetItem>()) at = item->tuple;
  const auto it = memory_.find(at.get());
  return it == memory_.end() ? at.get() : it->second;
}

const Binding* Lifetimes::binding_of(const Value& value) const {
  const auto it = bindings_.find(value.get());
  return it == bindings_.end() ? nullptr : it->second;
}

bool Lifetimes::ends_before(const Binding& binding, const Value& value) const {
  const auto last = last_use_.find(memory_of(value));
  return last == last_use_.end() || last->second < time_.at(&binding);
}

bool Lifetimes::ends_in(const Binding& binding, const Value& value) const {
  const Node* memory = memory_of(value);
  const auto maker = bindings_.find(memory);
  const auto last = last_use_.find(memory);
  const bool is_made =
      maker != bindings_.end() && maker->second->value.as<Call>() && !maker->second->match;
  if ((!is_made && !shared_.count(memory)) || last == last_use_.end() ||
      last->second != time_.at(&binding))
    return false;
  int uses = 0;
  each_variable(binding.value, [&](const Value& var) { uses += memory_of(var) == memory; });
  return uses == 1;
}

}  // namespace tenon::graph
