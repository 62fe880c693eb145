// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tenon/graph/builder.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

using Vars = std::set<const Node*>;

// The variables and the dimensions that a value refers to.
struct Uses {
  std::vector<const Var*> vars;
  std::vector<const tenon::Var*> dims;
};
Uses uses_of(const NodePtr& value) {
  Uses uses;
  walk(value, [&](const NodePtr& node) {
    if (const auto* var = node.as<Var>()) uses.vars.push_back(var);
    if (const auto* dim = node.as<tenon::Var>()) uses.dims.push_back(dim);
  });
  return uses;
}

/// What one function does with its weights.
struct Part {
  std::string name;
  Ref<Function> function;
  size_t inputs;  // the parameters in front of the weights
  std::vector<Ref<Binding>> lifted;

  std::vector<Ref<Var>> weights() const {
    return {function->params.begin() + static_cast<std::ptrdiff_t>(inputs), function->params.end()};
  }
};

// Values that depend on weights (and constants) alone, through pure operators.
void collect_lifted(Part& part) {
  Vars known, dims;
  for (const Ref<Var>& weight : part.weights()) {
    known.insert(weight.get());
    for (const tenon::Var* dim : uses_of(weight->type).dims) dims.insert(dim);
  }
  for (const Ref<BindingBlock>& block : part.function->body->blocks) {
    if (!block->is_dataflow) continue;
    for (const Ref<Binding>& binding : block->bindings) {
      const Value& value = binding->value;
      const auto* call = value.as<Call>();
      const bool is_pure = call ? call->op && call->op->pure
                                : value.as<Tuple>() || value.as<TupleGetItem>() || value.as<Var>();
      if (binding->match || !is_pure) continue;
      const Uses uses = uses_of(value), type = uses_of(binding->var->type);
      const auto defined = [&](const auto* dim) { return dims.count(dim) != 0; };
      if (uses.vars.empty() ||
          !std::all_of(uses.vars.begin(), uses.vars.end(),
                       [&](const Var* var) { return known.count(var) != 0; }) ||
          !std::all_of(uses.dims.begin(), uses.dims.end(), defined) ||
          !std::all_of(type.dims.begin(), type.dims.end(), defined))
        continue;
      known.insert(binding->var.get());
      part.lifted.push_back(binding);
    }
  }
}

// Keeps of all functions what each of them computes of the weights, in the first one's order.
void keep_common(std::vector<Part>& parts) {
  const Part& first = parts.front();
  std::vector<std::unordered_map<const Node*, Ref<Binding>>> same(parts.size());
  for (size_t p = 1; p < parts.size(); ++p) {
    std::unordered_map<NodePtr, Ref<Binding>, StructuralHash, StructuralEqual> by_value;
    for (const Ref<Binding>& binding : first.lifted) by_value.emplace(binding->value, binding);
    Substitution to_first;
    const std::vector<Ref<Var>> weights = parts[p].weights(), wanted = first.weights();
    for (size_t i = 0; i < weights.size(); ++i) {
      to_first.emplace(weights[i].get(), wanted[i]);
      unify(weights[i]->type, wanted[i]->type, to_first);
    }
    for (const Ref<Binding>& binding : parts[p].lifted) {
      const auto found = by_value.find(substitute(binding->value, to_first));
      if (found == by_value.end()) continue;
      to_first.emplace(binding->var.get(), found->second->var);
      same[p].emplace(found->second->var.get(), binding);
    }
  }
  std::vector<std::vector<Ref<Binding>>> common(parts.size());
  for (const Ref<Binding>& binding : first.lifted) {
    const Node* var = binding->var.get();
    if (!std::all_of(same.begin() + 1, same.end(), [&](const auto& m) { return m.count(var); }))
      continue;
    common[0].push_back(binding);
    for (size_t p = 1; p < parts.size(); ++p) common[p].push_back(same[p].at(var));
  }
  for (size_t p = 0; p < parts.size(); ++p) parts[p].lifted = std::move(common[p]);
}

/// Which values the functions take from the transform, by position: weights as they are, and lifted
/// ones. What is passed are tensors; another value that is needed is computed again.
struct Outputs {
  std::set<size_t> weights, lifted, again;
};

// The variables that `part` does not compute any more.
Vars gone_from(const Part& part, const Outputs& outputs) {
  Vars vars;
  for (size_t i = 0; i < part.lifted.size(); ++i)
    if (!outputs.again.count(i)) vars.insert(part.lifted[i]->var.get());
  return vars;
}

// Adds what the rest of `part` uses.
void collect_outputs(const Part& part, Outputs& outputs) {
  const Vars gone = gone_from(part, outputs);
  Vars used;
  const auto use = [&](const NodePtr& value) {
    for (const Var* var : uses_of(value).vars) used.insert(var);
  };
  use(part.function->body->body);
  for (const Ref<BindingBlock>& block : part.function->body->blocks)
    for (const Ref<Binding>& binding : block->bindings)
      if (!gone.count(binding->var.get())) use(binding->value);
  const std::vector<Ref<Var>> weights = part.weights();
  for (size_t i = 0; i < weights.size(); ++i)
    if (used.count(weights[i].get())) outputs.weights.insert(i);
  for (size_t i = 0; i < part.lifted.size(); ++i)
    if (!outputs.again.count(i) && used.count(part.lifted[i]->var.get())) outputs.lifted.insert(i);
  // A dimension that only a weight defines needs that weight.
  Vars defined;
  const auto define = [&](const Type& type) {
    if (const auto* tensor = type.as<TensorType>(); tensor && tensor->shape)
      for (const Expr& dim : *tensor->shape)
        if (dim.as<tenon::Var>()) defined.insert(dim.get());
  };
  for (size_t i = 0; i < part.inputs; ++i) define(part.function->params[i]->type);
  for (const size_t i : outputs.weights) define(weights[i]->type);
  for (const size_t i : outputs.lifted) define(part.lifted[i]->var->type);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Uses uses = uses_of(weights[i]->type);
    const bool missing = std::any_of(uses.dims.begin(), uses.dims.end(),
                                     [&](const auto* dim) { return !defined.count(dim); });
    if (!missing) continue;
    outputs.weights.insert(i);
    define(weights[i]->type);
  }
}

Outputs plan_outputs(const std::vector<Part>& parts) {
  Outputs outputs;
  for (;;) {
    outputs.weights.clear();
    outputs.lifted.clear();
    for (const Part& part : parts) collect_outputs(part, outputs);
    const size_t before = outputs.again.size();
    for (const size_t i : outputs.lifted)
      if (!parts[0].lifted[i]->var->type.as<TensorType>()) outputs.again.insert(i);
    if (outputs.again.size() == before) return outputs;
  }
}

// What computes `outputs`, in order.
std::vector<Ref<Binding>> needed_for(const Part& part, const Outputs& outputs) {
  Vars used;
  std::vector<Ref<Binding>> needed;
  for (size_t i = part.lifted.size(); i-- > 0;) {
    const Ref<Binding>& binding = part.lifted[i];
    if (!outputs.lifted.count(i) && !used.count(binding->var.get())) continue;
    for (const Var* var : uses_of(binding->value).vars) used.insert(var);
    needed.push_back(binding);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

// The function of the weights, as one tuple, that computes `outputs`.
Ref<Function> transform_of(IRModule& module, const Part& part, const Outputs& outputs) {
  const std::vector<Ref<Var>> weights = part.weights();
  std::vector<Type> types;
  for (const Ref<Var>& weight : weights) types.push_back(weight->type);
  const auto params = make<Var>("params", make<TupleType>(std::move(types)));
  BlockBuilder builder(module);
  builder.begin_function({params});
  builder.begin_dataflow();
  Substitution values;
  const auto value_of = [&](size_t i) {
    if (!values.count(weights[i].get()))
      values.emplace(
          weights[i].get(),
          builder.emit(make<TupleGetItem>(params, static_cast<int64_t>(i)), weights[i]->name));
    return downcast<ValueNode>(values.at(weights[i].get()));
  };
  std::vector<Value> results;
  for (const size_t i : outputs.weights) results.push_back(value_of(i));
  const std::vector<Ref<Binding>> needed = needed_for(part, outputs);
  Vars used;
  for (const Ref<Binding>& binding : needed)
    for (const Var* var : uses_of(binding->value).vars) used.insert(var);
  for (size_t i = 0; i < weights.size(); ++i)
    if (used.count(weights[i].get())) value_of(i);
  for (const Ref<Binding>& binding : needed) {
    builder.set_origin(binding->origin ? binding->origin : binding->value->origin);
    values.emplace(binding->var.get(),
                   builder.emit(substitute(binding->value, values), binding->var->name));
  }
  for (const size_t i : outputs.lifted)
    results.push_back(downcast<ValueNode>(values.at(part.lifted[i]->var.get())));
  const Value result = builder.emit(make<Tuple>(std::move(results)), "transformed");
  builder.end_dataflow();
  return renew_definitions(builder.end_function(result, {{"num_input", 0}}));
}

// `part` over its inputs and what the transform gives.
Ref<Function> over_outputs(IRModule& module, const Part& part, const Outputs& outputs) {
  const std::vector<Ref<Var>> weights = part.weights();
  std::vector<Ref<Var>> params(
      part.function->params.begin(),
      part.function->params.begin() + static_cast<std::ptrdiff_t>(part.inputs));
  const Vars gone = gone_from(part, outputs);
  Substitution values;
  for (const size_t i : outputs.weights) params.push_back(weights[i]);
  for (const size_t i : outputs.lifted) {
    const Ref<Var>& var = part.lifted[i]->var;
    params.push_back(make<Var>(var->name, var->type, false, var->origin));
    values.emplace(var.get(), params.back());
  }
  std::vector<Ref<BindingBlock>> blocks;
  for (const Ref<BindingBlock>& block : part.function->body->blocks) {
    std::vector<Ref<Binding>> kept;
    for (const Ref<Binding>& binding : block->bindings)
      if (!gone.count(binding->var.get())) kept.push_back(substitute(binding, values));
    blocks.push_back(make<BindingBlock>(std::move(kept), block->is_dataflow, block->origin));
  }
  const auto body = make<SeqExpr>(std::move(blocks), substitute(part.function->body->body, values),
                                  part.function->body->origin);
  Attrs attrs = part.function->attrs;
  if (const auto names = attrs.strings("input_names");
      names && names->size() == part.function->params.size()) {
    std::vector<std::string> kept(names->begin(),
                                  names->begin() + static_cast<std::ptrdiff_t>(part.inputs));
    for (const size_t i : outputs.weights) kept.push_back((*names)[part.inputs + i]);
    for (const size_t i : outputs.lifted) kept.push_back(part.lifted[i]->var->name);
    attrs.set("input_names", kept);
  }
  return with_inferred_types(
      module, with(make<Function>(std::move(params), body, Type(), std::move(attrs),
                                  part.function->pure, part.function->origin),
                   [&](Function& made) { made.is_private = part.function->is_private; }));
}

void lift(IRModule& module, std::vector<Part> parts, const std::string& name) {
  for (Part& part : parts) collect_lifted(part);
  if (parts.size() > 1) keep_common(parts);
  const Outputs outputs = plan_outputs(parts);
  const Ref<Function> transform = transform_of(module, parts.front(), outputs);
  for (const Part& part : parts) {
    module.set(part.name, over_outputs(module, part, outputs));
    record({"LiftTransformParams",
            part.name,
            "lifted",
            "weights-only",
            {{"bindings", static_cast<double>(gone_from(part, outputs).size())},
             {"params", static_cast<double>(outputs.weights.size() + outputs.lifted.size())}},
            "",
            part.function->origin});
  }
  module.add_unique(name, transform);
}

std::optional<Part> part_of(const IRModule& module, const std::string& name) {
  const auto function = module.find<Function>(name);
  const auto inputs = function ? function->attrs.get<int64_t>("num_input") : std::nullopt;
  if (!inputs) return std::nullopt;
  if (*inputs < 0 || *inputs > static_cast<int64_t>(function->params.size()))
    throw CompileError(kBadAttribute, function->origin,
                       "attribute `num_input` of `{}` is {}; it has {} parameters", name, *inputs,
                       function->params.size());
  return Part{name, function, static_cast<size_t>(*inputs), {}};
}

void check_same_weights(const std::vector<Part>& parts) {
  const std::vector<Ref<Var>> first = parts.front().weights();
  for (const Part& part : parts) {
    const std::vector<Ref<Var>> weights = part.weights();
    bool same = weights.size() == first.size();
    for (size_t i = 0; same && i < first.size(); ++i)
      same = structural_equal(first[i]->type, weights[i]->type, {.map_free = true});
    if (!same)
      throw CompileError(kTypeMismatch, part.function->origin,
                         "functions that share a transform have the same weights; those of `{}` "
                         "and `{}` differ",
                         parts.front().name, part.name);
  }
}

}  // namespace

IRModule lift_transform_params(IRModule module, const SharedTransform& shared) {
  std::vector<Part> alone, together;
  if (shared.functions)
    for (const std::string& name : *shared.functions) {
      auto part = part_of(module, name);
      if (!part)
        throw CompileError(kUndefined, {},
                           "`shared_transform` names `{}`, which is no graph function with "
                           "attribute `num_input`",
                           name);
      together.push_back(std::move(*part));
    }
  for (const auto& [name, function] : module.functions()) {
    const bool is_named = std::any_of(together.begin(), together.end(),
                                      [&, &self = name](const Part& p) { return p.name == self; });
    auto part = is_named ? std::nullopt : part_of(module, name);
    if (part) (shared.all ? together : alone).push_back(std::move(*part));
  }
  if (!together.empty()) {
    check_same_weights(together);
    lift(module, std::move(together), "transform_params");
  }
  for (Part& part : alone) {
    const std::string name = part.name + "_transform_params";
    lift(module, {std::move(part)}, name);
  }
  return module;
}

}  // namespace tenon::graph
