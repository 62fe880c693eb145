// SPDX-License-Identifier: Apache-2.0
// Graphs within graphs, and nodes in several versions.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/import/onnx/choices.h"
#include "tenon/import/onnx/collection.h"
#include "tenon/import/onnx/importer.h"
#include "tenon/import/onnx/open_ranks.h"
#include "tenon/import/onnx/ranks.h"
#include "tenon/support/limit_codes.h"

namespace tenon::onnx {

using graph::TensorType;

Results Importer::convert_choices(const Node& node, const OperatorRow& row,
                                  const std::vector<ItemRef>& inputs, int64_t opset,
                                  const Body& body, const NumberChoice& choice) {
  std::vector<Ref<graph::SeqExpr>> versions;
  std::vector<Expr> conditions;
  std::optional<CompileError> wrong;
  Expr any = boolean(false);
  for (size_t i = 0; i < choice.lists.size(); ++i) {
    std::vector<ItemRef> known = inputs;
    known[choice.operand] = std::make_shared<Item>(*inputs[choice.operand]);
    known[choice.operand]->elements =
        known_elements(*inputs[choice.operand]->type(), choice.lists[i]);
    try {
      versions.push_back(version(node, row, known, opset, body));
    } catch (const CompileError& error) {
      wrong = error;  // these numbers are not for these operands: the run may not have them
      continue;
    }
    conditions.push_back(choice.conditions[i]);
    any = logical_or(any, choice.conditions[i]);
  }
  if (versions.empty()) throw *wrong;
  builder_.emit(
      graph::assertion(any,
                       fmt::format("operand `{}` of `{}` is not {}{}", choice.what, name_of(node),
                                   choice.otherwise, wrong ? " that suit its operands" : ""),
                       builder_.origin()));
  const Value chosen = choose(builder_, versions, conditions, name_of_result(node));
  if (node.outputs.size() == 1) return {chosen};
  Results results;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    results.push_back(builder_.emit(make<graph::TupleGetItem>(chosen, static_cast<int64_t>(i))));
  return results;
}

Ref<graph::SeqExpr> Importer::version(const Node& node, const OperatorRow& row,
                                      const std::vector<ItemRef>& inputs, int64_t opset,
                                      const Body& body) {
  OpenBranch open(builder_, numbers_);
  Context context(node, inputs, opset, builder_, body.attributes, true, clamped_);
  context.set_run_time_numbers(&numbers_);
  Results results = converted(context, row);
  check_outputs(node, results.size());
  results.resize(std::min(results.size(), node.outputs.size()));
  return open.end(results.size() == 1 ? results[0] : Value(make<graph::Tuple>(std::move(results))));
}

Elements Importer::known_elements(const TensorType& type, const Ints& numbers) {
  const Ints length = {static_cast<int64_t>(numbers.size())};
  Elements out{type.dtype, type.static_shape().value_or(length), {}};
  for (const int64_t number : numbers)
    out.values.push_back(type.dtype.is_bool() ? boolean(number != 0) : int64(number));
  return out;
}

std::vector<ItemRef> Importer::inline_graph(Context& context, const Graph& graph,
                                            const std::vector<ItemRef>& items, const Scope& scope,
                                            const Body& body) {
  if (graph.inputs.size() != items.size())
    context.bad(kBadModel, "a graph of `{}` has {} inputs; expected {}", name_of(context.node()),
                graph.inputs.size(), items.size());
  if (body.depth >= kDeepest)
    context.bad(kLimitExceeded, "graphs stand more than {} deep within one another", kDeepest);
  Body inner = body;
  inner.depth++;
  inner.in_branch = true;
  Scope own(&scope);
  for (size_t i = 0; i < items.size(); ++i) own.set(graph.inputs[i].name, items[i]);
  const Origin origin = builder_.origin();
  // What becomes known of values in here may be known here only.
  {
    const RunTimeNumbers::Branch branch(numbers_);
    add_initializers(graph, own);
    convert_nodes(graph, own, inner);
  }
  builder_.set_origin(origin);
  std::vector<ItemRef> results;
  for (const ValueInfo& output : graph.outputs) {
    const ItemRef item = own.find(output.name);
    if (item->poisoned) unsupported("a graph with nodes that are not supported");
    if (!item->unsupported.empty()) unsupported("a graph that gives {}", item->unsupported);
    results.push_back(item);
  }
  return results;
}

void Importer::convert_if(Context& context, Scope& scope, const Body& body) {
  const Node& node = context.node();
  const auto then_graph = context.graph_attr("then_branch");
  const auto else_graph = context.graph_attr("else_branch");
  for (const auto& branch : {then_graph, else_graph})
    if (branch->outputs.size() != node.outputs.size())
      context.bad(kBadModel, "`If` has {} outputs; a branch has {}", node.outputs.size(),
                  branch->outputs.size());
  if (body.depth >= kDeepest)
    context.bad(kLimitExceeded, "graphs stand more than {} deep within one another", kDeepest);
  Body inner = body;
  inner.depth++;
  const Elements* condition = context.elements(0);
  if (condition && condition->values.size() == 1 && as_int(condition->values[0])) {
    // Known now: the branch stands in place of the node.
    const Graph& taken = *as_int(condition->values[0]) ? *then_graph : *else_graph;
    return take_branch(taken, node, scope, inner);
  }
  if (context.dtype(0) != kBool)
    context.bad(kDTypeMismatch, "the condition of `If` has dtype {}; expected bool",
                context.dtype(0).str());
  inner.in_branch = true;
  Behind behind{{}, node.outputs};
  Branch then_side = branch(*then_graph, scope, inner, node, {}, behind),
         else_side = branch(*else_graph, scope, inner, node, {}, behind);
  if (!then_side.seq || !else_side.seq) return poison(node, scope);
  if (differ_in_rank(then_side, else_side)) {
    if (const auto first = branch_by_ranks(then_side, else_side, node, body.graph))
      return require_branch(context, *first,
                            "which gives a rank that the nodes behind it do not take", scope, body);
    if (delay(node, *body.list)) return;
    if (!take_greatest_rank(context, then_side, else_side, scope, body)) {
      const Versions versions = versions_of(node, *then_graph, *else_graph, scope, inner);
      if (versions.first)
        return require_branch(context, *versions.first, versions.otherwise, scope, body);
      behind = versions.behind;
      inner.versions *= 2;
      then_side = branch(*then_graph, scope, inner, node, {}, behind);
      else_side = branch(*else_graph, scope, inner, node, {}, behind);
      const std::set<const Node*> inside(behind.nodes.begin(), behind.nodes.end());
      std::erase_if(body.list->order, [&](const Node* other) { return inside.count(other) > 0; });
    }
  }
  Packs packs;
  if (then_side.seq && else_side.seq) packs = packs_of(then_side, else_side);
  if (!packs.empty()) {
    then_side = branch(*then_graph, scope, inner, node, packs, behind);
    else_side = branch(*else_graph, scope, inner, node, packs, behind);
  }
  if (!then_side.seq || !else_side.seq) {
    poison(node, scope);
    for (const Node* other : behind.nodes) poison(*other, scope);
    return;
  }
  for (const auto& [i, dims] : packs)
    if (then_side.results[i]->collection)
      then_side.results[i] = either_packed(then_side.results[i], else_side.results[i]);
  set_branches(context, behind.names, then_side, else_side, scope);
}

void Importer::set_branches(Context& context, const std::vector<std::string>& names,
                            const Branch& then_side, const Branch& else_side, Scope& scope) {
  const Node& node = context.node();
  std::vector<Value> values;
  const graph::Type type = graph::type_of(then_side.seq->body);
  const auto* tuple = type.as<graph::TupleType>();
  const Value result = tuple && tuple->types.empty()
                           ? nullptr  // sequences of no tensors
                           : if_else(context, then_side.seq, else_side.seq, node);
  if (tuple) {
    for (size_t i = 0; i < tuple->types.size(); ++i)
      values.push_back(builder_.emit(
          make<graph::TupleGetItem>(result, static_cast<int64_t>(i)),
          names.size() == tuple->types.size() ? identifier(names[i]) : name_of_result(node)));
  } else {
    values.push_back(result);
  }
  size_t next = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const ItemRef item = with_values(then_side.results[i], values, next);
    if (!item->collection) {
      const int64_t least =
          std::min(least_rank(*then_side.results[i]), least_rank(*else_side.results[i]));
      if (least < item->type()->ndim) open_rank(*item, least);
    }
    scope.set(names[i], item);
  }
}

Value Importer::if_else(Context& context, const Ref<graph::SeqExpr>& then_seq,
                        const Ref<graph::SeqExpr>& else_seq, const Node& node) {
  const graph::Type a = graph::type_of(then_seq->body), b = graph::type_of(else_seq->body);
  const Elements* known = context.elements(0);
  if (!known && structural_equal(a, b))
    return builder_.emit(make<graph::If>(context.reshape(context.value(0), {}), then_seq, else_seq,
                                         builder_.origin()),
                         name_of_result(node));
  return choose(builder_, {then_seq, else_seq}, {condition_of(context)}, name_of_result(node));
}

Expr Importer::condition_of(Context& context) {
  context.set_run_time_numbers(&numbers_);
  const Dims condition = context.dims(0, "cond");
  if (condition.size() != 1)
    context.bad(kShapeMismatch, "the condition of `If` has {} elements; expected 1",
                condition.size());
  const Expr& holds = condition[0];
  return holds->dtype.is_bool() ? holds : ne(holds, imm(holds->dtype, int64_t{0}));
}

void Importer::take_branch(const Graph& taken, const Node& node, Scope& scope, const Body& body) {
  Scope own(&scope);
  add_initializers(taken, own);
  convert_nodes(taken, own, body);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) scope.set(node.outputs[i], own.find(taken.outputs[i].name));
}

void Importer::require_branch(Context& context, bool first, const std::string& otherwise,
                              Scope& scope, const Body& body) {
  const Node& node = context.node();
  const Expr holds = condition_of(context);
  context.require(first ? holds : logical_not(holds), kRankMismatch,
                  fmt::format("`{}` takes its other branch, {}", name_of(node), otherwise));
  Body inner = body;
  inner.depth++;
  take_branch(*context.graph_attr(first ? "then_branch" : "else_branch"), node, scope, inner);
}

std::optional<bool> Importer::branch_by_ranks(const Branch& a, const Branch& b, const Node& node,
                                              const Graph* graph) {
  if (!graph) return std::nullopt;
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (a.results[i]->collection || b.results[i]->collection) continue;
    const auto x = static_cast<size_t>(a.results[i]->type()->ndim),
               y = static_cast<size_t>(b.results[i]->type()->ndim);
    if (x == y) continue;
    const auto wanted = rank_by_use(*graph, node.outputs[i]);
    if (wanted == x || wanted == y) return wanted == x;
  }
  return std::nullopt;
}

Importer::Packs Importer::packs_of(const Branch& a, const Branch& b) {
  Packs packs;
  for (size_t i = 0; i < a.results.size(); ++i) {
    const auto &x = a.results[i]->collection, &y = b.results[i]->collection;
    if (!x || !y) {
      if (x || y)
        unsupported("branches that give {} and {}", x ? x->kind() : "a tensor",
                    y ? y->kind() : "a tensor");
      const int64_t ranks[] = {a.results[i]->type()->ndim, b.results[i]->type()->ndim};
      if (ranks[0] != ranks[1]) packs[i] = std::max(ranks[0], ranks[1]);
      continue;
    }
    if (!same_form(a.results[i], b.results[i])) packs[i] = std::max(most_dims(*x), most_dims(*y));
  }
  return packs;
}

// A tensor behind leading dimensions of 1.
static ItemRef of_rank(Context& context, const ItemRef& item, int64_t ndim) {
  const int64_t least = least_rank(*item);
  const Value value = context.value_of(item);
  Dims dims = *shaped(value)->shape;
  dims.insert(dims.begin(), static_cast<size_t>(ndim) - dims.size(), int64(1));
  ItemRef out = item_of(context.reshape(value, dims));
  if (least < ndim) open_rank(*out, least);
  return out;
}

Importer::Branch Importer::branch(const Graph& graph, const Scope& outer, const Body& body,
                                  const Node& node, const Packs& packs, const Behind& behind) {
  OpenBranch open(builder_, numbers_);
  Scope scope(&outer), results(&outer);
  add_initializers(graph, scope);
  convert_nodes(graph, scope, body);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    results.set(node.outputs[i], scope.find(graph.outputs[i].name));
  convert_list({behind.nodes, behind.names}, results, body);
  builder_.set_origin(origin_of(node, model_.path));
  Branch out;
  std::vector<Value> values;
  bool poisoned = false;
  Context context(node, {}, 0, builder_, nullptr, true, clamped_);
  context.set_run_time_numbers(&numbers_);
  for (size_t i = 0; i < behind.names.size(); ++i) {
    ItemRef item = results.find(behind.names[i]);
    poisoned |= item->poisoned || (!item->unsupported.empty() && !item->least_rank);
    if (poisoned) continue;
    if (const auto pack = packs.find(i); pack != packs.end())
      item = item->collection ? item_of(packed(context, *item->collection, pack->second))
                              : of_rank(context, item, pack->second);
    add_values(context, item, values);
    out.results.push_back(std::move(item));
  }
  if (poisoned) values.assign(1, make<graph::PrimValue>(int64(0)));
  out.seq = open.end(values.size() == 1 ? values[0] : Value(make<graph::Tuple>(std::move(values))));
  if (poisoned) out.seq = nullptr;
  return out;
}

}  // namespace tenon::onnx
