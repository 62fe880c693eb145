// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/ranks.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tenon::onnx {

namespace {

// Results have the rank of operand 0, whatever that is.
const std::set<std::string>& rank_keeping() {
  static const std::set<std::string> names = {
      "Abs",
      "BatchNormalization",
      "Cast",
      "CastLike",
      "Ceil",
      "Celu",
      "Clip",
      "Cos",
      "CumSum",
      "DequantizeLinear",
      "Dropout",
      "DynamicQuantizeLinear",
      "Elu",
      "Erf",
      "Exp",
      "Expm1",
      "Floor",
      "Gelu",
      "HardSigmoid",
      "HardSwish",
      "Hardmax",
      "Identity",
      "IsInf",
      "IsNaN",
      "LRN",
      "LayerNormalization",
      "LeakyRelu",
      "Log",
      "LogSoftmax",
      "LpNormalization",
      "Mish",
      "Neg",
      "Not",
      "QuantizeLinear",
      "Reciprocal",
      "Relu",
      "ReverseSequence",
      "Round",
      "Selu",
      "Sigmoid",
      "Sign",
      "Sin",
      "Slice",
      "Softmax",
      "Softplus",
      "Softsign",
      "Split",
      "Sqrt",
      "Swish",
      "Tanh",
      "ThresholdedRelu",
      "Trilu",
  };
  return names;
}

class Uses {
 public:
  explicit Uses(const Graph& graph) : graph_(graph) {}

  std::optional<size_t> rank(const std::string& name) {
    if (!seen_.insert(name).second) return std::nullopt;
    if (const auto known = declared(name)) return known;
    for (const Node& node : graph_.nodes) {
      if (!node.domain.empty() && node.domain != "ai.onnx") continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != name) continue;
        if (const auto found = by(node, i)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  // Some exporters write an empty shape where they know none.
  std::optional<size_t> declared(const std::string& name) const {
    for (const auto* list : {&graph_.inputs, &graph_.outputs, &graph_.values})
      for (const ValueInfo& value : *list)
        if (value.name == name && value.shape && !value.shape->empty()) return value.shape->size();
    return std::nullopt;
  }
  const TensorData* constant(const Node& node, size_t i) const {
    if (i >= node.inputs.size()) return nullptr;
    for (const Tensor& tensor : graph_.initializers)
      if (tensor.name == node.inputs[i]) return tensor.data.get();
    for (const Node& other : graph_.nodes) {
      if (other.op_type != "Constant" || other.outputs.empty() ||
          other.outputs[0] != node.inputs[i])
        continue;
      const auto value = other.attributes.find("value");
      if (value == other.attributes.end()) return nullptr;
      const auto* tensor = std::get_if<Tensor>(&value->second.value);
      return tensor ? tensor->data.get() : nullptr;
    }
    return nullptr;
  }
  // Axes: an operand of the later opsets, an attribute of those before.
  std::optional<size_t> axes(const Node& node) const {
    return node.attributes.count("axes") ? length(node, "axes") : length(node, 1);
  }
  static bool flag(const Node& node, const char* attribute, bool otherwise) {
    const auto found = node.attributes.find(attribute);
    if (found == node.attributes.end()) return otherwise;
    const auto* value = std::get_if<int64_t>(&found->second.value);
    return value && *value != 0;
  }
  // Of a tensor that is not asked for: a constant, or one that the file declares.
  std::optional<size_t> rank_of_other(const Node& node, size_t i) const {
    if (const auto constant = rank_of_constant(node, i)) return constant;
    return i < node.inputs.size() ? declared(node.inputs[i]) : std::nullopt;
  }
  std::optional<size_t> rank_of_constant(const Node& node, size_t i) const {
    const TensorData* data = constant(node, i);
    return data ? std::optional(data->shape.size()) : std::nullopt;
  }
  std::optional<size_t> length(const Node& node, size_t i) const {
    const TensorData* data = constant(node, i);
    if (!data || data->shape.size() != 1) return std::nullopt;
    return static_cast<size_t>(data->shape[0]);
  }
  static std::optional<size_t> length(const Node& node, const char* attribute) {
    const auto found = node.attributes.find(attribute);
    if (found == node.attributes.end()) return std::nullopt;
    const auto* list = std::get_if<std::vector<int64_t>>(&found->second.value);
    return list ? std::optional(list->size()) : std::nullopt;
  }
  static std::optional<size_t> changed(std::optional<size_t> count, size_t more, size_t by = 1) {
    return count ? std::optional(*count / by + more) : std::nullopt;
  }

  // The rank of operand `i` of a node.
  std::optional<size_t> by(const Node& node, size_t i) {
    const std::string& op = node.op_type;
    if (i == 0 && (op == "Conv" || op == "ConvInteger" || op == "ConvTranspose"))
      return rank_of_constant(node, 1);
    if (i == 0 && op == "QLinearConv") return rank_of_constant(node, 3);
    if (i == 0 && (op == "MaxPool" || op == "AveragePool" || op == "LpPool"))
      return changed(length(node, "kernel_shape"), 2);
    if (i < 2 && op == "Gemm") return 2;
    if (op == "LSTM" || op == "GRU" || op == "RNN") {
      static constexpr size_t kRanks[] = {3, 3, 3, 2, 1, 3, 3, 2};
      return i < std::size(kRanks) ? std::optional(kRanks[i]) : std::nullopt;
    }
    if (i == 0 && (op == "DepthToSpace" || op == "SpaceToDepth")) return 4;
    if (i == 0 && op == "Transpose") return length(node, "perm");
    if (i == 0 && op == "Tile") return length(node, 1);
    if (i == 0 && op == "Pad" && node.inputs.size() < 4)
      return changed(node.attributes.count("pads") ? length(node, "pads") : length(node, 1), 0, 2);
    if (i == 0 && op == "Resize" && !node.attributes.count("axes")) {
      for (const size_t sizes : {size_t{3}, size_t{2}, size_t{1}})
        if (const auto found = length(node, sizes); found && *found > 0) return found;
    }
    if (i == 0 && op == "Unsqueeze") return difference(of_results(node), axes(node));
    if (i == 0 && op == "Squeeze") return sum(of_results(node), axes(node));
    if (i == 0 && op.starts_with("Reduce")) {
      const auto result = of_results(node);
      return flag(node, "keepdims", true) ? result : sum(result, axes(node));
    }
    if (op == "Gather" && i < 2) return of_gather(node, i);
    if (op == "Concat") {
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (const auto found = k == i ? std::nullopt : rank_of_other(node, k)) return found;
      return of_results(node);
    }
    if (i == 0 && (rank_keeping().count(op) || keeps_with_constant(node))) return of_results(node);
    if (i == 1 && is_elementwise(op) && rank_of_constant(node, 0).value_or(2) < 2)
      return of_results(node);
    return std::nullopt;
  }
  static std::optional<size_t> sum(std::optional<size_t> a, std::optional<size_t> b) {
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  static std::optional<size_t> difference(std::optional<size_t> a, std::optional<size_t> b) {
    return a && b && *a >= *b ? std::optional(*a - *b) : std::nullopt;
  }
  // The result has the data's axes, with those of the indices in the place of one.
  std::optional<size_t> of_gather(const Node& node, size_t i) {
    const auto result = of_results(node), other = rank_of_other(node, 1 - i);
    const auto both = sum(result, 1);
    return i == 0 ? difference(both, other) : difference(result, difference(other, 1));
  }
  static bool is_elementwise(const std::string& op) {
    return op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Pow" || op == "Max" ||
           op == "Min" || op == "PRelu";
  }
  // A number or vector is no more than the tensor that it is broadcast to, and a matrix on the right
  // leaves vectors and batches of matrices what they are.
  bool keeps_with_constant(const Node& node) const {
    const auto rank = rank_of_constant(node, 1);
    return rank && ((node.op_type == "MatMul" && *rank == 2) ||
                    (is_elementwise(node.op_type) && *rank < 2));
  }
  std::optional<size_t> of_results(const Node& node) {
    return node.outputs.empty() || node.outputs[0].empty() ? std::nullopt : rank(node.outputs[0]);
  }

  const Graph& graph_;
  std::set<std::string> seen_;
};

}  // namespace

std::optional<size_t> rank_by_use(const Graph& graph, const std::string& name) {
  return Uses(graph).rank(name);
}

}  // namespace tenon::onnx
