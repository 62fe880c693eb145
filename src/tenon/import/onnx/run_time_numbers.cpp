// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/run_time_numbers.h"

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/import/onnx/propagate.h"

namespace tenon::onnx {

namespace {

constexpr int64_t kMostNumbers = 64;  // of one operand
constexpr int kDeepestChain = 64;     // of nodes that are computed again
constexpr int64_t kMostElements = int64_t{1} << 44;
constexpr int kLargestDim = 256;  // nodes of an expression, those that it shares counted again

bool is_large(const Expr& dim) {
  int nodes = 0;
  walk_if(dim, [&](const NodePtr&) { return ++nodes <= kLargestDim; });
  return nodes > kLargestDim;
}

bool may_be_numbers(const Item& item) {
  const graph::Type type = item.value ? graph::type_of(item.value) : graph::Type();
  const auto* tensor = type.as<graph::TensorType>();
  const auto shape = tensor ? tensor->static_shape() : std::nullopt;
  return shape && (tensor->dtype.is_integer() || tensor->dtype.is_bool()) &&
         checked_elements(*shape) <= kMostNumbers;
}

}  // namespace

const Elements* RunTimeNumbers::find(const Item& item) const {
  if (item.elements) return &*item.elements;
  for (size_t i = scopes_.size(); i-- > 0;)
    if (const auto it = scopes_[i].items.find(&item); it != scopes_[i].items.end())
      return &it->second;
  return nullptr;
}

Producer::~Producer() {
  std::vector<ItemRef> pending = std::move(inputs);
  while (!pending.empty()) {
    const ItemRef item = std::move(pending.back());
    pending.pop_back();
    if (!item || item.use_count() > 1 || !item->producer || item->producer.use_count() > 1)
      continue;
    // They would be freed by calls of this destructor within each other.
    for (ItemRef& input : item->producer->inputs) pending.push_back(std::move(input));
    item->producer->inputs.clear();
  }
}

const Elements* RunTimeNumbers::of(const ItemRef& item) {
  if (const Elements* known = find(*item)) return known;
  if (!may_be_numbers(*item)) return nullptr;
  if (const Elements* known = computed(item, 0)) return known;
  return define(item);
}

// Of an input of the network, variables; of a node, what it computes from such.
const Elements* RunTimeNumbers::computed(const ItemRef& item, int depth) {
  if (const Elements* known = find(*item)) return known;
  if (const auto* constant = item->value.as<graph::Constant>()) {
    auto known = elements_of(*constant->data);
    if (!known) return nullptr;
    held_.push_back(item);
    return &(scopes_.back().items[item.get()] = std::move(*known));
  }
  if (item->is_input) return may_be_numbers(*item) ? define(item) : nullptr;
  if (!item->producer || depth > kDeepestChain || !may_be_numbers(*item)) return nullptr;
  const Producer& made = *item->producer;
  std::vector<ItemRef> inputs(made.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!made.inputs[i]) continue;
    inputs[i] = std::make_shared<Item>(*made.inputs[i]);
    // Shape and Size need no elements.
    if (made.row->name == "Shape" || made.row->name == "Size") continue;
    const Elements* known = computed(made.inputs[i], depth + 1);
    if (!known) return nullptr;
    inputs[i]->elements = *known;
  }
  std::vector<ClampedDim> clamped;
  Context context(*made.node, inputs, made.opset, builder_, nullptr, true, clamped);
  auto results = propagate(context, *made.row, inputs, nullptr);
  if (!results || made.output >= results->size()) return nullptr;
  held_.push_back(item);
  return &(scopes_.back().items[item.get()] = std::move((*results)[made.output]));
}

const Elements* RunTimeNumbers::define(const ItemRef& item) {
  const Ref<graph::TensorType> type = shaped(item->value);
  Elements out{type->dtype, *type->static_shape(), {}};
  const auto count = checked_elements(out.shape);
  const auto* var = item->value.as<graph::Var>();
  const std::string name = identifier(var ? var->name : "number");
  std::vector<Expr> vars;
  for (int64_t i = 0; i < count; ++i) {
    vars.push_back(make<Var>(count == 1 ? name + "_value" : fmt::format("{}_{}", name, i), kInt64));
    out.values.push_back(type->dtype.is_bool() ? ne(vars.back(), int64(0)) : vars.back());
  }
  Value vector = item->value;
  if (type->ndim > 1)
    vector = builder_.op("reshape", {vector, make<graph::ShapeExpr>(Dims{int64(count)})});
  if (count > 0)
    builder_.match_cast(builder_.op("tensor_to_shape", {vector}, {}, name + "_shape"),
                        make<graph::ShapeType>(std::move(vars)), name + "_numbers");
  held_.push_back(item);
  return &(scopes_.back().items[item.get()] = std::move(out));
}

const Ref<Var>* RunTimeNumbers::find(const Expr& dim) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (const auto it = scopes_[i].dims.find(dim); it != scopes_[i].dims.end()) return &it->second;
  return nullptr;
}

Value RunTimeNumbers::with_small_dims(const Value& value) {
  const Ref<graph::TensorType> type = shaped(value);
  Dims large;
  for (const Expr& dim : *type->shape)
    if (is_large(dim) && !find(dim)) large.push_back(dim);
  const auto* var = value.as<graph::Var>();
  const std::string name = identifier(var ? var->name : "number");
  if (!large.empty()) define(large, name);
  Dims dims = *type->shape;
  bool changed = false;
  for (Expr& dim : dims) {
    const Ref<Var>* named = is_large(dim) ? find(dim) : nullptr;
    if (!named) continue;
    dim = *named;
    changed = true;
  }
  if (!changed) return value;
  return builder_.match_cast(value, make<graph::TensorType>(std::move(dims), type->dtype), name);
}

void RunTimeNumbers::define(const Dims& dims, const std::string& name) {
  std::vector<Expr> vars;
  for (const Expr& dim : dims) {
    const auto var = make<Var>(fmt::format("{}_dim_{}", name, vars.size()), kInt64);
    scopes_.back().dims.emplace(dim, var);
    vars.push_back(var);
  }
  const Value tensor =
      builder_.op("shape_to_tensor", {make<graph::ShapeExpr>(dims)}, {}, name + "_dims");
  builder_.match_cast(builder_.op("tensor_to_shape", {tensor}, {}, name + "_shape"),
                      make<graph::ShapeType>(vars), name + "_numbers");
  // Memory for what has a largest size is planned before the number is known.
  for (size_t i = 0; i < dims.size(); ++i) {
    const arith::ConstBound bound = arith::Analyzer().const_bound(dims[i]);
    if (bound.max < kMostElements)
      builder_.emit(graph::assertion(
          vars[i] <= int64(bound.max),
          fmt::format("dimension {} of `{}` is above {}", i, name, bound.max), builder_.origin()));
  }
}

}  // namespace tenon::onnx
