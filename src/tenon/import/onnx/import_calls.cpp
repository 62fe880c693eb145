// SPDX-License-Identifier: Apache-2.0
// Nodes that become calls: of functions of the network, and of operators beside it.
#include <algorithm>

#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/operator_rules.h"
#include "tenon/import/onnx/declared_attribute.h"
#include "tenon/import/onnx/importer.h"
#include "tenon/import/onnx/node_function.h"
#include "tenon/support/limit_codes.h"

namespace tenon::onnx {

using graph::TensorType;

bool Importer::stays_whole(const Node& node) const {
  return options_.whole.count(qualified_name(node.domain, node.op_type)) ||
         options_.whole_nodes.count(builder_.origin().name());
}

bool Importer::call_whole(const Node& node, const OperatorRow& row, Context& context,
                          const std::vector<ItemRef>& inputs, Scope& scope, const Body& body) {
  const auto whole =
      node_function(node, row, inputs, context.opset(), body.attributes, builder_.origin());
  if (!whole) return false;
  std::vector<Value> args;
  for (const size_t i : whole->operands) args.push_back(context.value(i));
  const std::string name =
      module_.add_unique(identifier(node.name.empty() ? node.op_type : node.name), whole->function);
  const auto call = make<graph::Call>(make<graph::FuncRef>(name), std::move(args), Attrs{},
                                      std::vector<graph::Type>{}, builder_.origin());
  if (!has_known_shapes(graph::type_of(call, module_))) {
    module_.erase(name);
    return false;
  }
  set_outputs(node, call, scope);
  return true;
}

bool Importer::has_known_shapes(const graph::Type& type) {
  if (const auto* tuple = type.as<graph::TupleType>())
    return std::all_of(tuple->types.begin(), tuple->types.end(), has_known_shapes);
  const auto* tensor = type.as<TensorType>();
  return tensor && tensor->shape && !tensor->dtype.is_void();
}

void Importer::set_outputs(const Node& node, const Value& call, Scope& scope) {
  const Value result =
      builder_.emit(call, node.outputs.empty() ? "v" : identifier(node.outputs[0]));
  std::vector<Value> results;
  const graph::Type type = graph::type_of(result);
  if (const auto* tuple = type.as<graph::TupleType>()) {
    for (size_t i = 0; i < tuple->types.size(); ++i)
      results.push_back(make<graph::TupleGetItem>(result, static_cast<int64_t>(i)));
  } else {
    results.push_back(result);
  }
  set_results(node, results, scope);
}

const Declaration* Importer::declaration_of(const Node& node) {
  const std::string op = qualified_name(node.domain, node.op_type);
  const auto found = declared_.find(op);
  if (found != declared_.end()) return &found->second;
  const auto rule = graph::find_operator_rule(op);
  if (!rule) return nullptr;
  return &declared_.emplace(op, Declaration("", rule->schema)).first->second;
}

std::string Importer::form_of(const std::string& op, const graph::Function& schema,
                              const std::vector<Value>& args,
                              const std::vector<std::string>& left_out) {
  const auto rule = graph::find_operator_rule(op);
  tenon::check(rule != nullptr, "an operator is taken back while a network with it is read");
  std::vector<graph::Type> types;
  Attrs attributes;
  std::string key = op;
  size_t next = 0;
  for (const Ref<graph::Var>& param : schema.params) {
    const bool is_out = std::find(left_out.begin(), left_out.end(), param->name) != left_out.end();
    const Value arg = is_out ? Value() : args.at(next++);
    if (param->type.as<TensorType>()) {
      types.push_back(arg ? graph::type_of(arg) : graph::Type());
      key += "\n" + (arg ? graph::str(types.back()) : "");
    } else {
      attributes.set(param->name, graph::attribute_of(arg));
      key += "\n" + attributes.find(param->name)->str();
    }
  }
  const auto known = forms_.find(key);
  if (known != forms_.end()) return known->second;
  return forms_[key] = graph::add_form(module_, rule->form(types, attributes));
}

void Importer::convert_declared(const Node& node, Scope& scope, const Body& body) {
  auto [name, function] = *declaration_of(node);
  ++declared_nodes_;
  const auto opset = body.opsets->find(node.domain);
  auto operands = operands_of(node, scope);
  if (!operands) return poison(node, scope);
  std::vector<ItemRef>& inputs = *operands;
  const bool has_rule = name.empty();
  const Ref<graph::Function> schema = function;
  const auto left_out = left_out_of(node, *function, inputs);
  if (!left_out.empty()) {
    if (!has_rule) name = form_without(name, *function, left_out);
    function =
        has_rule ? graph::without_inputs(*function, left_out) : module_.find<graph::Function>(name);
    std::erase(inputs, nullptr);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i]) unsupported("operand {} left out", i);
  Context context(node, inputs, opset == body.opsets->end() ? 1 : opset->second, builder_,
                  body.attributes, body.in_branch, clamped_);
  size_t tensors = 0;
  for (const Ref<graph::Var>& param : function->params)
    tensors += param->type.as<TensorType>() != nullptr;
  if (tensors != inputs.size())
    throw CompileError(kBadModel, builder_.origin(), "`{}` has {} inputs; it is declared with {}",
                       name_of(node), inputs.size(), tensors)
        .note(function->origin, "it is declared here");
  std::vector<Value> args;
  Substitution bound;
  size_t next = 0;
  for (const Ref<graph::Var>& param : function->params) {
    Value arg = param->type.as<TensorType>()
                    ? context.value(next++)
                    : declared_attribute(context, *function, *param, declared_nodes_);
    graph::unify(param->type, graph::type_of(arg), bound);
    args.push_back(std::move(arg));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const graph::Type wanted = substitute(function->params[i]->type, bound),
                      given = graph::type_of(args[i]);
    if (!wanted.as<TensorType>() || graph::is_subtype(given, wanted)) continue;
    throw CompileError(kTypeMismatch, builder_.origin(), "input `{}` of `{}` is {}; expected {}",
                       function->params[i]->name, name_of(node), graph::str(given),
                       graph::str(wanted))
        .note(function->params[i]->origin, "it is declared as {}",
              graph::str(function->params[i]->type));
  }
  if (const std::string extra = context.unread_attribute(); !extra.empty())
    throw CompileError(kBadAttribute, builder_.origin(),
                       "`{}` has attribute `{}`, which its declaration does not have",
                       name_of(node), printable(extra))
        .note(function->origin, "it is declared here");
  if (has_rule) name = form_of(qualified_name(node.domain, node.op_type), *schema, args, left_out);
  set_outputs(node,
              make<graph::Call>(make<graph::FuncRef>(name), std::move(args), Attrs{},
                                std::vector<graph::Type>{}, builder_.origin()),
              scope);
}

std::vector<std::string> Importer::left_out_of(const Node& node, const graph::Function& function,
                                               const std::vector<ItemRef>& inputs) {
  const std::vector<std::string> optional = graph::optional_inputs(function);
  std::vector<std::string> out;
  size_t next = 0;
  for (const Ref<graph::Var>& param : function.params) {
    if (!param->type.as<TensorType>()) continue;
    const size_t i = next++;
    if (i < inputs.size() && inputs[i]) continue;
    if (std::find(optional.begin(), optional.end(), param->name) != optional.end())
      out.push_back(param->name);
    else if (i < inputs.size())
      unsupported("operand `{}` left out, which has no default in the declaration of `{}`",
                  param->name, name_of(node));
  }
  return out;
}

std::string Importer::form_without(const std::string& name, const graph::Function& function,
                                   const std::vector<std::string>& left_out) {
  std::string key = name + "_without";
  for (const std::string& input : left_out) key += "_" + input;
  const auto known = forms_.find(key);
  if (known != forms_.end()) return known->second;
  return forms_[key] = module_.add_unique(key, graph::without_inputs(function, left_out));
}

void Importer::inline_function(const Node& node, const FunctionDef& function, Scope& scope,
                               const Body& body) {
  if (std::find(body.functions.begin(), body.functions.end(), &function) != body.functions.end())
    throw CompileError(kBadModel, builder_.origin(), "function `{}` calls itself",
                       printable(function.name));
  if (static_cast<int>(body.functions.size()) >= kDeepest)
    throw CompileError(kLimitExceeded, builder_.origin(),
                       "functions call one another more than {} deep", kDeepest);
  check_opsets(function.opsets, "function `" + printable(function.name) + "`");
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    throw CompileError(kBadModel, builder_.origin(),
                       "function `{}` is called with {} inputs and {} outputs; it has {} and {}",
                       printable(function.name), node.inputs.size(), node.outputs.size(),
                       function.inputs.size(), function.outputs.size());
  AttributeValues attributes = function.default_attributes;
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.ref.empty()) {
      attributes[name] = attribute;
    } else if (body.attributes) {
      const auto outer = body.attributes->find(attribute.ref);
      if (outer != body.attributes->end()) attributes[name] = outer->second;
    }
  }
  Scope inner;
  std::set<std::string> own;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    own.insert(function.inputs[i]);
    if (i < node.inputs.size() && !node.inputs[i].empty())
      inner.set(function.inputs[i], scope.find(node.inputs[i]));
  }
  Body callee = body;
  callee.opsets = &function.opsets;
  callee.attributes = &attributes;
  callee.functions.push_back(&function);
  callee.graph = nullptr;
  const Scope nothing;
  budget_.charge(function.nodes, builder_.origin());
  convert_list(
      {ordered(function.nodes, own, nothing, function.outputs, model_.path), function.outputs},
      inner, callee);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) scope.set(node.outputs[i], inner.find(function.outputs[i]));
}

}  // namespace tenon::onnx
