// SPDX-License-Identifier: Apache-2.0
// Where sequences and optionals meet nodes, loops and outputs.
#include <algorithm>

#include "tenon/import/onnx/collection.h"
#include "tenon/import/onnx/importer.h"
#include "tenon/import/onnx/loop_body.h"
#include "tenon/support/limit_codes.h"

namespace tenon::onnx {

// Iterations of a known count: beyond, a sequence is one of the run.
static constexpr int64_t kMostUnrolled = 1024;

void Importer::convert_items(Context& context, const OperatorRow& row, Scope& scope,
                             const Body& body) {
  context.set_inline([&](const Graph& graph, const std::vector<ItemRef>& items) {
    return inline_graph(context, graph, items, scope, body);
  });
  context.set_run_time_numbers(&numbers_);
  const bool is_map = context.node().op_type == "SequenceMap";
  const std::vector<ItemRef> items = is_map && is_packed(context.item(0))
                                         ? map_packed(context, scope, body)
                                         : row.convert_items(context);
  if (const std::string name = context.unread_attribute(); !name.empty())
    unsupported("attribute `{}` in opset {}", printable(name), context.opset());
  set_items(context.node(), items, scope);
}

bool Importer::is_packed(const Item& item) {
  return item.collection && !item.collection->is_optional && item.collection->packed;
}

// As ONNX defines it: a loop over the positions, which takes a tensor of each sequence and inserts
// what the body gives.
std::vector<ItemRef> Importer::map_packed(Context& context, const Scope& scope,
                                          const Body& around) {
  const Node& node = context.node();
  const std::shared_ptr<const Graph> body = context.graph_attr("body");
  if (body->inputs.size() != node.inputs.size() || body->outputs.size() != node.outputs.size())
    context.bad(kBadModel, "the body of `{}` has {} inputs and {} outputs; expected {} and {}",
                name_of(node), body->inputs.size(), body->outputs.size(), node.inputs.size(),
                node.outputs.size());
  const std::string prefix = node.outputs[0] + ".each";
  const std::string index = prefix + ".i", before = prefix + ".before", behind = prefix + ".behind";
  Graph each = *body;
  std::vector<Node> taken;
  const auto add = [&](std::vector<Node>& nodes, const char* op, std::vector<std::string> inputs,
                       const std::string& output) {
    nodes.push_back({node.name, op, "", std::move(inputs), {output}, {}});
  };
  LoopParts parts;
  parts.has_condition = true;
  parts.count = context.item(0).collection->packed->length();
  Scope given(&scope);  // operands under other names than those of the body
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto& held = context.item(i).collection;
    const std::string operand = fmt::format("{}.operand{}", prefix, i);
    given.set(operand, context.ref(i));
    if (!held) {
      add(taken, "Identity", {operand}, body->inputs[i].name);
      continue;
    }
    const Expr length = held->packed ? held->packed->length()
                                     : Expr(int64(static_cast<int64_t>(held->items.size())));
    context.require(eq(length, parts.count), kShapeMismatch,
                    fmt::format("`{}` of sequences of several lengths", name_of(node)));
    add(taken, "SequenceAt", {operand, index}, body->inputs[i].name);
  }
  add(taken, "Identity", {before}, behind);
  each.nodes.insert(each.nodes.begin(), taken.begin(), taken.end());
  const auto declare = [](const std::string& name) {
    ValueInfo value;
    value.name = name;
    return value;
  };
  each.inputs = {declare(index), declare(before)};
  each.outputs = {declare(behind)};
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string state = fmt::format("{}.{}", prefix, k), next = state + ".next";
    each.inputs.push_back(declare(state));
    each.outputs.push_back(declare(next));
    add(each.nodes, "SequenceInsert", {state, body->outputs[k].name}, next);
    Collection none;
    none.dtype = body->outputs[k].dtype;
    parts.states.push_back(item_of(std::move(none)));
  }
  made_graphs_.push_back(std::make_shared<const Graph>(std::move(each)));
  context.set_inline([&](const Graph& graph, const std::vector<ItemRef>& items) {
    return inline_graph(context, graph, items, given, around);
  });
  return repeat(context, *made_graphs_.back(), parts);
}

void Importer::set_items(const Node& node, const std::vector<ItemRef>& items, Scope& scope) {
  check_outputs(node, items.size());
  for (size_t i = 0; i < node.outputs.size() && i < items.size(); ++i)
    if (!node.outputs[i].empty()) scope.set(node.outputs[i], items[i]);
}

void Importer::refuse_sequences(const Node& node, const std::vector<ItemRef>& inputs,
                                const Origin& origin) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && inputs[i]->collection)
      throw CompileError(kTypeMismatch, origin, "operand {} of `{}` is {}; expected a tensor", i,
                         name_of(node), inputs[i]->collection->kind());
}

// ---- loops

bool Importer::deals_with_sequences(const Context& context, const Graph& graph,
                                    const Scope& scope) const {
  for (size_t i = 0; i < context.input_count(); ++i)
    if (context.has(i) && context.item(i).collection) return true;
  for (const std::string& name : free_names(graph, model_.path)) {
    const ItemRef item = scope.find(name);
    if (item && item->collection) return true;
  }
  return false;
}

bool Importer::repeat_items(Context& context, Scope& scope, const Body& body) {
  context.set_inline([&](const Graph& graph, const std::vector<ItemRef>& items) {
    return inline_graph(context, graph, items, scope, body);
  });
  context.set_run_time_numbers(&numbers_);
  set_items(context.node(), repeat(context, *context.graph_attr("body"), loop_parts(context)),
            scope);
  return true;
}

bool Importer::unroll(Context& context, Scope& scope, const Body& body) {
  const Node& node = context.node();
  const auto graph = context.graph_attr("body");
  if (!deals_with_sequences(context, *graph, scope)) return false;
  if (node.op_type == "Scan") unsupported("a sequence in a Scan");
  const auto known = [](const ItemRef& item) -> std::optional<int64_t> {
    if (!item->elements || item->elements->values.size() != 1) return std::nullopt;
    return as_int(item->elements->values[0]);
  };
  const auto number = [&](size_t i) -> std::optional<int64_t> {
    return context.elements(i) ? known(context.ref(i)) : std::nullopt;
  };
  const auto count = context.has(0) ? number(0) : std::nullopt;
  auto goes_on = context.has(1) ? number(1) : std::optional<int64_t>(1);
  if (!count || !goes_on || *count > kMostUnrolled) return repeat_items(context, scope, body);
  const size_t states = context.input_count() - std::min<size_t>(2, context.input_count());
  if (graph->inputs.size() != states + 2 || graph->outputs.size() < states + 1 ||
      graph->outputs.size() != node.outputs.size() + 1)
    context.bad(kBadModel,
                "the body of `Loop` has {} inputs and {} outputs for {} states and {} results",
                graph->inputs.size(), graph->outputs.size(), states, node.outputs.size());
  if (body.depth >= kDeepest)
    context.bad(kLimitExceeded, "graphs stand more than {} deep within one another", kDeepest);
  std::vector<ItemRef> state;
  for (size_t i = 0; i < states; ++i) state.push_back(context.ref(i + 2));
  std::vector<std::vector<Value>> stacked(node.outputs.size() - states);
  const Origin origin = builder_.origin();
  Body inner = body;
  inner.depth++;
  for (int64_t i = 0; i < *count && *goes_on; ++i) {
    Scope own(&scope);
    own.set(graph->inputs[0].name, item_of(Elements{kInt64, {}, {int64(i)}}));
    own.set(graph->inputs[1].name, item_of(Elements{kBool, {}, {boolean(true)}}));
    for (size_t k = 0; k < states; ++k) own.set(graph->inputs[k + 2].name, state[k]);
    add_initializers(*graph, own);
    convert_nodes(*graph, own, inner);
    builder_.set_origin(origin);
    const auto result = [&](size_t k) {
      const ItemRef item = own.find(graph->outputs[k].name);
      if (item->poisoned) unsupported("a graph with nodes that are not supported");
      return item;
    };
    const ItemRef condition = result(0);
    if (!condition->elements && !condition->collection && condition->value.as<graph::Constant>())
      (void)Context(node, {condition}, 0, builder_, nullptr, true, clamped_).elements(0);
    goes_on = known(condition);
    if (!goes_on) return repeat_items(context, scope, body);
    for (size_t k = 0; k < states; ++k) state[k] = result(k + 1);
    for (size_t k = 0; k < stacked.size(); ++k) {
      const ItemRef item = result(k + 1 + states);
      if (item->collection) unsupported("a loop that stacks sequences");
      stacked[k].push_back(context.value_of(item));
    }
  }
  for (std::vector<Value>& values : stacked) {
    if (values.empty()) unsupported("a loop without iterations that stacks results");
    for (Value& value : values) {
      Dims dims = *shaped(value)->shape;
      dims.insert(dims.begin(), int64(1));
      value = context.reshape(value, dims);
    }
    state.push_back(item_of(values.size() == 1
                                ? values[0]
                                : context.op("concat", {make<graph::Tuple>(std::move(values))},
                                             {{"axis", int64_t{0}}})));
  }
  set_items(node, state, scope);
  return true;
}

void Importer::collect_results(Context& context, const OpenShapes& open, Scope& scope,
                               const Body& body) {
  const Node& node = context.node();
  const std::shared_ptr<const Graph> whole = context.graph_attr("body");
  const size_t states = whole->inputs.size() - 2;
  const auto named = [&](size_t k) {
    return k < node.outputs.size() ? node.outputs[k] : std::string();
  };
  Graph each = *whole;
  each.outputs.resize(1 + states);
  Node loop = node;
  loop.inputs.resize(2 + states);
  loop.outputs.resize(states);
  Graph made;
  std::vector<Node> stacks;
  for (const auto& [k, dtype] : open.results) {
    const std::string name = fmt::format("{}.result{}", name_of_result(node), k);
    ValueInfo state, next;
    state.name = name + ".before";
    next.name = name + ".next";
    each.nodes.push_back({node.name,
                          "SequenceInsert",
                          "",
                          {state.name, whole->outputs[k + 1].name},
                          {next.name},
                          {}});
    each.inputs.push_back(state);
    each.outputs.push_back(next);
    Collection none;
    none.dtype = dtype;
    scope.set(name + ".none", item_of(std::move(none)));
    loop.inputs.push_back(name + ".none");
    loop.outputs.push_back(name);
    if (!named(k).empty())
      stacks.push_back({node.name,
                        "ConcatFromSequence",
                        "",
                        {name},
                        {named(k)},
                        {{"axis", {int64_t{0}, "", ""}}, {"new_axis", {int64_t{1}, "", ""}}}});
  }
  for (size_t k = states; k + 1 < whole->outputs.size(); ++k) {
    if (open.results.count(k)) continue;
    each.outputs.push_back(whole->outputs[k + 1]);
    loop.outputs.push_back(named(k));
  }
  loop.attributes["body"].value = std::make_shared<const Graph>(std::move(each));
  made.nodes.push_back(std::move(loop));
  std::ranges::move(stacks, std::back_inserter(made.nodes));
  made_graphs_.push_back(std::make_shared<const Graph>(std::move(made)));
  for (const Node& one : made_graphs_.back()->nodes) convert_operator(one, scope, body);
}

// ---- outputs

void Importer::add_output(const std::string& name, const ItemRef& item, Context& context,
                          std::vector<Value>& results) {
  const auto add = [&](std::string port, Value value) {
    output_names_.push_back(std::move(port));
    results.push_back(std::move(value));
  };
  if (!item->collection) return add(name, context.value_of(item));
  Collection held = *item->collection;
  if (held.is_optional && !held.packed) {
    if (held.items.empty()) return add(name + ".has", context.filled(kBool, {}, 0));
    return add_output(name, held.items[0], context, results);
  }
  if (!held.packed && held.items.empty()) held = packed(context, held, 0);
  if (held.present) add(name + ".has", held.present);
  if (held.packed) {
    add(name + ".data", held.packed->data);
    add(name + ".shapes", held.packed->shapes);
  }
  for (size_t i = 0; i < held.items.size(); ++i)
    add(fmt::format("{}[{}]", name, i), context.value_of(held.items[i]));
}

}  // namespace tenon::onnx
