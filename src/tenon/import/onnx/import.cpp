// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tenon/import/onnx/importer.h"
#include "tenon/import/onnx/loop_body.h"
#include "tenon/import/onnx/maps.h"
#include "tenon/import/onnx/open_ranks.h"
#include "tenon/import/onnx/propagate.h"
#include "tenon/import/onnx/ranks.h"

namespace tenon::onnx {

using graph::TensorType;

Importer::Importer(const Model& model, const ImportOptions& options)
    : model_(model),
      options_(options),
      builder_(module_),
      numbers_(builder_),
      named_(model, options, names_),
      budget_(model) {
  for (const FunctionDef& function : model.functions) {
    if (!functions_.emplace(std::pair(function.domain, function.name), &function).second)
      throw CompileError(kBadModel, {}, "{}: function `{}` is defined twice", model.path,
                         printable(function.name));
  }
  for (const auto& [name, function] : options.operators) {
    declared_.emplace(*function->attrs.get<std::string>("op"), std::pair(name, function));
    module_.set(name, function);
  }
}

IRModule Importer::run() {
  check_opsets(model_.opsets, "the model");
  for (const auto& [name, shape] : options_.input_shapes) check_input_exists(name);
  check_lengths();
  Scope scope;
  std::vector<Ref<graph::Var>> params = parameters(scope);
  add_initializers(model_.graph, scope);
  builder_.begin_function(params);
  Body body{&model_.opsets};
  convert_nodes(model_.graph, scope, body);
  std::vector<Value> results = outputs(scope);
  refuse_if_any();
  compare_declared(scope);
  Value result = results.size() == 1 ? results[0] : Value(make<graph::Tuple>(std::move(results)));
  module_.set("main", builder_.end_function(std::move(result), {{"input_names", input_names_},
                                                                {"output_names", output_names_}}));
  return std::move(module_);
}

void Importer::check_opsets(const Opsets& opsets, const std::string& who) {
  const auto it = opsets.find("");
  if (it == opsets.end()) return;
  if (it->second < 1 || it->second > kNewestOpset)
    bad(kUnsupportedOperator, "{} imports opset {} of ai.onnx; expected 1 to {}", who, it->second,
        kNewestOpset);
}

void Importer::check_input_exists(const std::string& name) {
  for (const ValueInfo& input : model_.graph.inputs)
    if (input.name == name || (input.is_sequence() && name.starts_with(input.name + "["))) return;
  bad(kBadOption, "there is no input `{}`", printable(name));
}

void Importer::convert_nodes(const Graph& graph, Scope& scope, const Body& body) {
  budget_.charge(graph.nodes, builder_.origin());
  std::vector<std::string> results;
  for (const ValueInfo& output : graph.outputs) results.push_back(output.name);
  Body of_graph = body;
  of_graph.graph = &graph;
  auto order = ordered(graph.nodes, given_names(graph), scope, results, model_.path);
  convert_list({std::move(order), std::move(results)}, scope, of_graph);
}

void Importer::convert_list(NodeList list, Scope& scope, const Body& body) {
  Body of_list = body;
  of_list.list = &list;
  while (list.next < list.order.size()) convert(*list.order[list.next++], scope, of_list);
}

void Importer::convert(const Node& node, Scope& scope, const Body& body) {
  const Origin origin = origin_of(node, model_.path).numbered(++converted_nodes_);
  builder_.set_origin(origin);
  const auto function = functions_.find(std::pair(node.domain, node.op_type));
  if (!declaration_of(node) && function != functions_.end()) {
    inline_function(node, *function->second, scope, body);
    return;
  }
  if (!refusals_.attempt(origin, name_of(node), [&]() {
        if (declaration_of(node))
          convert_declared(node, scope, body);
        else
          convert_operator(node, scope, body);
        pass_open_ranks(node, scope);
      }))
    poison(node, scope);
}

std::string Importer::name_of_result(const Node& node) {
  return node.outputs.empty() ? "v" : identifier(node.outputs[0]);
}

void Importer::poison(const Node& node, Scope& scope) {
  for (const std::string& output : node.outputs) {
    if (output.empty()) continue;
    auto item = std::make_shared<Item>();
    item->poisoned = true;
    scope.set(output, std::move(item));
  }
}

std::optional<std::vector<ItemRef>> Importer::operands_of(const Node& node, const Scope& scope) {
  std::vector<ItemRef> inputs;
  bool poisoned = false;
  for (const std::string& name : node.inputs) {
    ItemRef item = name.empty() ? nullptr : scope.find(name);
    poisoned |= item && item->poisoned;
    inputs.push_back(std::move(item));
  }
  if (poisoned) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && !inputs[i]->unsupported.empty() && !takes_open_rank(node, i, inputs))
      unsupported("operand `{}`, {}", printable(node.inputs[i]), inputs[i]->unsupported);
  return inputs;
}

void Importer::pass_open_ranks(const Node& node, const Scope& scope) {
  std::vector<ItemRef> inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? nullptr : scope.find(name));
  if (std::ranges::none_of(inputs, [](const auto& item) { return item && item->least_rank; }))
    return;
  for (const std::string& name : node.outputs)
    if (const ItemRef item = name.empty() ? nullptr : scope.find(name); item && !item->poisoned)
      pass_open_rank(node, inputs, *item);
}

void Importer::convert_operator(const Node& node, Scope& scope, const Body& body) {
  const bool is_if = node.domain.empty() && node.op_type == "If",
             is_loop = node.domain.empty() && node.attributes.count("body") &&
                       (node.op_type == "Loop" || node.op_type == "Scan");
  const OperatorRow* row = find_operator(node.domain, node.op_type);
  if (!row && !is_if) unsupported(kNoOperator);
  const auto opset = body.opsets->find(node.domain);
  if (opset == body.opsets->end())
    throw CompileError(kBadModel, builder_.origin(), "operator set `{}` is not imported",
                       node.domain.empty() ? "ai.onnx" : printable(node.domain));
  if (row && opset->second < row->first_opset)
    unsupported("the form of opset {}; expected at least {}", opset->second, row->first_opset);
  if (row) check_operands(node, *row);

  const auto operands = operands_of(node, scope);
  if (!operands) return poison(node, scope);
  const std::vector<ItemRef>& inputs = *operands;
  Context context(node, inputs, opset->second, builder_, body.attributes, body.in_branch, clamped_);
  if (is_if) {
    convert_if(context, scope, body);
    return;
  }
  if (is_loop) {
    try {
      if (unroll(context, scope, body)) return;
    } catch (const OpenShapes& open) {
      return collect_results(context, open, scope, body);
    }
  }
  if (row->convert_items) {
    convert_items(context, *row, scope, body);
    return;
  }
  if (node.domain.empty() && node.op_type == "Identity" && inputs[0] && inputs[0]->collection) {
    scope.set(node.outputs[0], inputs[0]);
    return;
  }
  refuse_sequences(node, inputs, context.origin());
  if (auto known = propagate(context, *row, inputs, body.attributes)) {
    for (size_t i = 0; i < node.outputs.size() && i < known->size(); ++i) {
      auto item = std::make_shared<Item>();
      item->elements = std::move((*known)[i]);
      scope.set(node.outputs[i], std::move(item));
    }
    check_outputs(node, known->size());
    return;
  }
  context.set_inline([&](const Graph& graph, const std::vector<ItemRef>& items) {
    return inline_graph(context, graph, items, scope, body);
  });
  if (body.graph)
    context.set_wanted_ranks(
        [&](const std::string& name) { return rank_by_use(*body.graph, name); });
  if (stays_whole(node) && call_whole(node, *row, context, inputs, scope, body)) return;
  context.set_run_time_numbers(&numbers_);
  const bool may_repeat = std::ranges::none_of(
      node.attributes, [](const auto& entry) { return !entry.second.ref.empty(); });
  const auto producer =
      may_repeat ? std::make_shared<Producer>(Producer{&node, row, inputs, opset->second, 0})
                 : nullptr;
  try {
    set_results(node, converted(context, *row), scope, producer);
  } catch (const NumberChoice& choice) {
    set_results(node, convert_choices(node, *row, inputs, opset->second, body, choice), scope,
                nullptr);
  } catch (const OpenShapes& open) {
    collect_results(context, open, scope, body);
  }
}

Results Importer::converted(Context& context, const OperatorRow& row) {
  Results results = row.convert(context);
  if (const std::string name = context.unread_attribute(); !name.empty())
    unsupported("attribute `{}` in opset {}", printable(name), context.opset());
  return results;
}

// How large `node` is as a text; what it shares counts each time.
static double parts_of(const NodePtr& node, std::unordered_map<const tenon::Node*, double>& known) {
  const auto [at, is_new] = known.emplace(node.get(), 1);
  if (!is_new) return at->second;
  double parts = 1;
  each_member(node, [&](const NodePtr& member, FieldRole) { parts += parts_of(member, known); });
  return known[node.get()] = parts;
}

// Dimensions that nothing simplifies are larger after each layer: a deep network would not end.
static void refuse_endless_dims(const graph::TensorType& type) {
  constexpr double kMostParts = 1e5;
  std::unordered_map<const tenon::Node*, double> known;
  for (const Expr& dim : *type.shape)
    if (parts_of(dim, known) > kMostParts)
      unsupported("a dimension that is an expression of more than {} parts", kMostParts);
}

void Importer::set_results(const Node& node, const Results& results, Scope& scope,
                           const std::shared_ptr<const Producer>& producer) {
  check_outputs(node, results.size());
  for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    auto item = std::make_shared<Item>();
    if (!results[i]) unsupported("output {}", i);
    refuse_endless_dims(*shaped(results[i]));
    item->value = numbers_.with_small_dims(results[i]);
    if (producer) {
      Producer made = *producer;
      made.output = i;
      item->producer = std::make_shared<Producer>(std::move(made));
    }
    scope.set(node.outputs[i], std::move(item));
  }
}

void Importer::check_operands(const Node& node, const OperatorRow& row) {
  const std::string wanted = expected_count(node.inputs.size(), row.least_inputs, row.most_inputs);
  if (!wanted.empty())
    throw CompileError(kBadModel, builder_.origin(), "`{}` has {} inputs; expected {}",
                       name_of(node), node.inputs.size(), wanted);
}

void Importer::check_outputs(const Node& node, size_t results) {
  for (size_t i = results; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) unsupported("output {}", i);
}

Value Importer::value_of(const ItemRef& item, const Node& node) {
  const Opsets none;
  return Context(node, {item}, 0, builder_, nullptr, true, clamped_).value(0);
}

std::vector<Value> Importer::outputs(Scope& scope) {
  std::vector<Value> results;
  if (model_.graph.outputs.empty()) bad(kBadModel, "the graph has no outputs");
  for (const ValueInfo& output : model_.graph.outputs) {
    const ItemRef item = scope.find(output.name);
    const Origin origin = Origin::model(model_.path, printable(output.name), "graph output");
    builder_.set_origin(origin);
    if (item->poisoned) continue;
    if (!item->unsupported.empty()) {
      refusals_.add(origin, "graph output", item->unsupported);
      continue;
    }
    Node node;
    node.op_type = "graph output";
    node.outputs = {output.name};
    refusals_.attempt(origin, node.op_type, [&]() {
      Context context(node, {item}, 0, builder_, nullptr, false, clamped_);
      add_output(output.name, item, context, results);
    });
  }
  return results;
}

namespace {

bool contradicts(const ValueInfo& declared, const TensorType& type) {
  if (declared.dtype && *declared.dtype != type.dtype) return true;
  // Some exporters write an empty shape where they know none.
  if (!declared.shape || declared.shape->empty() || !type.shape) return false;
  if (declared.shape->size() != type.shape->size()) return true;
  for (size_t d = 0; d < type.shape->size(); ++d) {
    const auto said = (*declared.shape)[d].value, computed = as_int((*type.shape)[d]);
    if (said && *said >= 0 && computed && *said != *computed) return true;
  }
  return false;
}

std::string written(const ValueInfo& declared) {
  std::vector<std::string> dims;
  if (declared.shape)
    for (const Dim& dim : *declared.shape)
      dims.push_back(dim.value ? std::to_string(*dim.value) : dim.name.empty() ? "?" : dim.name);
  return fmt::format("{} ({})", declared.dtype ? declared.dtype->str() : "a tensor",
                     fmt::join(dims, ", "));
}

}  // namespace

void Importer::compare_declared(const Scope& scope) {
  // Other shapes of inputs than the file's make others of what follows.
  if (!options_.warn || !options_.input_shapes.empty() || !options_.dims.empty()) return;
  std::vector<std::pair<const ValueInfo*, Ref<TensorType>>> found;
  for (const auto* list : {&model_.graph.values, &model_.graph.outputs}) {
    for (const ValueInfo& declared : *list) {
      const ItemRef item = scope.find(declared.name);
      if (!item || item->collection || (!item->value && !item->elements)) continue;
      if (declared.kind != ValueKind::kTensor || !declared.unsupported.empty()) continue;
      const Ref<TensorType> type = item->type();
      if (contradicts(declared, *type)) found.emplace_back(&declared, type);
    }
  }
  if (found.empty()) return;
  const auto& [first, type] = found.front();
  const std::string others =
      found.size() == 1 ? "" : fmt::format("; others that differ: {}", found.size() - 1);
  options_.warn(
      kBadModel, Origin::model(model_.path, printable(first->name), "value"),
      fmt::format("the file declares {}; its nodes give {}{}", written(*first), str(type), others));
}

void Importer::refuse_if_any() {
  if (refusals_.empty()) return;
  CompileError error(kUnsupportedOperator, {}, "{}: {}", model_.path,
                     refusals_.str("node", "supported"));
  for (const Refusal& refusal : refusals_.all()) error.note(refusal.origin, "{}", refusal.form);
  const auto lacks = std::ranges::find(refusals_.all(), kNoOperator, &Refusal::form);
  if (lacks != refusals_.all().end())
    error.note({},
               "a file of --kernels may declare what is missing, by a graph function with "
               "{{\"op\": \"{}\"}}, and a kernel compute it",
               lacks->name.find('.') == std::string::npos
                   ? "ai.onnx::" + lacks->name
                   : std::string(lacks->name).replace(lacks->name.rfind('.'), 1, "::"));
  throw error;
}

IRModule import_onnx(const Model& model, const ImportOptions& options) {
  return Importer(model, options).run();
}

IRModule import_onnx(const std::string& path, const ImportOptions& options) {
  return import_onnx(with_maps_in_pairs(read_model(path)), options);
}

IRModule import_onnx(const NamedBytes& model, const ImportOptions& options) {
  return import_onnx(with_maps_in_pairs(read_model(model)), options);
}

}  // namespace tenon::onnx
