// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/match_run.h"

#include <algorithm>

#include "tenon/graph/infer.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/patterns/block_pattern.h"

namespace tenon::graph {

namespace {

// Of one attempt. A pattern of ordinary size takes some hundred.
constexpr int64_t kMostSteps = 1'000'000;
// Of one that is made for the sake of a message.
constexpr int64_t kStepsForMessage = 1'000;

// Of axes that may count from the end, and of a permutation may be left out: all in reverse.
AttrValue from_front(const AttrValue& axes, int64_t ndim, bool is_permutation) {
  if (const auto* axis = axes.as<int64_t>()) return *axis < 0 ? *axis + ndim : *axis;
  AttrList out;
  if (const auto* list = axes.as<AttrList>())
    for (const AttrValue& axis : *list) out.push_back(from_front(axis, ndim, false));
  else if (is_permutation && axes.is_none())
    for (int64_t axis = ndim; axis-- > 0;) out.emplace_back(axis);
  else
    return axes;
  return out;
}

// The same axes of the first operand, which those of operators that add dimensions are not.
bool same_axes(const AttrValue& a, const AttrValue& b, const Call& call) {
  const auto type = cast<TensorType>(type_of(call.args[0]));
  const auto result = cast<TensorType>(type_of(ref_to(&call)));
  if (!type || !result || result->ndim < 0 || type->ndim < result->ndim) return false;
  const bool is_permutation = call.is("permute_dims");
  return from_front(a, type->ndim, is_permutation) == from_front(b, type->ndim, is_permutation);
}

// Arguments without the missing ones at the end.
std::vector<Value> given_args(const Call& call) {
  std::vector<Value> args = call.args;
  while (!args.empty() && !args.back()) args.pop_back();
  return args;
}

}  // namespace

// ---- goals ------------------------------------------------------------------------------------

int64_t MatchRun::add(Goal goal) {
  goals_.push_back(std::move(goal));
  return static_cast<int64_t>(goals_.size()) - 1;
}

void MatchRun::push(const PatternNode* pattern, const Value& value) {
  current_ = add({.pattern = pattern, .value = value, .next = current_});
}

// The first is worked on first.
void MatchRun::push_all(const std::vector<PatternPtr>& patterns, const std::vector<Value>& values) {
  for (size_t i = patterns.size(); i-- > 0;) push(patterns[i].get(), values[i]);
}

void MatchRun::choose(std::vector<int64_t> ways) {
  current_ = ways[0];
  if (ways.size() == 1) return;
  choices_.push_back({.ways = std::move(ways), .tried = 1, .goals = goals_.size(), .mark = mark()});
}

void MatchRun::undo(const Mark& mark) {
  for (; bound_log_.size() > mark.bound; bound_log_.pop_back()) bound_.erase(bound_log_.back());
  inside_.resize(mark.inside);
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(mark.inputs), inputs_.end());
  dims_.undo(mark.dims);
}

bool MatchRun::backtrack(size_t base) {
  if (choices_.size() <= base) return false;
  Choice& choice = choices_.back();
  undo(choice.mark);
  goals_.resize(choice.goals);
  if (!choice.ways.empty()) {
    current_ = choice.ways[choice.tried++];
    if (choice.tried == choice.ways.size()) choices_.pop_back();
    return true;
  }
  const Value candidate = choice.candidates[choice.tried++];
  const size_t pick = choice.pick;
  current_ = choice.rest;
  if (choice.tried == choice.candidates.size()) choices_.pop_back();
  current_ = add({.kind = Goal::Kind::kPicked, .number = pick, .next = current_});
  push(nodes_[pick], candidate);
  return true;
}

bool MatchRun::solve(int64_t goals) {
  const size_t base = choices_.size();
  current_ = goals;
  while (true) {
    bool good;
    if (current_ < 0) {
      good = dims_.settled() && is_done();
      if (good) break;
      if (furthest_) note_failure(nullptr);
    } else {
      const Goal goal = goals_[static_cast<size_t>(current_)];
      current_ = goal.next;
      good = step(goal);
      if (!good && furthest_) note_failure(&goal);
    }
    if (!good && !backtrack(base)) return false;
  }
  choices_.erase(choices_.begin() + static_cast<std::ptrdiff_t>(base), choices_.end());
  return true;
}

bool MatchRun::step(const Goal& goal) {
  ++index_.steps;
  if (open_match_ && steps_ >= last_step_) {
    choices_.clear();
    return false;
  }
  ++steps_;
  if (furthest_ && steps_ > kStepsForMessage) {
    choices_.clear();
    return false;
  }
  if (steps_ > kMostSteps)
    throw CompileError(kBadPattern, goal.pattern ? goal.pattern->origin : Origin(),
                       "a pattern took {} steps at one place without an end; expected fewer "
                       "alternatives, or more that tells them apart",
                       kMostSteps);
  switch (goal.kind) {
    case Goal::Kind::kMatch: return step_match(goal.pattern, goal.value);
    case Goal::Kind::kUnordered: return step_unordered(goal);
    case Goal::Kind::kPick: return step_pick(goal.number);
    case Goal::Kind::kPicked: return step_picked(goal.number);
  }
  return false;
}

// ---- values -----------------------------------------------------------------------------------

Value MatchRun::known(const PatternNode* pattern) const {
  const auto found = bound_.find(pattern);
  return found == bound_.end() ? Value() : found->second;
}

bool MatchRun::bind(const PatternNode* pattern, const Value& value) {
  bound_.emplace(pattern, value);
  bound_log_.push_back(pattern);
  return true;
}

Value MatchRun::resolved(const Value& value) const {
  Value at = value;
  while (const Definition* definition = index_.definition(at)) {
    const Binding& binding = *definition->binding;
    if (binding.match || !(binding.value.as<Var>() || binding.value.as<Constant>())) break;
    at = binding.value;
  }
  return at;
}

Value MatchRun::item_of(const Value& value) const {
  const auto* get = computed(value).as<TupleGetItem>();
  if (!get) return value;
  const auto* tuple = computed(resolved(get->tuple)).as<Tuple>();
  if (!tuple || get->index < 0 || get->index >= static_cast<int64_t>(tuple->values.size()))
    return value;
  return resolved(tuple->values[static_cast<size_t>(get->index)]);
}

Value MatchRun::computed(const Value& value) const {
  const Definition* definition = index_.definition(value);
  return definition && !definition->binding->match ? definition->binding->value : value;
}

void MatchRun::enter(const Value& value) {
  if (index_.definition(value)) inside_.push_back(value.get());
}

bool MatchRun::differ(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return false;
}

// ---- one pattern ------------------------------------------------------------------------------

bool MatchRun::step_match(const PatternNode* pattern, const Value& given) {
  if (!pattern || !given) return !pattern && !given;
  const NodePtr node(pattern);
  Value value = resolved(given);
  if (!node.as<TupleGetItemPattern>()) value = item_of(value);
  if (const Value before = known(pattern)) return is_same_value(before, value);

  if (const auto* either = node.as<OrPattern>()) {
    bind(pattern, value);
    const int64_t rest = current_;
    choose({add({.pattern = either->lhs.get(), .value = given, .next = rest}),
            add({.pattern = either->rhs.get(), .value = given, .next = rest})});
    return true;
  }
  if (const auto* both = node.as<AndPattern>()) {
    push(both->rhs.get(), given);
    push(both->lhs.get(), given);
    return bind(pattern, value);
  }
  if (const auto* reject = node.as<NotPattern>()) {
    const Mark before = mark();
    const size_t goals = goals_.size();
    const int64_t rest = std::exchange(current_, -1);
    push(reject->pattern.get(), given);
    const GraphPattern* graph = std::exchange(graph_, nullptr);
    const PatternContext* context = std::exchange(context_, nullptr);
    ++nested_;
    const bool matched = solve(current_);
    --nested_;
    graph_ = graph;
    context_ = context;
    undo(before);
    goals_.resize(goals);
    current_ = rest;
    return !matched && bind(pattern, value);
  }
  if (const PatternPtr inner = conditioned(PatternPtr(pattern))) {
    if (!match_property(*pattern, value)) return false;
    push(inner.get(), given);
    return bind(pattern, value);
  }
  if (const auto* call = node.as<CallPattern>()) return match_call(*call, value);
  if (const auto* tuple = node.as<TuplePattern>()) return match_tuple(*tuple, value);
  if (const auto* item = node.as<TupleGetItemPattern>()) return match_item(*item, value);
  if (const auto* function = node.as<FunctionPattern>()) return match_function(*function, value);
  if (const auto* param = node.as<ParamPattern>()) return match_param(*param, value);
  if (const auto* param = node.as<TransposedPattern>()) return match_transposed(*param, value);
  if (const auto* graph = node.as<GraphPattern>()) return match_graph(*graph, value);
  return match_leaf(*pattern, given, value) && bind(pattern, value);
}

bool MatchRun::match_leaf(const PatternNode& pattern, const Value& given, const Value& value) {
  const NodePtr node(&pattern);
  if (node.as<WildcardPattern>()) return true;
  if (const auto* var = node.as<VarPattern>()) {
    // A name is that of the use, which may be a name of a name.
    for (const Value& use : {given, value}) {
      const auto* is = use.as<Var>();
      if (is && (var->name.empty() || is->name == var->name) && (!var->dataflow || is->is_dataflow))
        return true;
    }
    return false;
  }
  if (node.as<ConstantPattern>()) return value.as<Constant>() != nullptr;
  if (const auto* expr = node.as<ExprPattern>())
    return is_same_value(expr->value, value) || structural_equal(expr->value, computed(value));
  if (const auto* op = node.as<OpPattern>()) {
    const auto* is = value.as<OpValue>();
    return is && is->op == op->op;
  }
  const auto* ref = value.as<FuncRef>();
  if (const auto* function = node.as<GlobalVarPattern>())
    return ref && (function->name.empty() || ref->name == function->name);
  if (const auto* function = node.as<ExternFuncPattern>()) {
    const auto fits = [&](const std::string& symbol) {
      return function->symbol.empty() || function->symbol == symbol;
    };
    if (const auto* external = value.as<ExternRef>()) return fits(external->symbol);
    if (!ref || !index_.module) return false;
    if (const auto declared = index_.module->find<tir::ExternFunction>(ref->name))
      return fits(declared->symbol);
    const auto undeclared = index_.module->find<ExternFunc>(ref->name);
    return undeclared && fits(undeclared->symbol);
  }
  if (const auto* function = node.as<PrimFuncPattern>()) {
    if (!ref || !index_.module) return false;
    const auto target = index_.module->find<tir::PrimFunc>(ref->name);
    std::string why;
    if (!target) return false;
    return tir::matches(*function->function, *target, &why).has_value() || differ(std::move(why));
  }
  if (const auto* shape = node.as<ShapeExprPattern>()) {
    const auto* is = computed(value).as<ShapeExpr>();
    return is && dims_.match(shape->dims, is->values);
  }
  return false;
}

bool MatchRun::match_property(const PatternNode& pattern, const Value& value) {
  const NodePtr node(&pattern);
  if (const auto* attrs = node.as<AttrPattern>()) return match_attrs(*attrs, value);
  if (value.as<OpValue>()) return false;
  const Type type = type_of(value);
  if (const auto* dtype = node.as<DTypePattern>()) {
    if (const auto* prim = type.as<PrimType>()) return prim->dtype == dtype->dtype;
    const auto* tensor = type.as<TensorType>();
    return tensor && tensor->dtype == dtype->dtype;
  }
  if (const auto* shape = node.as<ShapePattern>()) {
    const auto* tensor = type.as<TensorType>();
    return tensor && tensor->shape && dims_.match(shape->dims, *tensor->shape);
  }
  return allows(node.as<TypePattern>()->value_type, type, dims_);
}

bool MatchRun::match_attrs(const AttrPattern& pattern, const Value& value) {
  if (const auto* op = value.as<OpValue>()) {
    const Attrs of_op = {{"TOpPattern", static_cast<int64_t>(op->op->fusion)},
                         {"FPurity", op->op->pure}};
    for (const auto& [name, wanted] : pattern.attrs) {
      const AttrValue* given = of_op.find(name);
      if (!given || !same_attr(wanted, *given)) return false;
    }
    return true;
  }
  const Value expr = computed(value);
  const auto* call = expr.as<Call>();
  const Attrs* attrs = call ? &call->attrs : nullptr;
  if (const auto* inner = expr.as<FunctionValue>()) attrs = &inner->function->attrs;
  if (const auto* ref = expr.as<FuncRef>()) {
    const BaseFunc function = index_.module ? index_.module->find(ref->name) : BaseFunc();
    if (function) attrs = &function->attrs;
  }
  if (!attrs) return false;
  for (const auto& [name, wanted] : pattern.attrs) {
    const AttrValue* given = attrs->find(name);
    if (given && same_attr(wanted, *given)) continue;
    if (given && call && call->op && (name == "axis" || name == "axes") &&
        same_axes(wanted, *given, *call))
      continue;
    // Worth a word where the operators are the same.
    const auto* inner = pattern.pattern.as<CallPattern>();
    const auto* op = inner ? inner->callee.as<OpPattern>() : nullptr;
    if (!op || !call || op->op != call->op) return false;
    return differ(fmt::format("`{}` of `{}` is {} and {} in the pattern", name, call->op->name,
                              given ? given->str() : "missing", wanted.str()));
  }
  return true;
}

bool MatchRun::match_call(const CallPattern& pattern, const Value& value) {
  const Value expr = computed(value);
  const auto* call = expr.as<Call>();
  if (!call) return false;
  const auto* op = pattern.callee.as<OpPattern>();
  if (op && op->op != call->op) return false;
  bind(&pattern, value);
  enter(value);
  if (pattern.args) {
    const std::vector<PatternPtr>& wanted = *pattern.args;
    const std::vector<Value> args = given_args(*call);
    const bool fits =
        pattern.more_args ? args.size() >= wanted.size() : args.size() == wanted.size();
    if (!fits) return false;
    if (call->op && call->op->traits.commutative && wanted.size() == 2 && args.size() == 2) {
      const int64_t rest = current_;
      push_all(wanted, args);
      const int64_t in_order = std::exchange(current_, rest);
      push_all(wanted, {args[1], args[0]});
      choose({in_order, current_});
    } else {
      push_all(wanted, args);
    }
  }
  if (op) return true;
  push(pattern.callee.get(), call->op ? Value(make<OpValue>(call->op)) : call->callee);
  return true;
}

bool MatchRun::match_tuple(const TuplePattern& pattern, const Value& value) {
  const Value expr = computed(value);
  const auto* tuple = expr.as<Tuple>();
  if (!tuple || tuple->values.size() != pattern.items.size()) return false;
  bind(&pattern, value);
  enter(value);
  if (!pattern.unordered) {
    push_all(pattern.items, tuple->values);
    return true;
  }
  current_ = add({.kind = Goal::Kind::kUnordered,
                  .pattern = &pattern,
                  .value = expr,
                  .used = std::vector<bool>(tuple->values.size()),
                  .next = current_});
  return true;
}

// Gives item `number` of the pattern one of the values that are left.
bool MatchRun::step_unordered(const Goal& goal) {
  const auto& items = static_cast<const TuplePattern*>(goal.pattern)->items;
  if (goal.number == items.size()) return true;
  const auto& values = goal.value.as<Tuple>()->values;
  std::vector<int64_t> ways;
  for (size_t i = 0; i < values.size(); ++i) {
    if (goal.used[i]) continue;
    Goal others = goal;
    others.used[i] = true;
    ++others.number;
    const int64_t next = add(std::move(others));
    ways.push_back(add({.pattern = items[goal.number].get(), .value = values[i], .next = next}));
  }
  choose(std::move(ways));
  return true;
}

bool MatchRun::match_item(const TupleGetItemPattern& pattern, const Value& value) {
  const Value expr = computed(value);
  const auto* get = expr.as<TupleGetItem>();
  if (!get || (pattern.index >= 0 && pattern.index != get->index)) return false;
  bind(&pattern, value);
  enter(value);
  push(pattern.tuple.get(), get->tuple);
  return true;
}

bool MatchRun::match_function(const FunctionPattern& pattern, const Value& value) {
  const Value expr = computed(value);
  Ref<Function> function;
  if (const auto* inner = expr.as<FunctionValue>()) function = inner->function;
  if (const auto* ref = expr.as<FuncRef>())
    if (index_.module) function = index_.module->find<Function>(ref->name);
  if (!function || function->params.size() != pattern.params.size()) return false;
  index_.add_function(*function);
  bind(&pattern, value);
  push(pattern.body.get(), function->body->body);
  for (size_t i = pattern.params.size(); i-- > 0;)
    push(pattern.params[i].get(), function->params[i]);
  return true;
}

// ---- graph functions as patterns --------------------------------------------------------------

bool MatchRun::match_param(const ParamPattern& pattern, const Value& value) {
  return bind_param(pattern, value, value, MatchInput::View::kItself);
}

bool MatchRun::match_transposed(const TransposedPattern& pattern, const Value& value) {
  const auto* param = pattern.param.as<ParamPattern>();
  if (!value.as<Constant>()) return false;
  const auto type = cast<TensorType>(type_of(value));
  if (!type || type->ndim != 2) return false;
  if (const Value before = known(param)) return is_same_value(before, value);
  return bind_param(*param, value, call_op("permute_dims", {value}), MatchInput::View::kTranspose);
}

bool MatchRun::bind_param(const ParamPattern& param, const Value& seen, Value argument,
                          MatchInput::View view) {
  Type type = type_of(argument);
  const auto* declared = param.value_type.as<TensorType>();
  // A vector that is broadcast: the function takes the vector.
  const auto* tensor = type.as<TensorType>();
  const auto proper = proper_dims(type);
  if (declared && declared->ndim == 1 && tensor && tensor->ndim > 1 && proper &&
      proper->size() <= 1) {
    argument = vector_of(argument, proper->empty() ? std::vector<Expr>{int64(1)} : *proper);
    view = MatchInput::View::kReshape;
    type = type_of(argument);
  }
  if (!allows(param.value_type, type, dims_))
    return differ(fmt::format("`{}` is {} and {} in the pattern", param.name, str(type),
                              str(param.value_type)));
  inputs_.emplace_back(&param, MatchInput{param.name, seen, std::move(argument), view});
  return bind(&param, seen);
}

// The vector itself where it was only reshaped.
Value MatchRun::vector_of(const Value& value, const std::vector<Expr>& dims) const {
  const Value expr = computed(value);
  const auto* call = expr.as<Call>();
  if (call && call->op && (call->is("reshape") || call->is("expand_dims"))) {
    const auto source = cast<TensorType>(type_of(call->args[0]));
    if (source && source->shape && source->ndim == 1) return call->args[0];
  }
  return call_op("reshape", {value, make<ShapeExpr>(dims)});
}

bool MatchRun::match_graph(const GraphPattern& pattern, const Value& value) {
  graph_ = &pattern;
  nodes_.clear();
  for (const PatternPtr& result : pattern.results) nodes_.push_back(result.get());
  if (nodes_.size() > 1) current_ = add({.kind = Goal::Kind::kPick, .number = 1, .next = current_});
  push(nodes_[0], value);
  return bind(&pattern, value);
}

}  // namespace tenon::graph
