// SPDX-License-Identifier: Apache-2.0
// Computes shapes that networks compute, on elements instead of tensors.
#include "tenon/import/onnx/propagate.h"

#include <algorithm>

#include "tenon/import/evaluate.h"
#include "tenon/import/onnx/node_function.h"

namespace tenon::onnx {

using AllElements = std::optional<std::vector<Elements>>;

// Of dimensions [start, end), as Python slices a list.
static AllElements shape_elements(Context& c) {
  const Dims dims = c.shape(0);
  const auto n = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
  const int64_t start = clamp(c.int_attr("start", 0)), end = clamp(c.int_attr("end", n));
  Elements out{kInt64, {std::max<int64_t>(end - start, 0)}, {}};
  for (int64_t i = start; i < end; ++i) out.values.push_back(dims[static_cast<size_t>(i)]);
  return std::vector<Elements>{std::move(out)};
}

AllElements propagate(Context& context, const OperatorRow& row, const std::vector<ItemRef>& inputs,
                      const AttributeValues* enclosing) {
  if (!context.has(0)) return std::nullopt;
  if (row.name == "Shape") return shape_elements(context);
  if (row.name == "Size") return std::vector<Elements>{{kInt64, {}, {product(context.shape(0))}}};
  std::vector<const Elements*> args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    args.push_back(context.elements(i));
    if (!args.back()) return std::nullopt;
  }
  std::optional<ConvertedNode> alone;
  try {
    alone =
        convert_alone(context.node(), row, inputs, context.opset(), enclosing, context.origin());
  } catch (const Unsupported&) {
    return std::nullopt;  // told where the node itself is converted
  }
  // A constant that the converter gives is one already, perhaps of one element repeated.
  if (!alone || alone->function->body->body.as<graph::Constant>()) return std::nullopt;
  return evaluate(alone->function, args);
}

}  // namespace tenon::onnx
