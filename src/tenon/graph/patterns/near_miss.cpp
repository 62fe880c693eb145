// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/near_miss.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "tenon/graph/codegen_attrs.h"
#include "tenon/graph/patterns/match_run.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

namespace {

// How much it counts that an operator matched: who writes a pattern with a convolution wants to
// know of the convolutions, not of each addition. An operator of the right kind that differs in
// something else counts half.
constexpr int kOperator = 8;
constexpr int kContraction = 24;

int weight_of(const OpDef* op) {
  return op && op->fusion == FusionKind::kContraction ? kContraction : kOperator;
}

// Without the conditions around it.
const PatternNode* bare(const PatternNode* pattern) {
  while (const PatternPtr inner = conditioned(PatternPtr(pattern))) pattern = inner.get();
  return pattern;
}

// The operator that a pattern asks for; null where it is no call of one.
const OpDef* operator_of(const PatternNode* pattern) {
  const auto* call = NodePtr(bare(pattern)).as<CallPattern>();
  const auto* op = call ? call->callee.as<OpPattern>() : nullptr;
  return op ? op->op : nullptr;
}

bool has_member(const PatternNode& pattern, const PatternNode* member) {
  bool found = false;
  each_member(NodePtr(&pattern),
              [&](const NodePtr& node, FieldRole) { found |= node.get() == member; });
  return found;
}

std::string named(const char* what, const std::string& name) {
  return name.empty() ? std::string(what) : fmt::format("{} `{}`", what, name);
}

// What a pattern asks for, in words.
std::string wanted(const PatternNode* pattern) {
  if (!pattern) return "nothing";
  const NodePtr node(bare(pattern));
  if (const OpDef* op = operator_of(pattern)) return fmt::format("`{}`", op->name);
  if (const auto* call = node.as<CallPattern>()) return "a call of " + wanted(call->callee.get());
  if (const auto* either = node.as<OrPattern>())
    return wanted(either->lhs.get()) + " or " + wanted(either->rhs.get());
  if (const auto* both = node.as<AndPattern>())
    return wanted(both->lhs.get()) + " and " + wanted(both->rhs.get());
  if (const auto* other = node.as<NotPattern>())
    return "anything but " + wanted(other->pattern.get());
  if (const auto* op = node.as<OpPattern>()) return fmt::format("`{}`", op->op->name);
  if (const auto* var = node.as<VarPattern>())
    return named(var->dataflow ? "a variable of a dataflow block" : "a variable", var->name);
  if (const auto* function = node.as<GlobalVarPattern>()) return named("function", function->name);
  if (const auto* function = node.as<ExternFuncPattern>())
    return named("the foreign function", function->symbol);
  if (const auto* function = node.as<PrimFuncPattern>())
    return fmt::format("a kernel like that at {}", function->origin.str());
  if (node.as<ConstantPattern>()) return "a constant";
  if (const auto* expr = node.as<ExprPattern>()) {
    const auto* constant = expr->value.as<Constant>();
    return constant ? fmt::format("the constant of {} that the pattern names", str(constant->type))
                    : "the value that the pattern names";
  }
  if (const auto* tuple = node.as<TuplePattern>())
    return fmt::format("a tuple of {}", tuple->items.size());
  if (const auto* item = node.as<TupleGetItemPattern>())
    return (item->index < 0 ? "an item of " : fmt::format("item {} of ", item->index)) +
           wanted(item->tuple.get());
  if (const auto* param = node.as<ParamPattern>())
    return fmt::format("`{}`, {}", param->name, str(param->value_type));
  if (node.as<TransposedPattern>()) return "a transposed parameter or a constant matrix";
  if (const auto* shape = node.as<ShapeExprPattern>()) return "the shape " + str(shape->dims);
  if (node.as<FunctionPattern>()) return "a function";
  return "anything";
}

// What the bindings of a match count.
struct Progress {
  int score = 0;
  size_t operators = 0;

  void add(const Binding& binding) {
    const auto* call = binding.value.as<Call>();
    if (!call) return;
    score += weight_of(call->op);
    ++operators;
  }
};

}  // namespace

// ---- what one attempt tells -------------------------------------------------------------------

std::string MatchRun::describe(const Value& value) const {
  if (!value) return "missing";
  const Value at = computed(value);
  std::string where;
  if (const Definition* definition = index_.definition(value)) {
    const Binding& binding = *definition->binding;
    const Origin& origin = binding.origin ? binding.origin : binding.value->origin;
    where = fmt::format(" (`{}`)", origin && origin->kind != OriginInfo::Kind::kScript
                                       ? origin.name()
                                       : binding.var->name);
  }
  if (const auto* call = at.as<Call>()) {
    if (call->op) return fmt::format("`{}`{}", call->op->name, where);
    return "a call of " + describe(call->callee) + where;
  }
  if (const auto* var = at.as<Var>()) return fmt::format("the input `{}`", var->name);
  if (const auto* constant = at.as<Constant>())
    return fmt::format("a constant of {}", str(constant->type));
  if (const auto* ref = at.as<FuncRef>()) return fmt::format("function `{}`", ref->name);
  if (const auto* ref = at.as<ExternRef>())
    return fmt::format("the foreign function `{}`", ref->symbol);
  if (const auto* op = at.as<OpValue>()) return fmt::format("`{}`", op->op->name);
  if (const auto* tuple = at.as<Tuple>())
    return fmt::format("a tuple of {}{}", tuple->values.size(), where);
  if (const auto* get = at.as<TupleGetItem>())
    return fmt::format("item {} of {}", get->index, describe(resolved(get->tuple)));
  if (const auto* shape = at.as<ShapeExpr>()) return "the shape " + str(shape->values);
  if (at.as<If>()) return "a conditional" + where;
  return "another value" + where;
}

// "argument 0 of `nn.relu` (`/r`)": where in what matched the value stands.
std::string MatchRun::place_of(const PatternNode& pattern, const Value& given) const {
  const PatternNode* at = &pattern;
  for (auto outer = bound_log_.rbegin(); outer != bound_log_.rend(); ++outer) {
    const auto* node = static_cast<const PatternNode*>(*outer);
    if (!has_member(*node, at)) continue;
    if (!NodePtr(node).as<CallPattern>()) {  // an alternative, a condition: of what?
      at = node;
      continue;
    }
    const Value user = known(node);
    const auto* call = computed(user).as<Call>();
    if (!call) break;
    for (size_t i = 0; i < call->args.size(); ++i) {
      if (!call->args[i].same_as(given)) continue;
      const std::string name =
          call->op && i < call->op->inputs.size() && !call->op->inputs[i].variadic
              ? fmt::format("`{}`", call->op->inputs[i].name)
              : fmt::format("argument {}", i);
      return name + " of " + describe(user);
    }
    return "an argument of " + describe(user);
  }
  return {};
}

std::string MatchRun::difference(const PatternNode& pattern, const Value& given) const {
  const NodePtr node(&pattern);
  Value value = given ? resolved(given) : given;
  if (value && !node.as<TupleGetItemPattern>()) value = item_of(value);
  const std::string place = place_of(pattern, given);
  const auto is_not = [&](const std::string& seen, const std::string& expected) {
    return fmt::format("{}{} and {} in the pattern", place.empty() ? "" : place + " is ", seen,
                       expected);
  };
  if (!value) return is_not("left out", wanted(&pattern));
  const Value before = known(&pattern);
  if (before && !is_same_value(before, value))
    return is_not(describe(value), describe(before) + ", which it has elsewhere,");

  // A condition on what is right otherwise.
  const Value expr = computed(value);
  const auto* call = expr.as<Call>();
  const PatternNode* inner = bare(&pattern);
  const OpDef* op = operator_of(&pattern);
  const bool is_condition = inner != &pattern && (!op || (call && call->op == op));
  if (is_condition && !value.as<OpValue>()) {
    const std::string subject = describe(value);
    if (const auto* attrs = node.as<AttrPattern>()) {
      if (!call) return fmt::format("{} has no attributes", subject);
      for (const auto& [name, expected] : attrs->attrs) {
        const AttrValue* is = call->attrs.find(name);
        if (is && same_attr(expected, *is)) continue;
        return fmt::format("`{}` of {} is {} and {} in the pattern", name, subject,
                           is ? is->str() : "missing", expected.str());
      }
    }
    const std::string type = str(type_of(value));
    if (const auto* dtype = node.as<DTypePattern>())
      return fmt::format("{} is {} and of dtype {} in the pattern", subject, type,
                         dtype->dtype.str());
    if (const auto* shape = node.as<ShapePattern>())
      return fmt::format("{} is {} and of shape {} in the pattern", subject, type,
                         str(shape->dims));
    if (const auto* wanted_type = node.as<TypePattern>())
      return fmt::format("{} is {} and {} in the pattern", subject, type,
                         str(wanted_type->value_type));
  }
  if (const auto* param = node.as<ParamPattern>())
    return is_not(fmt::format("{} of {}", describe(value), str(type_of(value))), wanted(param));
  if (const auto* pattern_call = node.as<CallPattern>();
      pattern_call && call && op && call->op == op && pattern_call->args) {
    const auto count = [](size_t n) { return fmt::format("{} argument{}", n, n == 1 ? "" : "s"); };
    return fmt::format("{} has {} and {}{} in the pattern", describe(value),
                       count(call->args.size()), pattern_call->more_args ? "at least " : "",
                       count(pattern_call->args->size()));
  }
  return is_not(describe(value), wanted(&pattern));
}

std::string MatchRun::other_use(const Value& value,
                                const std::unordered_set<const Node*>& inside) const {
  for (const Node* user : index_.users_of(value)) {
    if (inside.count(user)) continue;
    return fmt::format("{} is {}, too; the pattern has no output for it", describe(value),
                       user ? "used by " + describe(index_.definitions.at(user).binding->var)
                            : "a result of the function");
  }
  return {};
}

std::string MatchRun::open_value() const {
  std::vector<const Node*> outputs;
  for (const PatternPtr& result : graph_->results) outputs.push_back(known(result.get()).get());
  for (const Node* var : escaping(outputs))
    return other_use(index_.definitions.at(var).binding->var, {inside_.begin(), inside_.end()});
  return {};
}

void MatchRun::note_failure(const Goal* goal) {
  if (nested_ > 0 || context_ || open_match_) return;
  if (static_cast<int>(inside_.size() + 1) * kContraction <= furthest_->score) return;
  Progress progress;
  for (const Node* var : std::unordered_set<const Node*>(inside_.begin(), inside_.end()))
    progress.add(*index_.definitions.at(var).binding);
  int total = progress.score;
  const Value value = goal && goal->value ? item_of(resolved(goal->value)) : Value();
  const OpDef* op = goal && goal->kind == Goal::Kind::kMatch ? operator_of(goal->pattern) : nullptr;
  if (op && value) {
    const auto* call = computed(value).as<Call>();
    const bool counted = std::find(inside_.begin(), inside_.end(), value.get()) != inside_.end();
    if (call && call->op == op && !counted) total += weight_of(op) / 2;
    if (call && call->op != op) total += 1;  // tells more than a constant or an input
  }
  if (total <= furthest_->score) return;
  std::string why;
  if (!goal) {
    why = graph_ ? open_value() : "";
    if (why.empty()) why = "dimensions that the pattern relates to each other differ";
  } else if (goal->kind != Goal::Kind::kMatch) {
    why = "one of its results is found nowhere beside the others";
  } else if (goal->pattern) {
    why = difference(*goal->pattern, goal->value);
  } else {
    why = describe(goal->value) + " is an argument that the pattern leaves out";
  }
  *furthest_ = {total, progress.operators, std::move(why), value};
}

// ---- over a function --------------------------------------------------------------------------

/// Holds a pattern, and the patterns inside of it, against the operators of one function, within a
/// number of steps.
class NearestMiss {
 public:
  NearestMiss(const IRModule& module, const Function& function, const DFPattern& pattern)
      : pattern_(pattern) {
    index_.module = &module;
    index_.add(*function.body, false);
    collect();
  }

  /// False where the pattern matches.
  bool run() {
    for (const Ref<Binding>& root : roots_of(pattern_.get())) {
      if (root->match) continue;
      if (index_.steps > kMostSteps) return true;
      MatchRun run(index_, &best_.attempt);
      const int before = best_.attempt.score;
      if (run.match(pattern_, root->var)) {
        const Match match = run.result();
        if (match.escaping.empty()) return false;
        const Progress progress = progress_of(match);
        std::unordered_set<const Node*> inside;
        for (const Ref<Binding>& binding : match.bindings) inside.insert(binding->var.get());
        if (progress.score > before)
          best_ = {{progress.score, progress.operators, run.other_use(match.escaping[0], inside),
                    match.escaping[0]},
                   root};
      } else if (best_.attempt.score > before) {
        best_.at = root;
      }
    }
    for (const PatternNode* inner : inner_) hold(inner);
    return true;
  }
  struct Best {
    FailedAttempt attempt;
    Ref<Binding> at;
  };
  const Best& best() const { return best_; }
  Origin origin() const {
    if (const Definition* definition = index_.definition(best_.attempt.seen)) {
      const Binding& binding = *definition->binding;
      return binding.origin ? binding.origin : binding.value->origin;
    }
    return best_.at->origin ? best_.at->origin : best_.at->value->origin;
  }

 private:
  static constexpr int64_t kMostSteps = 300'000;

  // Calls inside of the pattern, the larger first, and what stands around each.
  void collect() {
    std::unordered_set<const Node*> seen;
    std::vector<const PatternNode*> found, todo{pattern_.get()};
    while (!todo.empty()) {
      const PatternNode* at = todo.back();
      todo.pop_back();
      if (!at || !seen.insert(at).second || NodePtr(at).as<NotPattern>()) continue;
      if (at != pattern_.get() && operator_of(at)) found.push_back(at);
      each_member(NodePtr(at), [&](const NodePtr& member, FieldRole) {
        const auto* part = member.as<PatternNode>();
        if (!part) return;
        outer_[part].push_back(at);
        todo.push_back(part);
      });
    }
    // With the conditions on it, if there are any. The order in which they were found decides among
    // equals.
    std::vector<std::tuple<int, size_t, const PatternNode*>> order;
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<const PatternNode*>& outer = outer_[found[i]];
      if (std::any_of(outer.begin(), outer.end(),
                      [](const PatternNode* around) { return bare(around) == around; }))
        order.emplace_back(-most(found[i]), i, found[i]);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [weight, i, inner] : order) inner_.push_back(inner);
  }

  // The score of a whole match.
  static int most(const PatternNode* pattern) {
    int total = 0;
    std::unordered_set<const Node*> seen;
    walk_if(NodePtr(pattern), [&](const NodePtr& node) {
      if (node.as<NotPattern>() || !seen.insert(node.get()).second) return false;
      if (node.as<CallPattern>()) total += weight_of(operator_of(node.as<PatternNode>()));
      return true;
    });
    return total;
  }

  std::vector<Ref<Binding>> roots_of(const PatternNode* pattern) const {
    const auto operators = root_operators(DFPattern(PatternPtr(pattern)));
    if (!operators) return index_.bindings;
    std::vector<Ref<Binding>> out;
    for (const OpDef* op : *operators) {
      const auto found = index_.by_operator.find(op);
      if (found != index_.by_operator.end())
        out.insert(out.end(), found->second.begin(), found->second.end());
    }
    return out;
  }

  static Progress progress_of(const Match& match) {
    Progress out;
    for (const Ref<Binding>& binding : match.bindings) out.add(*binding);
    return out;
  }

  // Calls, tuples and items that take `pattern` as an input.
  std::vector<const PatternNode*> users_of(const PatternNode* pattern) const {
    std::vector<const PatternNode*> out, todo{pattern};
    std::unordered_set<const Node*> seen;
    while (!todo.empty()) {
      const auto outer = outer_.find(todo.back());
      todo.pop_back();
      if (outer == outer_.end()) continue;
      for (const PatternNode* at : outer->second) {
        if (!seen.insert(at).second) continue;
        const NodePtr node(at);
        const bool takes =
            node.as<CallPattern>() || node.as<TuplePattern>() || node.as<TupleGetItemPattern>();
        (takes ? out : todo).push_back(at);
      }
    }
    return out;
  }

  // What is inside of the pattern matches where the pattern's root does not reach.
  void hold(const PatternNode* inner) {
    if (most(inner) <= best_.attempt.score) return;
    for (const Ref<Binding>& root : roots_of(inner)) {
      if (root->match) continue;
      if (index_.steps > kMostSteps) return;
      MatchRun run(index_, &best_.attempt);
      const int before = best_.attempt.score;
      if (run.match(DFPattern(PatternPtr(inner)), root->var)) {
        const Progress progress = progress_of(run.result());
        if (progress.score > before) note_users(inner, root, run, progress);
      } else if (best_.attempt.score > before) {
        best_.at = root;
      }
    }
  }

  // It matches at `root`: why does what stands around it not?
  void note_users(const PatternNode* inner, const Ref<Binding>& root, const MatchRun& run,
                  const Progress& progress) {
    const std::vector<const PatternNode*> expected = users_of(inner);
    std::string seen, words;
    for (const PatternNode* pattern : expected) {
      words += (words.empty() ? "" : " or ") + wanted(pattern);
      const OpDef* op = operator_of(pattern);
      for (const Node* user : index_.users_of(root->var)) {
        if (!user) continue;
        const Ref<Binding>& binding = index_.definitions.at(user).binding;
        const auto* call = binding->value.as<Call>();
        if (!op || !call || call->op != op) continue;
        // The right user, which differs in something else.
        FailedAttempt attempt;
        MatchRun above(index_, &attempt);
        if (above.match(DFPattern(PatternPtr(pattern)), binding->var)) return;
        const int score = progress.score + weight_of(op);
        if (score <= best_.attempt.score) return;
        best_ = {{score, progress.operators + 1, attempt.why, attempt.seen}, binding};
        return;
      }
    }
    std::vector<std::string> users;
    for (const Node* user : index_.users_of(root->var)) {
      const std::string text =
          user ? "used by " + run.describe(index_.definitions.at(user).binding->var)
               : "a result of the function";
      if (std::find(users.begin(), users.end(), text) == users.end()) users.push_back(text);
    }
    for (const std::string& user : users) seen += (seen.empty() ? "" : " and ") + user;
    if (seen.empty()) seen = "used by nothing";
    best_ = {{progress.score, progress.operators,
              fmt::format("{} is {}, and {}by {} in the pattern", run.describe(root->var), seen,
                          seen.starts_with("used by") ? "" : "used ", words),
              root->var},
             root};
  }

  DFPattern pattern_;
  Matcher::Index index_;
  std::vector<const PatternNode*> inner_;
  std::unordered_map<const Node*, std::vector<const PatternNode*>> outer_;
  Best best_;
};

namespace {

// Operators that the pattern names and the function does not have.
std::string absent(const IRModule& module, const DFPattern& pattern) {
  std::unordered_set<const OpDef*> present;
  bool has_kernels = false;
  for (const auto& [name, function] : module.functions())
    walk<Call>(function, [&](const Call& call) {
      if (!call.op) return;
      present.insert(call.op);
      has_kernels |= call.is("call_tir");
    });
  std::vector<std::string> names;
  walk<OpPattern>(pattern, [&](const OpPattern& op) {
    const std::string name = fmt::format("`{}`", op.op->name);
    if (!present.count(op.op) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  });
  if (names.empty()) return {};
  std::string text = "the module has no ";
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and no " : ", no ") + names[i];
  if (has_kernels) text += " (operators that are kernels already are `call_tir`)";
  return text;
}

}  // namespace

std::string NearMiss::text() const {
  if (!at) return why;
  return fmt::format("{} of {} operator{} match{}: {}", matched, calls, calls == 1 ? "" : "s",
                     matched == 1 ? "es" : "", why);
}

static std::optional<NearMiss> nearest(const IRModule& module,
                                       const std::vector<Ref<Function>>& functions,
                                       const std::vector<std::string>& names,
                                       const DFPattern& pattern) {
  check(static_cast<bool>(pattern), "a near miss of no pattern");
  NearMiss out;
  int score = 0;
  for (size_t i = 0; i < functions.size(); ++i) {
    NearestMiss search(module, *functions[i], pattern);
    if (!search.run()) return std::nullopt;
    const NearestMiss::Best& best = search.best();
    if (!best.at || best.attempt.score <= score) continue;
    score = best.attempt.score;
    out = {.function = names[i],
           .at = best.at,
           .matched = best.attempt.matched,
           .why = best.attempt.why,
           .origin = search.origin()};
  }
  out.calls = pattern_size(pattern);
  const std::string missing = absent(module, pattern);
  if (!out.at)
    out.why = missing.empty() ? "no operator of the module is like its root" : missing;
  else if (!missing.empty())
    out.why += "; " + missing;
  return out;
}

std::optional<NearMiss> nearest_miss(const IRModule& module, const DFPattern& pattern) {
  std::vector<Ref<Function>> functions;
  std::vector<std::string> names;
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<Function>(base);
    if (!function || function->attrs.contains("Pattern") || function->attrs.contains("Composite") ||
        function->attrs.flag("Primitive") || !backend_of(*function).empty())
      continue;
    functions.push_back(function);
    names.push_back(name);
  }
  return nearest(module, functions, names, pattern);
}

std::optional<NearMiss> nearest_miss(const IRModule& module, const Function& function,
                                     const DFPattern& pattern) {
  return nearest(module, {Ref<Function>(&function)}, {""}, pattern);
}

}  // namespace tenon::graph
