// SPDX-License-Identifier: Apache-2.0
// Matches several patterns together: contexts over a dataflow block, and graph functions with
// several results.
#include <algorithm>

#include "tenon/graph/infer.h"
#include "tenon/graph/layout.h"
#include "tenon/graph/op.h"
#include "tenon/graph/patterns/match_run.h"
#include "tenon/graph/shape.h"

namespace tenon::graph {

namespace {

// The arguments of what is bound, as `used_by` counts them: a tuple among them is one.
std::vector<Value> arguments_of(const Value& expr) {
  if (const auto* call = expr.as<Call>()) return call->args;
  if (const auto* tuple = expr.as<Tuple>()) return tuple->values;
  if (const auto* get = expr.as<TupleGetItem>()) return {get->tuple};
  return {};
}

bool contains(const Value& argument, const Node* var) {
  bool found = false;
  each_input(argument, [&](const Value& value) {
    Value at = value;
    while (const auto* get = at.as<TupleGetItem>()) at = get->tuple;
    found |= at.get() == var;
  });
  return found;
}

bool is_part_of(const PatternNode* part, const PatternPtr& whole) {
  bool found = false;
  walk(whole, [&](const NodePtr& node) { found |= node.get() == part; });
  return found;
}

}  // namespace

bool MatchRun::match(const DFPattern& pattern, const Value& root) {
  root_ = root;
  roots_ = {pattern.get()};
  push(pattern.get(), root);
  is_solved_ = solve(current_);
  return is_solved_ || open_match_;
}

bool MatchRun::match(const PatternContext& context, const BindingBlock& block) {
  context_ = &context;
  block_ = &block;
  for (const DFPattern& pattern : context.patterns) roots_.push_back(pattern.get());
  plan_context(context);
  if (nodes_.empty()) return false;
  is_solved_ = solve(add({.kind = Goal::Kind::kPick, .number = 0}));
  return is_solved_;
}

// The rarest first, then what is next to those placed, so that few candidates are tried.
void MatchRun::plan_context(const PatternContext& context) {
  const auto rarity = [&](const PatternNode* pattern) {
    const auto operators = root_operators(PatternPtr(pattern));
    if (!operators) return index_.bindings.size() + 1;
    size_t total = 0;
    for (const OpDef* op : *operators) {
      const auto found = index_.by_operator.find(op);
      total += found == index_.by_operator.end() ? 0 : found->second.size();
    }
    return total;
  };
  std::vector<const PatternNode*> left;
  for (const DFPattern& pattern : context.patterns) left.push_back(pattern.get());
  std::vector<size_t> count;
  for (const PatternNode* pattern : left) count.push_back(rarity(pattern));
  const auto is_next_to_placed = [&](const PatternNode* pattern) {
    for (const PatternNode* placed : nodes_) {
      for (const UseConstraint& use : context.uses)
        if ((use.producer.get() == pattern && use.consumer.get() == placed) ||
            (use.consumer.get() == pattern && use.producer.get() == placed))
          return true;
      if (is_part_of(placed, PatternPtr(pattern)) || is_part_of(pattern, PatternPtr(placed)))
        return true;
    }
    return false;
  };
  while (!left.empty()) {
    size_t best = left.size();
    for (size_t i = 0; i < left.size(); ++i) {
      if (best < left.size() && count[i] >= count[best]) continue;
      if (nodes_.empty() || is_next_to_placed(left[i])) best = i;
    }
    if (best == left.size())
      best = static_cast<size_t>(std::min_element(count.begin(), count.end()) - count.begin());
    nodes_.push_back(left[best]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
    count.erase(count.begin() + static_cast<std::ptrdiff_t>(best));
  }
}

// The values that use `value`.
std::vector<Value> MatchRun::users(const Value& value) const {
  std::vector<Value> out;
  if (!value) return out;
  for (const Node* user : index_.users_of(value))
    if (user) out.push_back(index_.definitions.at(user).binding->var);
  return out;
}

// Values that a constraint leaves to `pattern`: users of a producer that is known, or inputs of a
// consumer.
std::optional<std::vector<Value>> MatchRun::constrained(const PatternNode* pattern) const {
  if (!context_) return std::nullopt;
  for (const UseConstraint& use : context_->uses) {
    if (use.consumer.get() == pattern)
      if (const Value producer = known(use.producer.get())) return users(producer);
    if (use.producer.get() != pattern) continue;
    const Value consumer = known(use.consumer.get());
    if (!consumer) continue;
    std::vector<Value> out;
    each_input(computed(consumer), [&](const Value& value) {
      if (value.as<Var>()) out.push_back(value);
    });
    return out;
  }
  return std::nullopt;
}

// Values that `pattern` may match, given what others matched; nothing where they do not tell.
std::optional<std::vector<Value>> MatchRun::candidates(const PatternNode* pattern,
                                                       int depth) const {
  if (const Value value = known(pattern)) return std::vector<Value>{value};
  if (auto values = constrained(pattern)) return values;
  // A part that is known: the values above it. Alternatives have others.
  if (depth == 0 || NodePtr(pattern).as<OrPattern>()) return std::nullopt;
  std::optional<std::vector<Value>> best;
  each_member(PatternPtr(pattern), [&](const NodePtr& member, FieldRole) {
    const auto* part = member.as<PatternNode>();
    if (!part || member.as<NotPattern>()) return;
    const auto below = candidates(part, depth - 1);
    if (!below) return;
    const bool is_above = NodePtr(pattern).as<CallPattern>() ||
                          NodePtr(pattern).as<TuplePattern>() ||
                          NodePtr(pattern).as<TupleGetItemPattern>();
    std::vector<Value> above;
    if (is_above) {
      for (const Value& value : *below)
        for (Value& user : users(value)) above.push_back(std::move(user));
    } else {
      above = *below;
    }
    // An item or tuple may stand inside of its user.
    if (NodePtr(pattern).as<TuplePattern>() || NodePtr(pattern).as<TupleGetItemPattern>())
      above.insert(above.end(), below->begin(), below->end());
    if (!best || above.size() < best->size()) best = std::move(above);
  });
  return best;
}

bool MatchRun::step_pick(size_t number) {
  const PatternNode* pattern = nodes_[number];
  std::vector<Value> ways;
  if (auto near = candidates(pattern, 8)) {
    ways = std::move(*near);
  } else if (const auto operators = root_operators(PatternPtr(pattern))) {
    for (const OpDef* op : *operators) {
      const auto found = index_.by_operator.find(op);
      if (found == index_.by_operator.end()) continue;
      for (const Ref<Binding>& binding : found->second) ways.push_back(binding->var);
    }
  } else {
    if (block_)
      for (const Ref<Binding>& binding : block_->bindings)
        each_input(binding->value, [&](const Value& value) {
          if (value.as<Var>() && !index_.definition(value)) ways.push_back(value);
        });
    for (const Ref<Binding>& binding : index_.bindings) ways.push_back(binding->var);
  }
  // Each once, in order; of a context only what stands in its block, or outside the function.
  std::vector<std::pair<int64_t, size_t>> order;
  std::unordered_set<const Node*> seen;
  for (size_t i = 0; i < ways.size(); ++i) {
    const Definition* definition = index_.definition(ways[i]);
    if (block_ && definition && definition->block != block_) continue;
    if (seen.insert(ways[i].get()).second)
      order.emplace_back(definition ? definition->position : -1, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Value> sorted;
  for (const auto& [position, i] : order) sorted.push_back(ways[i]);
  ways = std::move(sorted);
  if (ways.empty()) return false;
  const int64_t rest = current_;
  const Value first = ways[0];
  if (ways.size() > 1)
    choices_.push_back({.candidates = std::move(ways),
                        .pick = number,
                        .tried = 1,
                        .rest = rest,
                        .goals = goals_.size(),
                        .mark = mark()});
  current_ = add({.kind = Goal::Kind::kPicked, .number = number, .next = rest});
  push(pattern, first);
  return true;
}

// Node `number` has its value: does it go with the others, and which is next?
bool MatchRun::step_picked(size_t number) {
  const PatternNode* pattern = nodes_[number];
  const Value value = known(pattern);
  for (const PatternNode* other : nodes_)
    if (other != pattern && known(other).same_as(value)) return false;
  if (context_) {
    for (const UseConstraint& use : context_->uses) {
      if (use.producer.get() != pattern && use.consumer.get() != pattern) continue;
      if (known(use.producer.get()) && known(use.consumer.get()) && !is_consistent(use))
        return false;
    }
  }
  if (number + 1 < nodes_.size())
    current_ = add({.kind = Goal::Kind::kPick, .number = number + 1, .next = current_});
  return true;
}

bool MatchRun::is_consistent(const UseConstraint& use) const {
  const Value producer = known(use.producer.get());
  const std::vector<Value> args = arguments_of(computed(known(use.consumer.get())));
  if (use.index >= 0)
    return static_cast<size_t>(use.index) < args.size() &&
           contains(args[static_cast<size_t>(use.index)], producer.get());
  return std::any_of(args.begin(), args.end(),
                     [&](const Value& arg) { return contains(arg, producer.get()); });
}

// All constraints between what is matched.
bool MatchRun::uses_hold() const {
  for (const UseConstraint& use : context_->uses) {
    if (!is_consistent(use)) return false;
    if (!use.only) continue;
    for (const Node* user : index_.users_of(known(use.producer.get()))) {
      const bool allowed = user && std::any_of(context_->uses.begin(), context_->uses.end(),
                                               [&](const UseConstraint& other) {
                                                 return other.producer.same_as(use.producer) &&
                                                        known(other.consumer.get()).get() == user;
                                               });
      if (!allowed) return false;
    }
  }
  for (const std::vector<DFPattern>& group : context_->same_shapes) {
    std::optional<std::vector<Expr>> shape;
    for (const DFPattern& pattern : group) {
      const Value value = known(pattern.get());
      const Type type = value ? type_of(value) : Type();
      const auto* tensor = type.as<TensorType>();
      if (!tensor || !tensor->shape) return false;
      if (shape && shapes_agree(*shape, *tensor->shape) != DimsAgree::kYes) return false;
      shape = tensor->shape;
    }
  }
  return true;
}

std::vector<const Node*> MatchRun::escaping(const std::vector<const Node*>& outputs) const {
  const std::unordered_set<const Node*> inside(inside_.begin(), inside_.end());
  std::vector<const Node*> out;
  for (const Node* var : inside) {
    if (std::find(outputs.begin(), outputs.end(), var) != outputs.end()) continue;
    const auto users = index_.users.find(var);
    if (users == index_.users.end()) continue;
    if (std::any_of(users->second.begin(), users->second.end(),
                    [&](const Node* user) { return !inside.count(user); }))
      out.push_back(var);
  }
  std::sort(out.begin(), out.end(), [&](const Node* a, const Node* b) {
    return index_.definitions.at(a).position < index_.definitions.at(b).position;
  });
  return out;
}

// What the function takes is computed outside, and what it computes inside stays there.
bool MatchRun::is_graph_closed() const {
  const std::unordered_set<const Node*> inside(inside_.begin(), inside_.end());
  for (const auto& [param, input] : inputs_) {
    Value at = input.seen;
    while (const auto* get = at.as<TupleGetItem>()) at = get->tuple;
    if (inside.count(at.get())) return false;
  }
  if (!graph_->exclusive) return true;
  std::vector<const Node*> outputs;
  for (const PatternPtr& result : graph_->results) outputs.push_back(known(result.get()).get());
  return escaping(outputs).empty();
}

// How far from the end the channels of `value` lie: as the nearest operator of the match that has a
// layout says, else last.
size_t MatchRun::channels_from_end(const Value& value) const {
  Value at = value;
  while (std::find(inside_.begin(), inside_.end(), at.get()) != inside_.end()) {
    const Value expr = computed(at);
    const auto* call = expr.as<Call>();
    if (!call || !call->op) break;
    for (const char* name : {"out_layout", "data_layout", "layout"}) {
      const auto layout = Layout::parse(call->attrs.get<std::string>(name).value_or(""));
      if (layout && layout->has('C') && layout->block('C') == 1)
        return layout->ndim() - 1 - static_cast<size_t>(layout->position('C'));
    }
    if (call->op->fusion > FusionKind::kBroadcast) break;
    const auto operand = std::ranges::find_if(call->args, [&](const Value& arg) {
      return arg && structural_equal(type_of(arg), type_of(at));
    });
    if (operand == call->args.end()) break;
    at = resolved(*operand);
  }
  return 0;
}

// A vector that is broadcast is given as a vector, which says no axis: it lies along the last one,
// as the pattern's own function has it, or along the channels of an operator with a layout.
bool MatchRun::vectors_lie_along_channels() {
  for (const auto& [param, input] : inputs_) {
    const auto* declared = param->value_type.as<TensorType>();
    if (!declared || declared->ndim != 1) continue;
    const Type type = type_of(input.seen);
    const auto* tensor = type.as<TensorType>();
    if (!tensor || !tensor->shape) continue;
    const std::vector<Expr>& dims = *tensor->shape;
    const auto proper = std::ranges::find_if(dims, [](const Expr& dim) { return !is_int(dim, 1); });
    if (proper == dims.end()) continue;
    const auto from_end = static_cast<size_t>(dims.end() - proper) - 1;
    for (const Node* var : inside_) {
      const Value& expr = index_.definitions.at(var).binding->value;
      const auto* call = expr.as<Call>();
      if (!call || !call->op || call->op->fusion != FusionKind::kBroadcast ||
          call->args.size() != 2)
        continue;
      for (size_t i = 0; i < 2; ++i) {
        if (!is_same_value(resolved(call->args[i]), input.seen)) continue;
        const Value other = resolved(call->args[1 - i]);
        const Type with = type_of(other);
        const auto* beside = with.as<TensorType>();
        if (!beside || beside->ndim < 1 || channels_from_end(other) == from_end) continue;
        const int64_t axis = std::max(beside->ndim, tensor->ndim) - 1 - int64_t(from_end);
        return differ(
            fmt::format("`{}` lies along axis {} of `{}`; expected the last axis, or the "
                        "channels of an operator with a layout",
                        param->name, axis, call->op->name));
      }
    }
  }
  return true;
}

bool MatchRun::is_done() {
  if (nested_ > 0) return true;
  if (context_) return uses_hold();
  if (graph_ && !is_graph_closed()) return differ("an inner value is used elsewhere too");
  if (graph_ && !vectors_lie_along_channels()) return false;
  if (open_match_ && !escaping({resolved(root_).get()}).empty()) return false;
  if (condition && !(*condition)(solution())) return false;
  if (graph_ || open_match_) return true;
  if (inside_.size() < 2 || choices_.empty() || escaping({resolved(root_).get()}).empty())
    return true;
  // Other ways may use what is used here alone.
  constexpr int64_t kFurtherSteps = 1000;
  open_match_ = solution();
  last_step_ = steps_ + kFurtherSteps;
  return false;
}

Match MatchRun::solution() const {
  Match out;
  for (const auto& [pattern, value] : bound_)
    if (!value.as<OpValue>()) out.values.emplace(pattern, value);
  std::unordered_set<const Node*> inside;
  for (const Node* var : inside_)
    if (inside.insert(var).second) out.bindings.push_back(index_.definitions.at(var).binding);
  std::sort(out.bindings.begin(), out.bindings.end(), [&](const auto& a, const auto& b) {
    return index_.definitions.at(a->var.get()).position <
           index_.definitions.at(b->var.get()).position;
  });
  out.operands = operands(out.bindings);
  const auto give = [&](const Value& value) {
    if (const auto var = cast<Var>(value))
      if (inside.count(var.get())) out.outputs.push_back(var);
  };
  if (graph_) {
    out.states_inputs = true;
    for (const PatternPtr& result : graph_->results) give(known(result.get()));
    for (const PatternPtr& param : graph_->params)
      for (const auto& [pattern, input] : inputs_)
        if (pattern == param.get()) out.inputs.push_back(input);
  } else {
    if (root_) give(resolved(root_));
    for (const MatchInput& operand : out.operands)
      if (!operand.seen.as<Constant>()) out.inputs.push_back(operand);
  }
  std::vector<const Node*> outputs;
  for (const Ref<Var>& var : out.outputs) outputs.push_back(var.get());
  for (const Node* var : escaping(outputs))
    out.escaping.push_back(index_.definitions.at(var).binding->var);
  out.dims = dims_.values();
  return out;
}

}  // namespace tenon::graph
