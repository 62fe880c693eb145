// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/branch_numbers.h"

#include <unordered_set>

#include "tenon/import/onnx/choices.h"
#include "tenon/import/refusals.h"

namespace tenon::onnx {

using graph::Binding;
using graph::SeqExpr;
using graph::TensorType;
using graph::Value;

namespace {

struct Step {
  Ref<Binding> binding;
  bool in_dataflow;
};
using Steps = std::vector<Step>;
using Nodes = std::unordered_set<const Node*>;

Steps steps_of(const SeqExpr& seq) {
  Steps steps;
  for (const Ref<graph::BindingBlock>& block : seq.blocks)
    for (const Ref<Binding>& binding : block->bindings)
      steps.push_back({binding, block->is_dataflow});
  return steps;
}

Ref<SeqExpr> sequence(Steps::const_iterator first, Steps::const_iterator last, Value result) {
  std::vector<Ref<graph::BindingBlock>> blocks;
  while (first != last) {
    const bool in_dataflow = first->in_dataflow;
    std::vector<Ref<Binding>> bindings;
    for (; first != last && first->in_dataflow == in_dataflow; ++first)
      bindings.push_back(first->binding);
    blocks.push_back(make<graph::BindingBlock>(std::move(bindings), in_dataflow));
  }
  return make<SeqExpr>(std::move(blocks), std::move(result));
}

// The tensor whose elements `step` gives names to, or null.
Value tensor_read(const Steps& steps, size_t step) {
  const Binding& binding = *steps[step].binding;
  if (!binding.match || !binding.match.as<graph::ShapeType>()) return nullptr;
  for (size_t i = step; i-- > 0;) {
    if (!steps[i].binding->var.same_as(binding.value)) continue;
    const auto* call = steps[i].binding->value.as<graph::Call>();
    return call && call->is("tensor_to_shape") ? call->args[0] : nullptr;
  }
  return nullptr;
}

// The first reading among `steps`; their number where none stands before one that `type` needs.
size_t first_reading(const Steps& steps, const graph::Type& type) {
  Nodes needed;
  walk(type, [&](const NodePtr& node) {
    if (node.as<tenon::Var>()) needed.insert(node.get());
  });
  size_t first = steps.size();
  bool reads_needed = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!tensor_read(steps, i)) continue;
    first = std::min(first, i);
    for (const Expr& number : *steps[i].binding->match.as<graph::ShapeType>()->values)
      reads_needed |= needed.count(number.get()) > 0;
  }
  return reads_needed ? first : steps.size();
}

// Variables that steps before `cut` define and what stands from there on uses, in order.
std::vector<Ref<graph::Var>> live_at(const Steps& steps, size_t cut, const Value& result) {
  Nodes used;
  const auto use = [&](const NodePtr& node) {
    if (node.as<graph::Var>()) used.insert(node.get());
  };
  for (size_t i = cut; i < steps.size(); ++i) walk(steps[i].binding->value, use);
  walk(result, use);
  std::vector<Ref<graph::Var>> live;
  for (size_t i = 0; i < cut; ++i)
    if (used.count(steps[i].binding->var.get())) live.push_back(steps[i].binding->var);
  return live;
}

// The tensors that `value` consists of.
void add_tensors(const Value& value, std::vector<Value>& out) {
  const graph::Type type = graph::type_of(value);
  const auto* tuple = type.as<graph::TupleType>();
  if (!tuple) {
    out.push_back(value);
    return;
  }
  for (size_t i = 0; i < tuple->types.size(); ++i)
    add_tensors(make<graph::TupleGetItem>(value, static_cast<int64_t>(i)), out);
}

// The next of `tensors`, in the order of add_tensors, put together as a value of `type`.
Value next_value(graph::BlockBuilder& builder, const std::vector<Value>& tensors, size_t& next,
                 const graph::Type& type, const std::string& name) {
  const auto* tuple = type.as<graph::TupleType>();
  if (!tuple) {
    const Value& tensor = tensors.at(next++);
    return structural_equal(graph::type_of(tensor), type) ? tensor
                                                          : builder.match_cast(tensor, type, name);
  }
  std::vector<Value> items;
  for (const graph::Type& item : tuple->types)
    items.push_back(next_value(builder, tensors, next, item, name));
  return make<graph::Tuple>(std::move(items));
}

// Zeros of the types of `tensors`; none where a dimension is no number.
Ref<SeqExpr> zeros_like(graph::BlockBuilder& builder, const std::vector<Value>& tensors) {
  builder.begin_branch();
  std::vector<Value> items;
  for (const Value& value : tensors) {
    const graph::Type type = graph::type_of(value);
    const auto* tensor = type.as<TensorType>();
    if (!tensor || !tensor->shape || tensor->dtype.is_string()) {
      (void)builder.end_branch(make<graph::Tuple>(std::vector<Value>()));
      importers::unsupported("a branch that reads a number while it holds {}", graph::str(type));
    }
    std::vector<Expr> dims;
    for (const Expr& dim : *tensor->shape) dims.push_back(as_int(dim) ? dim : int64(0));
    items.push_back(
        builder.op("zeros", {make<graph::ShapeExpr>(std::move(dims))}, {{"dtype", tensor->dtype}}));
  }
  return builder.end_branch(make<graph::Tuple>(std::move(items)));
}

// `seq` with variables replaced, and items of tuples that came in their place taken out of these.
Ref<SeqExpr> replaced(const Ref<SeqExpr>& seq, const Substitution& values) {
  return rewrite(substitute(seq, values), [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* item = node.as<graph::TupleGetItem>();
    const auto* tuple = item ? item->tuple.as<graph::Tuple>() : nullptr;
    if (!tuple) return std::nullopt;
    return NodePtr(tuple->values[static_cast<size_t>(item->index)]);
  });
}

}  // namespace

Ref<SeqExpr> with_numbers_outside(graph::BlockBuilder& builder, Ref<SeqExpr> branch,
                                  const Expr& taken, const std::string& name) {
  for (;;) {
    const Steps steps = steps_of(*branch);
    const size_t reading = first_reading(steps, graph::type_of(branch->body));
    if (reading == steps.size()) return branch;
    const auto behind = steps.begin() + static_cast<int64_t>(reading);
    const std::vector<Ref<graph::Var>> live = live_at(steps, reading + 1, branch->body);
    std::vector<Value> given;
    for (const Ref<graph::Var>& var : live) add_tensors(var, given);
    given.push_back(tensor_read(steps, reading));
    const Value held = choose(
        builder,
        {sequence(steps.begin(), behind, make<graph::Tuple>(given)), zeros_like(builder, given)},
        {taken}, name);
    std::vector<Value> items;
    for (size_t i = 0; i < given.size(); ++i)
      items.push_back(builder.emit(make<graph::TupleGetItem>(held, static_cast<int64_t>(i)), name));
    const Binding& read = *steps[reading].binding;
    const Value numbers = builder.match_cast(builder.op("tensor_to_shape", {items.back()}),
                                             read.match, name + "_numbers");
    Substitution held_as{{read.var.get(), numbers}};
    builder.begin_branch();
    size_t next = 0;
    for (const Ref<graph::Var>& var : live)
      held_as.emplace(var.get(), next_value(builder, items, next, var->type, name));
    branch = builder.end_branch(
        builder.emit(replaced(sequence(behind + 1, steps.end(), branch->body), held_as), name));
  }
}

}  // namespace tenon::onnx
