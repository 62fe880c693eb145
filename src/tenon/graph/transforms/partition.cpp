// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/partition.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tenon/graph/dimensions.h"
#include "tenon/graph/op.h"

namespace tenon::graph {

static constexpr size_t kNone = static_cast<size_t>(-1);

// Whether evaluating it may do more than give its value. Calls of functions of the module are as
// pure as these say.
static bool has_effect(const IRModule& module, const Binding& binding) {
  if (binding.match) return true;  // it may stop the program
  bool effect = false;
  walk<Call>(binding.value, [&](const Call& call) {
    if (call.op) {
      effect |= !call.op->pure;
      return;
    }
    const auto* ref = call.callee.as<FuncRef>();
    const auto function = ref ? module.find<Function>(ref->name) : nullptr;
    effect |= !function || !function->pure;
  });
  return effect;
}

BlockPartition::BlockPartition(const IRModule& module, const BindingBlock& block) {
  const size_t count = block.bindings.size();
  uses_.resize(count);
  users_.resize(count);
  members_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    parent_.push_back(i);
    position_.push_back(i);
    order_.push_back(i);
    members_[i] = {i};
  }
  std::unordered_map<const Node*, size_t> dimensions;  // by what a match_cast defines
  size_t last_effect = kNone;
  for (size_t i = 0; i < count; ++i) {
    const Binding& binding = *block.bindings[i];
    std::set<size_t> used;
    const auto look = [&](const NodePtr& node) {
      if (!node) return;
      walk(node, [&](const NodePtr& inner) {
        if (inner.as<Var>()) {
          const auto found = index_.find(inner.get());
          if (found != index_.end()) used.insert(found->second);
        } else if (inner.as<tenon::Var>()) {
          const auto found = dimensions.find(inner.get());
          if (found != dimensions.end()) used.insert(found->second);
        }
      });
    };
    look(binding.value);
    look(binding.match);
    look(binding.var->type);
    // Within a dataflow block nothing has an effect but checks, which define dimensions.
    if (block.is_dataflow ? static_cast<bool>(binding.match) : has_effect(module, binding)) {
      if (last_effect != kNone) used.insert(last_effect);
      last_effect = i;
    }
    if (binding.match)
      walk<tenon::Var>(binding.match, [&](const tenon::Var& dim) { dimensions.emplace(&dim, i); });
    used.erase(i);
    for (const size_t u : used) {
      uses_[i].push_back(u);
      users_[u].push_back(i);
    }
    index_[binding.var.get()] = i;
  }
}

std::optional<size_t> BlockPartition::index_of(const Node* var) const {
  const auto found = index_.find(var);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

size_t BlockPartition::group_of(size_t binding) const {
  while (parent_[binding] != binding) {
    parent_[binding] = parent_[parent_[binding]];
    binding = parent_[binding];
  }
  return binding;
}

// The order is kept as bindings are taken together (as by Pearce and Kelly, "A dynamic topological
// sort algorithm", 2006): only what stands between the first and the last of them can be on a path
// from one to another, and only that moves.
bool BlockPartition::merge(const std::vector<size_t>& bindings) {
  std::set<size_t> merged;
  for (const size_t binding : bindings) merged.insert(group_of(binding));
  if (merged.size() < 2) return true;
  size_t first = kNone, last = 0;
  for (const size_t group : merged) {
    first = std::min(first, position_[group]);
    last = std::max(last, position_[group]);
  }
  std::unordered_set<size_t> after;  // groups outside that depend on one of the merged
  std::vector<size_t> open(merged.begin(), merged.end());
  while (!open.empty()) {
    const size_t group = open.back();
    open.pop_back();
    const bool inside = merged.count(group) != 0;
    for (const size_t member : members_[group])
      for (const size_t user : users_[member]) {
        const size_t next = group_of(user);
        if (next == group) continue;
        if (merged.count(next)) {
          if (!inside) return false;
          continue;
        }
        if (position_[next] < last && after.insert(next).second) open.push_back(next);
      }
  }
  const size_t representative = *merged.begin();
  std::vector<size_t> before_all, after_all;
  for (size_t p = first; p <= last; ++p) {
    const size_t group = order_[p];
    if (group == kNone || merged.count(group)) continue;
    (after.count(group) ? after_all : before_all).push_back(group);
  }
  std::vector<size_t> members;
  for (const size_t group : merged) {
    members.insert(members.end(), members_[group].begin(), members_[group].end());
    if (group != representative) members_[group].clear();
    parent_[group] = representative;
  }
  std::sort(members.begin(), members.end());
  members_[representative] = std::move(members);
  size_t p = first;
  const auto place = [&](size_t group) {
    order_[p] = group;
    position_[group] = p++;
  };
  for (const size_t group : before_all) place(group);
  place(representative);
  for (const size_t group : after_all) place(group);
  while (p <= last) order_[p++] = kNone;
  return true;
}

std::vector<std::vector<size_t>> BlockPartition::groups() const {
  std::vector<std::vector<size_t>> out;
  for (const size_t group : order_)
    if (group != kNone) out.push_back(members_[group]);
  return out;
}

void join_neighbours(const BindingBlock& block, std::vector<std::string>& kinds,
                     BlockPartition& partition) {
  const size_t count = block.bindings.size();
  // An item of a tuple depends on nothing else.
  for (size_t i = 0; i < count; ++i) {
    const auto* get = block.bindings[i]->value.as<TupleGetItem>();
    const auto source = get ? partition.index_of(get->tuple.get()) : std::nullopt;
    if (!source || kinds[*source].empty()) continue;
    if (partition.merge({*source, i})) kinds[i] = kinds[*source];
  }
  // Pairs until none is left: two that a path through something else connects can be in no group
  // together, whatever joins them later.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < count; ++i) {
      if (kinds[i].empty()) continue;
      for (const size_t used : partition.uses(i)) {
        if (kinds[used] != kinds[i] || partition.group_of(used) == partition.group_of(i)) continue;
        changed |= partition.merge({used, i});
      }
    }
  }
}

namespace {

/// Replaces what comes from outside by parameters.
class Outliner {
 public:
  Outliner(const std::vector<Ref<Binding>>& bindings, const OutlineOptions& options)
      : options_(options) {
    for (const Ref<Binding>& binding : bindings) inside_.insert(binding->var.get());
  }

  Value operator()(const Value& value) {
    if (!value) return value;
    if (value.as<Var>())
      return inside_.count(value.get()) ? renamed_.at(value.get()) : param(value);
    if (value.as<Constant>())
      return options_.constants == OutlineOptions::Constants::kLifted ? param(value) : value;
    if (const auto* tuple = value.as<Tuple>()) {
      std::vector<Value> items;
      for (const Value& item : tuple->values) items.push_back((*this)(item));
      return make<Tuple>(std::move(items), value->origin);
    }
    if (const auto* get = value.as<TupleGetItem>()) {
      if (const auto* tuple = get->tuple.as<Tuple>())
        return (*this)(tuple->values.at(static_cast<size_t>(get->index)));
      if (get->tuple.as<Var>() && !inside_.count(get->tuple.get())) return param(value);
      return make<TupleGetItem>((*this)(get->tuple), get->index, value->origin);
    }
    if (const auto* call = value.as<Call>()) {
      std::vector<Value> args;
      for (const Value& arg : call->args) args.push_back((*this)(arg));
      if (call->op)
        return make<Call>(call->op, std::move(args), call->attrs, call->type_args, call->origin);
      return make<Call>((*this)(call->callee), std::move(args), call->attrs, call->type_args,
                        call->origin);
    }
    return value;
  }

  void rename(const Ref<Var>& var, const Ref<Var>& inner) { renamed_[var.get()] = inner; }

  std::vector<Ref<Var>> params;
  std::vector<Value> arguments;

 private:
  Value param(const Value& value) {
    // A constant that several use, and an item of a tuple, is one parameter.
    auto& slot = value.as<Var>() ? by_var_[value.get()] : by_structure_[value];
    if (!slot) {
      const auto* var = value.as<Var>();
      std::string name = options_.param_name ? options_.param_name(params.size())
                         : var               ? var->name
                                             : fmt::format("param_{}", params.size());
      params.push_back(make<Var>(std::move(name), type_of(value)));
      arguments.push_back(value);
      slot = params.back();
    }
    return slot;
  }

  const OutlineOptions& options_;
  std::unordered_set<const Node*> inside_;
  std::unordered_map<const Node*, Value> renamed_, by_var_;
  std::unordered_map<NodePtr, Value, StructuralHash, StructuralEqual> by_structure_;
};

}  // namespace

Type type_of_outputs(const std::vector<Ref<Var>>& outputs) {
  if (outputs.size() == 1) return outputs[0]->type;
  std::vector<Type> types;
  for (const Ref<Var>& output : outputs) types.push_back(output->type);
  return make<TupleType>(std::move(types));
}

std::optional<OutlinedBindings> outline_bindings(const std::vector<Ref<Binding>>& bindings,
                                                 const std::vector<Ref<Var>>& outputs,
                                                 const OutlineOptions& options) {
  Outliner outliner(bindings, options);
  std::unordered_set<const Node*> given;
  for (const Ref<Var>& output : outputs) given.insert(output.get());
  std::vector<Ref<Binding>> body;
  std::vector<Origin> origins;
  for (const Ref<Binding>& binding : bindings) {
    const Value value = outliner(binding->value);
    const bool is_output = given.count(binding->var.get()) != 0;
    const auto var =
        make<Var>(binding->var->name, binding->var->type, !is_output, binding->var->origin);
    outliner.rename(binding->var, var);
    body.push_back(make<Binding>(var, value, binding->match, binding->origin));
    origins.push_back(binding->origin ? binding->origin : binding->value->origin);
  }
  std::vector<Value> results;
  for (const Ref<Var>& output : outputs) results.push_back(outliner(output));
  const Value result = results.size() == 1 ? results[0] : Value(make<Tuple>(results));
  const auto block = make<BindingBlock>(std::move(body), true);
  const Ref<Function> function = with(
      make<Function>(outliner.params, make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, result),
                     type_of_outputs(outputs), options.attrs, true, Origin::merge(origins)),
      [&](Function& made) { made.is_private = true; });
  const Ref<Function> shared = with_own_dimensions(function);
  if (!defines_dimensions(*shared)) return std::nullopt;
  return OutlinedBindings{renew_definitions(shared), std::move(outliner.arguments)};
}

std::vector<Ref<Var>> outputs_of(const BindingBlock& block, const BlockPartition& partition,
                                 const std::vector<size_t>& members,
                                 const std::unordered_set<const Node*>& escaping) {
  const std::unordered_set<size_t> inside(members.begin(), members.end());
  std::vector<Ref<Var>> outputs;
  for (const size_t member : members) {
    const Ref<Var>& var = block.bindings[member]->var;
    const auto& users = partition.users(member);
    if (escaping.count(var.get()) ||
        std::any_of(users.begin(), users.end(), [&](size_t user) { return !inside.count(user); }))
      outputs.push_back(var);
  }
  // What nobody uses still has a result.
  if (outputs.empty()) outputs.push_back(block.bindings[members.back()]->var);
  return outputs;
}

void bind_outputs(const std::vector<Ref<Var>>& outputs, Value call, const Type& type,
                  bool is_dataflow, const Origin& origin, std::vector<Ref<Binding>>& out) {
  if (outputs.size() == 1) {
    out.push_back(make<Binding>(outputs[0], std::move(call), Type(), origin));
    return;
  }
  const auto all = make<Var>(outputs.back()->name + "_all", type, is_dataflow);
  out.push_back(make<Binding>(all, std::move(call), Type(), origin));
  std::unordered_set<const Node*> bound;  // a pattern may return a value twice
  for (size_t i = 0; i < outputs.size(); ++i)
    if (bound.insert(outputs[i].get()).second)
      out.push_back(make<Binding>(outputs[i], make<TupleGetItem>(all, static_cast<int64_t>(i)),
                                  Type(), origin));
}

namespace {

class BlockRewriter {
 public:
  explicit BlockRewriter(const BlockRule& rule) : rule_(rule) {}

  Ref<SeqExpr> run(const Ref<SeqExpr>& seq) {
    std::vector<Ref<BindingBlock>> blocks;
    bool changed = false;
    for (const Ref<BindingBlock>& block : seq->blocks) {
      blocks.push_back(branches(block));
      changed |= !blocks.back().same_as(block);
    }
    // In which block a variable is bound, and which are used in another one.
    std::unordered_map<const Node*, size_t> home;
    for (size_t b = 0; b < blocks.size(); ++b)
      for (const Ref<Binding>& binding : blocks[b]->bindings) home[binding->var.get()] = b;
    std::unordered_set<const Node*> escaping;
    const auto look = [&](const NodePtr& root, size_t at) {
      walk<Var>(root, [&](const Var& var) {
        const auto found = home.find(&var);
        if (found != home.end() && found->second != at) escaping.insert(&var);
      });
    };
    for (size_t b = 0; b < blocks.size(); ++b) look(blocks[b], b);
    look(seq->body, kNone);
    for (Ref<BindingBlock>& block : blocks)
      if (const Ref<BindingBlock> next = rule_(*block, escaping)) {
        block = next;
        changed = true;
      }
    return changed ? make<SeqExpr>(std::move(blocks), seq->body, seq->origin) : seq;
  }

 private:
  Ref<BindingBlock> branches(const Ref<BindingBlock>& block) {
    std::vector<Ref<Binding>> bindings;
    bool changed = false;
    for (const Ref<Binding>& binding : block->bindings) {
      const auto* branch = binding->value.as<If>();
      const Ref<SeqExpr> then_branch = branch ? run(branch->then_branch) : nullptr;
      const Ref<SeqExpr> else_branch = branch ? run(branch->else_branch) : nullptr;
      if (!branch ||
          (then_branch.same_as(branch->then_branch) && else_branch.same_as(branch->else_branch))) {
        bindings.push_back(binding);
        continue;
      }
      changed = true;
      bindings.push_back(make<Binding>(
          binding->var, make<If>(branch->condition, then_branch, else_branch, branch->origin),
          binding->match, binding->origin));
    }
    return changed ? make<BindingBlock>(std::move(bindings), block->is_dataflow, block->origin)
                   : block;
  }

  const BlockRule& rule_;
};

}  // namespace

Ref<Function> rewrite_blocks(const Ref<Function>& function, const BlockRule& rule) {
  const Ref<SeqExpr> body = BlockRewriter(rule).run(function->body);
  return body.same_as(function->body) ? function : function->with_body(body);
}

std::string identifier(const std::string& text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

}  // namespace tenon::graph
