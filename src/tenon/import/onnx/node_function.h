// SPDX-License-Identifier: Apache-2.0
// Makes a graph function of an ONNX node, which kernels for ONNX's operators are matched by.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

struct NodeFunction {
  /// A private graph function. Attribute `op` is the operator ("ai.onnx::Conv"), `op_values` its
  /// attributes as they are in effect, by ONNX's names, with defaults filled in; its body is what
  /// the importer makes of the node.
  Ref<graph::Function> function;
  /// Which operands are its parameters, in order. The others are numbers known now (axes, shapes,
  /// pads), and stand in `op_values` under their names.
  std::vector<size_t> operands;
};

/// What the importer makes of a node by itself.
struct ConvertedNode {
  Ref<graph::Function> function;  // a parameter for each operand that is there
  AttrValue::Map effective;       // Context::effective()
  std::set<size_t> numbers;       // Context::numbers()
};

/// Nothing where an output is not known, or the node depends on symbolic dimensions that its
/// operands do not have. \throws what converting the node throws.
std::optional<ConvertedNode> convert_alone(const Node& node, const OperatorRow& row,
                                           const std::vector<ItemRef>& inputs, int64_t opset,
                                           const AttributeValues* enclosing, const Origin& origin);

/// Nothing where the node is no function by itself: a dimension that its operands do not have, an
/// output of no known shape, or the meaning of an older operator set that the newest does not have.
/// \throws what converting the node throws.
std::optional<NodeFunction> node_function(const Node& node, const OperatorRow& row,
                                          const std::vector<ItemRef>& inputs, int64_t opset,
                                          const AttributeValues* enclosing, const Origin& origin);

/// "ai.onnx::Conv".
std::string qualified_name(const std::string& domain, const std::string& op_type);

}  // namespace tenon::onnx
