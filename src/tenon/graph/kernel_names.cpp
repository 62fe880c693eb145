// SPDX-License-Identifier: Apache-2.0
// Resolves operators by the names of ONNX and of people.
#include <algorithm>

#include "tenon/graph/kernels.h"
#include "tenon/support/nearest.h"

namespace tenon::graph {

namespace {

std::string lower_case(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::vector<const OpDef*> operators_named(std::string_view name) {
  if (const OpDef* op = find_op(name)) return {op};
  std::vector<const OpDef*> out;
  for (const OpDef* op : all_ops())
    if (op->onnx.name == name) out.push_back(op);
  if (!out.empty()) return out;
  for (const std::string& candidate : {"nn." + std::string(name), lower_case(name),
                                       "nn." + lower_case(name), "image." + std::string(name)})
    if (const OpDef* op = find_op(candidate)) return {op};
  return {};
}

// ONNX writes pads as all begins, then all ends; the graph's operators take one number for all
// sides and one for each axis too.
static AttrValue all_sides(const AttrValue& padding, std::string_view op) {
  const auto* list = padding.as<AttrList>();
  const size_t digit = op.find_first_of("123");
  if (!list || list->empty() || digit == std::string_view::npos) return padding;
  const auto axes = static_cast<size_t>(op[digit] - '0');
  if (list->size() == 2 * axes) return padding;
  AttrList out;
  for (size_t i = 0; i < 2 * axes; ++i) out.push_back((*list)[i % list->size()]);
  return out;
}

Attrs onnx_attributes(std::string_view op, const Attrs& attrs) {
  Attrs out;
  const OpDef* def = find_op(op);
  if (!def) return out;
  for (const auto& [onnx, own] : def->onnx.attrs)
    if (const AttrValue* value = attrs.find(own))
      out.set(onnx, onnx == "pads" ? all_sides(*value, op) : *value);
  return out;
}

std::string own_attribute(std::string_view op, const std::string& name) {
  if (const OpDef* def = find_op(op))
    for (const auto& [onnx, own] : def->onnx.attrs)
      if (onnx == name) return own;
  return name;
}

std::string nearest_operator(std::string_view name) {
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const OpDef* op : all_ops()) {
    const size_t here = std::min(edit_distance(name, op->name),
                                 op->name.starts_with("nn.")
                                     ? edit_distance(name, std::string_view(op->name).substr(3))
                                     : least);
    if (here >= least) continue;
    least = here;
    nearest = op->name;
  }
  return nearest;
}

}  // namespace tenon::graph
