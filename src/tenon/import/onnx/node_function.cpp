// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/node_function.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/graph/dimensions.h"
#include "tenon/graph/infer.h"
#include "tenon/ir/visit.h"
#include "tenon/support/names.h"

namespace tenon::onnx {

std::string qualified_name(const std::string& domain, const std::string& op_type) {
  return (domain.empty() ? "ai.onnx" : domain) + "::" + op_type;
}

namespace {

// The attribute's value, where a kernel can name it.
AttrValue value_of(const Attribute& attribute) {
  if (const auto* v = std::get_if<int64_t>(&attribute.value)) return *v;
  if (const auto* v = std::get_if<double>(&attribute.value)) return *v;
  if (const auto* v = std::get_if<std::string>(&attribute.value)) return *v;
  if (const auto* v = std::get_if<std::vector<int64_t>>(&attribute.value)) return *v;
  if (const auto* v = std::get_if<std::vector<double>>(&attribute.value))
    return AttrList(v->begin(), v->end());
  if (const auto* v = std::get_if<std::vector<std::string>>(&attribute.value)) return *v;
  return {};
}

std::vector<std::string> parameter_names(const Node& node, size_t count) {
  std::vector<std::string> names;
  NameSupply supply;
  for (size_t i = 0; i < count; ++i)
    names.push_back(supply.take(i < node.inputs.size() ? identifier(node.inputs[i]) : "x"));
  return names;
}

}  // namespace

// Parameters stand for the operands; what is known of these is known of them.
std::optional<ConvertedNode> convert_alone(const Node& node, const OperatorRow& row,
                                           const std::vector<ItemRef>& inputs, int64_t opset,
                                           const AttributeValues* enclosing, const Origin& origin) {
  IRModule scratch;
  graph::BlockBuilder builder(scratch);
  builder.set_origin(origin);
  std::vector<ClampedDim> clamped;
  Context outside(node, inputs, opset, builder, enclosing, false, clamped);
  const std::vector<std::string> names = parameter_names(node, inputs.size());
  std::vector<Ref<graph::Var>> params;
  std::vector<ItemRef> items(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    auto item = std::make_shared<Item>();
    if (const Elements* known = outside.elements(i)) item->elements = *known;
    item->elements_asked = true;
    item->data = outside.constant(i);
    const auto param = make<graph::Var>(names[i], inputs[i]->type(), false, origin);
    item->value = param;
    params.push_back(param);
    items[i] = std::move(item);
  }
  builder.begin_function(params);
  Context context(node, items, opset, builder, enclosing, false, clamped);
  context.stand_alone(true);
  Results results = row.convert(context);
  if (const std::string name = context.unread_attribute(); !name.empty())
    unsupported("attribute `{}` in opset {}", printable(name), opset);
  size_t asked = 1;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) asked = i + 1;
  if (asked > results.size()) unsupported("output {}", results.size());
  results.resize(asked);
  for (const Value& result : results) {
    if (!result) return std::nullopt;
    (void)shaped(result);
  }
  if (!clamped.empty() || context.has_symbolic_numbers()) return std::nullopt;
  const Value result = results.size() == 1
                           ? results[0]
                           : builder.emit(make<graph::Tuple>(std::move(results)), "outputs");
  ConvertedNode out{builder.end_function(result, {}, true, origin), context.effective(),
                    context.numbers()};
  return out;
}

// Whether the newest operator set has a node with these attributes mean the same. Where attributes
// have become operands since, there is nothing to compare.
static bool means_the_same_today(const Node& node, const OperatorRow& row,
                                 const std::vector<ItemRef>& inputs, int64_t opset,
                                 const AttributeValues* enclosing, const Origin& origin,
                                 const ConvertedNode& now) {
  if (opset == kNewestOpset || !node.domain.empty()) return true;
  Node today = node;
  for (const auto& [name, value] : now.effective) {
    Attribute attribute;
    if (const auto* v = value.as<int64_t>())
      attribute.value = *v;
    else if (const auto* v = value.as<double>())
      attribute.value = *v;
    else if (const auto* v = value.as<std::string>())
      attribute.value = *v;
    else
      continue;
    today.attributes.insert_or_assign(name, std::move(attribute));
  }
  try {
    const auto then = convert_alone(today, row, inputs, kNewestOpset, enclosing, origin);
    return !then || structural_equal(then->function, now.function);
  } catch (const Unsupported&) {
    return true;
  } catch (const CompileError&) {
    return true;
  }
}

std::optional<NodeFunction> node_function(const Node& node, const OperatorRow& row,
                                          const std::vector<ItemRef>& inputs, int64_t opset,
                                          const AttributeValues* enclosing, const Origin& origin) {
  const auto converted = convert_alone(node, row, inputs, opset, enclosing, origin);
  if (!converted || !means_the_same_today(node, row, inputs, opset, enclosing, origin, *converted))
    return std::nullopt;
  const graph::Function& whole = *converted->function;
  std::unordered_set<const tenon::Node*> used;
  walk<graph::Var>(whole.body, [&](const graph::Var& var) { used.insert(&var); });
  NodeFunction out;
  std::vector<Ref<graph::Var>> params;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const Ref<graph::Var>& param = whole.params[next++];
    if (converted->numbers.count(i) && !used.count(param.get())) continue;
    params.push_back(param);
    out.operands.push_back(i);
  }
  AttrValue::Map values;
  for (const auto& [name, attribute] : node.attributes) {
    const Attribute* given = &attribute;
    if (!attribute.ref.empty()) {
      const auto outer =
          enclosing ? enclosing->find(attribute.ref) : AttributeValues::const_iterator();
      if (!enclosing || outer == enclosing->end()) continue;
      given = &outer->second;
    }
    if (AttrValue value = value_of(*given); !value.is_none()) values[name] = std::move(value);
  }
  for (const auto& [name, value] : converted->effective) values.insert_or_assign(name, value);
  const Ref<graph::Function> function =
      with(make<graph::Function>(
               std::move(params), whole.body, whole.result,
               Attrs{{"op", qualified_name(node.domain, node.op_type)}, {"op_values", values}},
               true, origin),
           [&](graph::Function& made) { made.is_private = true; });
  out.function = graph::with_own_dimensions(renew_definitions(function));
  if (!graph::defines_dimensions(*out.function)) return std::nullopt;
  return out;
}

}  // namespace tenon::onnx
