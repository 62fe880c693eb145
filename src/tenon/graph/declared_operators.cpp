// SPDX-License-Identifier: Apache-2.0
// Operators that a module declares: finds their functions, and makes their forms without optional
// inputs.
#include <algorithm>
#include <unordered_set>

#include "tenon/graph/kernels.h"
#include "tenon/graph/operator_rules.h"

namespace tenon::graph {

bool declares_operator(const FunctionNode& function) {
  const auto op = function.attrs.get<std::string>("op");
  return op && op->find("::") != std::string::npos && !is_node_function(function) &&
         dynamic_cast<const Function*>(&function) != nullptr;
}

bool is_node_function(const FunctionNode& function) {
  return function.attrs.contains("op_values") &&
         dynamic_cast<const Function*>(&function) != nullptr;
}

Ref<Function> pattern_named(const IRModule& module, const std::string& name) {
  for (const auto& [key, base] : module.functions())
    if (base->attrs.get<std::string>("Pattern") == name)
      if (const auto function = cast<Function>(base)) return function;
  return {};
}

bool is_group(const IRModule& module, const FunctionNode& function) {
  const auto name = function.attrs.get<std::string>("Composite");
  return name && dynamic_cast<const Function*>(&function) != nullptr &&
         pattern_named(module, *name);
}

Ref<SeqExpr> no_body(const Type& result, const Origin& origin) {
  const auto var = make<Var>("result", result, false, origin);
  const auto call = make<Call>(find_op("undefined"), std::vector<Value>{}, Attrs{},
                               std::vector<Type>{result}, origin);
  const auto block = make<BindingBlock>(
      std::vector<Ref<Binding>>{make<Binding>(var, call, Type(), origin)}, false, origin);
  return make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, var, origin);
}

bool has_no_body(const Function& function) {
  const auto& blocks = function.body->blocks;
  if (blocks.size() != 1 || blocks[0]->bindings.size() != 1) return false;
  const Binding& binding = *blocks[0]->bindings[0];
  const auto* call = binding.value.as<Call>();
  return call && call->is("undefined") && function.body->body.same_as(binding.var);
}

Ref<Function> declaration_of(const IRModule& module, const std::string& op) {
  for (const auto& [name, function] : module.functions())
    if (declares_operator(*function) && !function->attrs.contains("op_left_out") &&
        *function->attrs.get<std::string>("op") == op)
      return cast<Function>(function);
  const auto rule = find_operator_rule(op);
  return rule ? rule->schema : Ref<Function>();
}

std::vector<std::string> optional_inputs(const Function& declared) {
  if (const auto known = declared.attrs.strings("op_optional")) return *known;
  std::vector<std::string> out;
  const auto defaults = declared.attrs.get<AttrValue::Map>("op_attrs");
  if (!defaults) return out;
  for (const Ref<Var>& param : declared.params) {
    const auto found = defaults->find(param->name);
    if (param->type.as<TensorType>() && found != defaults->end() && found->second.is_none())
      out.push_back(param->name);
  }
  return out;
}

std::vector<std::string> left_out_inputs(const Function& declared) {
  return declared.attrs.strings("op_left_out").value_or(std::vector<std::string>());
}

std::vector<std::string> left_out_by(const tir::PrimFunc& kernel,
                                     const std::vector<std::string>& optional, size_t tensors) {
  std::vector<std::string> out;
  if (const auto pinned = kernel.attrs.get<AttrValue::Map>("op_attrs"))
    for (const std::string& name : optional)
      if (const auto found = pinned->find(name); found != pinned->end() && found->second.is_none())
        out.push_back(name);
  if (!out.empty()) return out;
  const auto buffers = static_cast<size_t>(
      std::count_if(kernel.buffers.begin(), kernel.buffers.end(),
                    [](const Ref<tir::Buffer>& buffer) { return static_cast<bool>(buffer); }));
  const size_t missing = std::min(tensors - std::min(tensors, buffers), optional.size());
  out.assign(optional.end() - static_cast<std::ptrdiff_t>(missing), optional.end());
  return out;
}

std::vector<std::string> left_out_by(const IRModule& module, const tir::PrimFunc& kernel,
                                     const std::string& op) {
  const Ref<Function> declared = declaration_of(module, op);
  if (!declared) return {};
  size_t tensors = 0;
  for (const Ref<Var>& param : declared->params) tensors += param->type.as<TensorType>() != nullptr;
  const auto* results = declared->result.as<TupleType>();
  return left_out_by(kernel, optional_inputs(*declared),
                     tensors + (results ? results->types.size() : 1));
}

Ref<Function> without_inputs(const Function& declared, const std::vector<std::string>& names) {
  const auto is_out = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<Ref<Var>> params;
  std::unordered_set<const Node*> known;
  for (const Ref<Var>& param : declared.params) {
    if (is_out(param->name)) continue;
    params.push_back(param);
    walk<tenon::Var>(param->type, [&](const tenon::Var& dim) { known.insert(&dim); });
  }
  walk<tenon::Var>(declared.result, [&](const tenon::Var& dim) {
    if (!known.count(&dim))
      throw CompileError(kUnsupported, declared.origin,
                         "the result of `{}` has dimension `{}`, which is not known where `{}` is "
                         "left out",
                         declared.attrs.get<std::string>("op").value_or("?"), dim.name, names[0]);
  });
  Attrs attrs = declared.attrs;
  attrs.set("op_optional", optional_inputs(declared));
  attrs.set("op_left_out", names);
  return renew_definitions(
      with(make<Function>(std::move(params), no_body(declared.result, declared.origin),
                          declared.result, std::move(attrs), declared.pure, declared.origin),
           [&](Function& made) { made.is_private = true; }));
}

}  // namespace tenon::graph
