// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/rewriter.h"

#include <algorithm>
#include <map>

#include "tenon/graph/infer.h"
#include "tenon/graph/patterns/near_miss.h"
#include "tenon/graph/remove_unused.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

/// An expression is replaced where its root is bound; several results together where they stand.
struct PatternRewriter::Rule {
  DFPattern pattern;
  /// For each output of a match what stands for it; null or empty: nothing changes. A call of
  /// another function of `helpers` is by its name there.
  std::function<std::vector<Value>(const Value& value, const Match& match)> values;
  IRModule helpers = {};
  std::string name = {};
  Origin origin = {};
  /// For each operand of the root that is a call: its operators.
  std::vector<std::vector<const OpDef*>> operands = {};

  /// False where an operand is none of the call's: most attempts end here.
  bool may_match(const Matcher& matcher, const Call& call) const {
    const auto is_by = [&](const Value& arg, const std::vector<const OpDef*>& operators) {
      const Ref<Binding> binding = matcher.binding_of(arg);
      const Value& value = binding ? binding->value : arg;
      // A name or an item may stand for what a call gives.
      const auto* operand = value.as<Call>();
      if (!operand) return value.as<TupleGetItem>() || (binding && value.as<Var>());
      return std::find(operators.begin(), operators.end(), operand->op) != operators.end();
    };
    return std::all_of(operands.begin(), operands.end(), [&](const auto& operators) {
      return std::any_of(call.args.begin(), call.args.end(),
                         [&](const Value& arg) { return is_by(arg, operators); });
    });
  }

  bool is_tuple() const {
    const auto* graph = pattern.as<GraphPattern>();
    return graph && graph->results.size() > 1;
  }
};

namespace {

using Replacements = std::vector<std::pair<Ref<Var>, Value>>;

// Bindings, without those inside of branches and functions.
int64_t count_bindings(const SeqExpr& body) {
  int64_t total = 0;
  walk<BindingBlock>(ref_to(&body), [&](const BindingBlock& block) {
    total += static_cast<int64_t>(block.bindings.size());
  });
  return total;
}

CompileError endless(const Function& function, const Origin& pattern, const std::string& how) {
  CompileError error(kEndlessRewrite, function.origin,
                     "rewriting a function {}; does the replacement contain its own pattern?", how);
  if (pattern) error.note(pattern, "the pattern is here");
  return error;
}

// Binds what is no leaf, argument by argument; a node that stands in several places once.
class Emitter {
 public:
  Emitter(const IRModule* module, bool is_dataflow) : module_(module), is_dataflow_(is_dataflow) {}

  /// The place that is given to what is bound from now on.
  Origin origin;

  std::vector<Ref<Binding>> take() { return std::exchange(bindings_, {}); }

  /// The value with leaves as arguments.
  Value flat(const Value& value, const std::string& name) {
    const auto leaves = [&](const std::vector<Value>& values) {
      std::vector<Value> out;
      for (const Value& item : values) out.push_back(leaf(item, name));
      return out;
    };
    if (const auto* tuple = value.as<Tuple>())
      return make<Tuple>(leaves(tuple->values), tuple->origin);
    if (const auto* get = value.as<TupleGetItem>()) {
      const Value tuple = leaf(get->tuple, name);
      const auto* items = tuple.as<Tuple>();
      if (items && get->index >= 0 && get->index < static_cast<int64_t>(items->values.size()))
        return items->values[static_cast<size_t>(get->index)];
      return make<TupleGetItem>(tuple, get->index, get->origin);
    }
    if (const auto* call = value.as<Call>()) {
      std::vector<Value> args = leaves(call->args);
      return call->op
                 ? make<Call>(call->op, std::move(args), call->attrs, call->type_args, call->origin)
                 : make<Call>(call->callee, std::move(args), call->attrs, call->type_args,
                              call->origin);
    }
    return value;
  }

  Value leaf(const Value& value, const std::string& name) {
    if (!value) return value;
    const auto known = known_.find(value.get());
    if (known != known_.end()) return known->second.second;
    Value out = flat(value, name);
    if (!is_leaf(out)) {
      const Type type = module_ ? type_of(out, *module_) : type_of(out);
      const auto var = make<Var>(name, type, is_dataflow_, origin);
      bindings_.push_back(make<Binding>(var, out, Type(), origin));
      out = var;
    }
    known_.emplace(value.get(), std::pair(value, out));
    return out;
  }

 private:
  std::unordered_map<const Node*, std::pair<Value, Value>> known_;  // the first keeps the key alive
  const IRModule* module_;
  bool is_dataflow_;
  std::vector<Ref<Binding>> bindings_;
};

}  // namespace

/// One function while it is rewritten.
class RewriteRun {
 public:
  RewriteRun(const PatternRewriter& rewriter, const IRModule* module, const RewriteOptions& options)
      : rewriter_(rewriter),
        rules_(rewriter.rules_),
        module_(module),
        options_(options),
        counts_(rules_.size()) {}

  /// The module to which helpers of replacements are added; null: such a rule is an error.
  IRModule* target = nullptr;
  const std::vector<int>& counts() const { return counts_; }

  Ref<Function> run(Ref<Function> function) {
    const int64_t most = 16 * (count_bindings(*function->body) + 64);
    for (int round = 0; round < options_.max_rounds; ++round) {
      Ref<Function> next = once(function);
      if (next.same_as(function)) return function;
      next = remove_unused(next);
      if (structural_equal(next, function)) return function;
      function = next;
      if (count_bindings(*function->body) > most)
        throw endless(*function, last_, "makes it ever larger");
    }
    throw endless(*function, last_, fmt::format("has no end after {} rounds", options_.max_rounds));
  }

 private:
  Ref<Function> once(const Ref<Function>& function) {
    Matcher matcher(module_, *function);
    matcher_ = &matcher;
    replaced_.clear();
    changed_ = false;
    Ref<SeqExpr> body = sequence(function->body);
    if (!changed_) {
      body = together(function->body);
      if (!changed_) return function;
    }
    Ref<Function> out = function->with_body(substitute(body, replaced_));
    if (!out->result || structural_equal(type_of(out->body->body), out->result)) return out;
    return with(*out, [&](Function& copy) {  // a result of which more is known now
      copy.result = type_of(out->body->body);
    });
  }

  // -- expressions
  Ref<SeqExpr> sequence(const Ref<SeqExpr>& seq) {
    std::vector<Ref<BindingBlock>> blocks;
    for (const Ref<BindingBlock>& block : seq->blocks) {
      std::vector<Ref<Binding>> bindings;
      for (const Ref<Binding>& binding : block->bindings)
        this->binding(binding, block->is_dataflow, bindings);
      blocks.push_back(make<BindingBlock>(std::move(bindings), block->is_dataflow, block->origin));
    }
    return make<SeqExpr>(std::move(blocks), seq->body, seq->origin);
  }

  void binding(const Ref<Binding>& given, bool is_dataflow, std::vector<Ref<Binding>>& out) {
    const bool is_branch = given->value.as<If>() != nullptr;
    const auto rewrite =
        is_branch || given->match ? std::nullopt : rewriter_.at(*matcher_, given->var);
    if (!rewrite) {
      out.push_back(in_branches(given, &RewriteRun::sequence));
      return;
    }
    Emitter emitter(module_, is_dataflow);
    emitter.origin = given->origin;
    const Value replacement = with_helpers(*rules_[rewrite->rule], rewrite->value);
    const Value value = substitute(emitter.flat(replacement, given->var->name), replaced_);
    for (const Ref<Binding>& helper : emitter.take()) {
      out.push_back(substitute(helper, replaced_));
      matcher_->redefine(out.back());
    }
    note(rewrite->rule);
    put(given, value, out);
  }

  // `value` in the place of what `given` binds.
  void put(const Ref<Binding>& given, const Value& value, std::vector<Ref<Binding>>& out) {
    const Type type = module_ ? type_of(value, *module_) : type_of(value);
    check_type(*given->var, type, value);
    const auto* alias = value.as<Var>();
    const bool is_leaf_here = is_leaf(value) && !value.as<Tuple>() && !value.as<TupleGetItem>();
    if (is_leaf_here && (given->var->is_dataflow || !alias || !alias->is_dataflow)) {
      replaced_[given->var.get()] = value;
      matcher_->redefine(make<Binding>(given->var, value, Type(), given->origin));
      return;
    }
    Ref<Var> var = given->var;
    if (!structural_equal(type, var->type)) {
      var = make<Var>(var->name, type, var->is_dataflow, var->origin);
      replaced_[given->var.get()] = var;
    }
    out.push_back(make<Binding>(var, value, Type(), given->origin));
    matcher_->redefine(out.back());
    if (!var.same_as(given->var))
      matcher_->redefine(make<Binding>(given->var, var, Type(), given->origin));
  }

  void check_type(const Var& var, const Type& type, const Value& value) const {
    if (is_subtype(type, var.type) || is_subtype(var.type, type)) return;
    throw CompileError(kTypeMismatch, value->origin ? value->origin : var.origin,
                       "a replacement is {} and stands for `{}`, which is {}", str(type), var.name,
                       str(var.type));
  }

  void note(size_t rule) {
    changed_ = true;
    ++counts_[rule];
    last_ = rules_[rule]->origin;
  }

  // -- several results together, within one block
  Ref<SeqExpr> together(const Ref<SeqExpr>& seq) {
    std::vector<Ref<BindingBlock>> blocks = seq->blocks;
    bool changed = false;
    for (Ref<BindingBlock>& block : blocks) {
      Ref<BindingBlock> next = in_branches(block);
      if (next.same_as(block)) next = together(block);  // else in the next round
      changed |= !next.same_as(block);
      block = next;
    }
    if (!changed) return seq;
    return make<SeqExpr>(std::move(blocks), seq->body, seq->origin);
  }

  // `given` with its branches, where it has some, rewritten.
  Ref<Binding> in_branches(const Ref<Binding>& given,
                           Ref<SeqExpr> (RewriteRun::*rewrite)(const Ref<SeqExpr>&)) {
    const auto* branch = given->value.as<If>();
    if (!branch) return given;
    const Ref<SeqExpr> then_branch = (this->*rewrite)(branch->then_branch);
    const Ref<SeqExpr> else_branch = (this->*rewrite)(branch->else_branch);
    if (then_branch.same_as(branch->then_branch) && else_branch.same_as(branch->else_branch))
      return given;
    return make<Binding>(given->var,
                         make<If>(branch->condition, then_branch, else_branch, branch->origin),
                         given->match, given->origin);
  }

  Ref<BindingBlock> in_branches(const Ref<BindingBlock>& block) {
    std::vector<Ref<Binding>> bindings = block->bindings;
    bool changed = false;
    for (Ref<Binding>& binding : bindings) {
      const Ref<Binding> next = in_branches(binding, &RewriteRun::together);
      changed |= !next.same_as(binding);
      binding = next;
    }
    if (!changed) return block;
    return make<BindingBlock>(std::move(bindings), block->is_dataflow, block->origin);
  }

  Ref<BindingBlock> together(const Ref<BindingBlock>& block) {
    const std::vector<Group> groups = matches_in(*block);
    Replacements all;
    for (const Group& group : groups)
      all.insert(all.end(), group.values.begin(), group.values.end());
    if (all.empty()) return block;
    if (const auto next = replaced(*block, all)) {
      for (const Group& group : groups) note(group.rule);
      return *next;
    }
    // One at a time, where they would wait for each other.
    for (const Group& group : groups) {
      const auto next = replaced(*block, group.values);
      if (!next) continue;
      note(group.rule);
      return *next;
    }
    return block;
  }

  struct Group {
    size_t rule;
    Replacements values;
  };
  // Matches of rules with several results, no two with a binding in common.
  std::vector<Group> matches_in(const BindingBlock& block) {
    std::vector<Group> groups;
    std::unordered_map<const Node*, bool> is_free;
    for (const Ref<Binding>& binding : block.bindings) is_free[binding->var.get()] = true;
    for (size_t i = 0; i < rules_.size(); ++i) {
      const PatternRewriter::Rule& rule = *rules_[i];
      if (!rule.is_tuple()) continue;
      for (const Ref<Binding>& root : block.bindings) {
        const auto match = matcher_->match(rule.pattern, root);
        const bool fits = match && std::all_of(match->bindings.begin(), match->bindings.end(),
                                               [&](const auto& part) {
                                                 const auto found = is_free.find(part->var.get());
                                                 return found != is_free.end() && found->second;
                                               });
        if (!fits) continue;
        const std::vector<Value> values = rule.values(root->value, *match);
        if (values.size() != match->outputs.size()) continue;
        Group group{i, {}};
        for (size_t k = 0; k < values.size(); ++k)
          group.values.emplace_back(match->outputs[k], with_helpers(rule, values[k]));
        groups.push_back(std::move(group));
        for (const Ref<Binding>& part : match->bindings) is_free[part->var.get()] = false;
      }
    }
    return groups;
  }

  // Calls of functions that came with the replacement, by the names that they get in the module.
  Value with_helpers(const PatternRewriter::Rule& rule, const Value& value) {
    if (rule.helpers.size() == 0) return value;
    return rewrite(value, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* ref = node.as<FuncRef>();
      const BaseFunc function = ref ? rule.helpers.find(ref->name) : BaseFunc();
      if (!function) return std::nullopt;
      if (!target)
        throw CompileError(kBadPattern, ref->origin,
                           "a replacement calls `{}`, for which there is no module", ref->name);
      std::string& name = helper_names_[function.get()];
      if (name.empty()) {
        const BaseFunc known = target->find(ref->name);
        name = known && structural_equal(known, function) ? ref->name
                                                          : target->add_unique(ref->name, function);
      }
      return make<FuncRef>(name, ref->origin);
    });
  }

 public:
  /// `block` with the variables bound to other values, in an order in which each is defined before
  /// it is used; nothing where there is none.
  std::optional<Ref<BindingBlock>> replaced(const BindingBlock& block,
                                            const Replacements& replacements) const {
    std::unordered_map<const Node*, Value> values;
    for (const auto& [var, value] : replacements) {
      const auto [known, is_new] = values.emplace(var.get(), value);
      if (!is_new && !structural_equal(known->second, value))
        throw CompileError(kBadPattern, value->origin,
                           "a replacement gives two different values for `{}`, which its pattern "
                           "gives twice",
                           var->name)
            .note(known->second->origin, "the other value is here")
            .note(var->origin, "`{}` is here", var->name);
    }
    std::vector<Ref<Binding>> bindings;
    Emitter emitter(module_, block.is_dataflow);
    for (const Ref<Binding>& binding : block.bindings) {
      const auto found = values.find(binding->var.get());
      if (found == values.end()) {
        bindings.push_back(binding);
        continue;
      }
      emitter.origin = binding->origin;
      const Value value = emitter.flat(found->second, binding->var->name);
      const Type type = module_ ? type_of(value, *module_) : type_of(value);
      check_type(*binding->var, type, value);
      for (const Ref<Binding>& helper : emitter.take()) bindings.push_back(helper);
      bindings.push_back(make<Binding>(binding->var, value, Type(), binding->origin));
    }
    const auto order = sorted(bindings);
    if (!order) return std::nullopt;
    return make<BindingBlock>(*order, block.is_dataflow, block.origin);
  }

 private:
  // By their uses; where these leave a choice, as they stand.
  static std::optional<std::vector<Ref<Binding>>> sorted(
      const std::vector<Ref<Binding>>& bindings) {
    std::unordered_map<const Node*, size_t> index;
    for (size_t i = 0; i < bindings.size(); ++i) index[bindings[i]->var.get()] = i;
    std::vector<Ref<Binding>> out;
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(bindings.size(), kNew);
    std::vector<size_t> stack;
    for (size_t first = 0; first < bindings.size(); ++first) {
      stack.push_back(first);
      while (!stack.empty()) {
        const size_t at = stack.back();
        if (state[at] == kDone) {
          stack.pop_back();
          continue;
        }
        const bool again = state[at] == kOpen;
        state[at] = kOpen;
        bool waits = false;
        bool cycle = false;
        walk<Var>(bindings[at]->value, [&](const Var& var) {
          const auto used = index.find(&var);
          if (used == index.end() || state[used->second] == kDone) return;
          cycle |= again || state[used->second] == kOpen;
          waits = true;
          stack.push_back(used->second);
        });
        if (cycle) return std::nullopt;
        if (waits) continue;
        stack.pop_back();
        state[at] = kDone;
        out.push_back(bindings[at]);
      }
    }
    return out;
  }

  const PatternRewriter& rewriter_;
  const std::vector<std::shared_ptr<const PatternRewriter::Rule>>& rules_;
  const IRModule* module_;
  const RewriteOptions& options_;
  std::vector<int> counts_;
  Matcher* matcher_ = nullptr;
  Substitution replaced_;
  std::unordered_map<const Node*, std::string> helper_names_;
  bool changed_ = false;
  Origin last_;
};

// ---- what others call -------------------------------------------------------------------------

Ref<Function> rewrite_bindings(const PatternContext& context, const BindingsRule& rule,
                               const Ref<Function>& given, const IRModule* module,
                               const RewriteOptions& options) {
  Ref<Function> function = given;
  const PatternRewriter none;
  const RewriteRun run(none, module, options);
  const int64_t begun = count_bindings(*function->body);
  const int64_t most_rounds = options.max_rounds + begun, most = 16 * (begun + 64);
  for (int64_t round = 0;; ++round) {
    if (round > most_rounds)
      throw endless(*function, {}, fmt::format("has no end after {} rounds", round));
    const Matcher matcher(module, *function);
    std::vector<Ref<BindingBlock>> blocks = function->body->blocks;
    bool changed = false;
    for (Ref<BindingBlock>& block : blocks) {
      if (!block->is_dataflow) continue;
      const auto match = matcher.match_dfb(context, *block);
      if (!match) continue;
      const Replacements replacements = rule(*match);
      if (replacements.empty()) continue;
      const auto next = run.replaced(*block, replacements);
      if (!next)
        throw CompileError(kBadPattern, replacements[0].second->origin,
                           "a replacement of `{}` needs what is computed from it",
                           replacements[0].first->name);
      block = *next;
      changed = true;
    }
    if (!changed) return function;
    const Ref<Function> next = remove_unused(function->with_body(
        make<SeqExpr>(std::move(blocks), function->body->body, function->body->origin)));
    if (structural_equal(next, function)) return function;
    function = next;
    if (count_bindings(*function->body) > most)
      throw endless(*function, {}, "makes it ever larger");
  }
}

PatternRewriter PatternRewriter::from_pattern(DFPattern pattern, CallRule rule) {
  Rule made;
  made.origin = pattern->origin;
  made.pattern = std::move(pattern);
  made.values = [rule = std::move(rule)](const Value& value, const Match& match) {
    return std::vector<Value>{rule(value, match)};
  };
  return PatternRewriter().add(std::move(made));
}

namespace {

// The body of `replacement` on the inputs of a match, as trees over them.
std::vector<Value> inlined(const Function& replacement, const Match& match) {
  Substitution values;
  for (size_t i = 0; i < replacement.params.size(); ++i) {
    const Value argument = match.inputs[i].argument;
    unify(replacement.params[i]->type, type_of(argument), values);
    values[replacement.params[i].get()] = argument;
  }
  for (const Ref<BindingBlock>& block : replacement.body->blocks)
    for (const Ref<Binding>& binding : block->bindings)
      values[binding->var.get()] = substitute(binding->value, values);
  const Value result = substitute(replacement.body->body, values);
  const auto* tuple = result.as<Tuple>();
  return tuple ? tuple->values : std::vector<Value>{result};
}

}  // namespace

PatternRewriter PatternRewriter::from_module(const IRModule& module) {
  const auto pattern = module.find<Function>("pattern");
  const auto replacement = module.find<Function>("replacement");
  if (!pattern || !replacement)
    throw CompileError(kBadPattern, {},
                       "a rewriter without graph function `{}`; expected `pattern` and "
                       "`replacement`",
                       pattern ? "replacement" : "pattern");
  if (pattern->params.size() != replacement->params.size())
    throw CompileError(kBadPattern, replacement->origin,
                       "`replacement` has {} parameters and `pattern` {}; expected one signature",
                       replacement->params.size(), pattern->params.size())
        .note(pattern->origin, "`pattern` is here");
  walk<Binding>(replacement->body, [&](const Binding& binding) {
    if (binding.match || binding.value.as<If>() || binding.value.as<FunctionValue>())
      throw CompileError(kBadPattern, binding.origin,
                         "`replacement` has control flow; expected calls only");
  });
  Rule rule;
  rule.pattern =
      pattern_from_function("pattern", *pattern, {.exclusive = false, .module = &module});
  const auto* graph = rule.pattern.as<GraphPattern>();
  const Type result = type_of(replacement->body->body);
  const auto* tuple = result.as<TupleType>();
  const size_t items = tuple && graph->tuple ? tuple->types.size() : 1;
  if (items != graph->results.size() || (tuple != nullptr) != graph->tuple)
    throw CompileError(kBadPattern, replacement->origin,
                       "`replacement` returns {} and `pattern` {}; expected one signature",
                       str(result), str(type_of(pattern->body->body)))
        .note(pattern->origin, "`pattern` is here");
  for (const auto& [name, function] : module.functions())
    if (name != "pattern" && name != "replacement") rule.helpers.set(name, function);
  rule.origin = pattern->origin;
  rule.values = [replacement, items](const Value&, const Match& match) {
    std::vector<Value> values = inlined(*replacement, match);
    if (values.size() == items) return values;
    // A tuple that a call gives.
    const Value whole = values[0];
    values.clear();
    for (size_t i = 0; i < items; ++i)
      values.push_back(make<TupleGetItem>(whole, static_cast<int64_t>(i)));
    return values;
  };
  return PatternRewriter().add(std::move(rule));
}

PatternRewriter& PatternRewriter::add(Rule rule) {
  const size_t number = rules_.size();
  PatternPtr root = rule.pattern;
  if (const auto* graph = root.as<GraphPattern>()) root = graph->results[0];
  while (const PatternPtr inner = conditioned(root)) root = inner;
  const auto* call = root.as<CallPattern>();
  rule.operands.clear();
  for (const PatternPtr& arg : call && call->args ? *call->args : std::vector<PatternPtr>())
    if (auto operators = root_operators(arg)) rule.operands.push_back(std::move(*operators));
  const auto operators = root_operators(root);
  rules_.push_back(std::make_shared<const Rule>(std::move(rule)));
  if (rules_.back()->is_tuple()) return *this;
  if (!operators) {
    of_any_root_.push_back(number);
    for (auto& [op, numbers] : by_operator_) numbers.push_back(number);
    return *this;
  }
  for (const OpDef* op : *operators)
    by_operator_.try_emplace(op, of_any_root_).first->second.push_back(number);
  return *this;
}

std::optional<PatternRewriter::Rewrite> PatternRewriter::at(const Matcher& matcher,
                                                            const Value& root) const {
  const Ref<Binding> binding = matcher.binding_of(root);
  const Value& value = binding ? binding->value : root;
  const auto* call = value.as<Call>();
  const auto found = call ? by_operator_.find(call->op) : by_operator_.end();
  for (const size_t i : found == by_operator_.end() ? of_any_root_ : found->second) {
    const Rule& rule = *rules_[i];
    if (call && !rule.may_match(matcher, *call)) continue;
    std::vector<Value> values;
    const auto match = matcher.match(rule.pattern, root, nullptr, [&](const Match& match) {
      std::vector<Value> given = rule.values(value, match);
      if (given.empty() || !given[0]) return false;
      values = std::move(given);
      return true;
    });
    if (match && !values[0].same_as(value) && !values[0].same_as(root) &&
        !structural_equal(values[0], value))
      return Rewrite{i, rule.name, values[0]};
  }
  return std::nullopt;
}

PatternRewriter PatternRewriter::operator|(const PatternRewriter& other) const {
  PatternRewriter out = *this;
  for (const auto& rule : other.rules_) out.add(*rule);
  return out;
}

PatternRewriter PatternRewriter::named(const std::string& name) const {
  PatternRewriter out;
  for (const auto& rule : rules_) {
    Rule copy = *rule;
    copy.name = name;
    out.add(std::move(copy));
  }
  return out;
}

Ref<Function> PatternRewriter::operator()(const Ref<Function>& function, const IRModule* module,
                                          const RewriteOptions& options) const {
  return RewriteRun(*this, module, options).run(function);
}

IRModule PatternRewriter::operator()(IRModule module, const RewriteOptions& options) const {
  std::vector<int> counts(rules_.size());
  const IRModule before = module;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function) continue;
    RewriteRun run(*this, &module, options);
    run.target = &module;
    module.set(name, run.run(function));
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += run.counts()[i];
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    std::optional<NearMiss> miss;
    if (!counts[i]) miss = nearest_miss(before, rules_[i]->pattern);
    record({"RewritePatterns",
            rules_[i]->name.empty() ? fmt::format("rule {}", i + 1) : rules_[i]->name,
            counts[i] ? "rewritten" : "unmatched",
            "",
            {{"times", static_cast<double>(counts[i])}},
            miss ? miss->text() : "",
            rules_[i]->origin});
  }
  return module;
}

}  // namespace tenon::graph
