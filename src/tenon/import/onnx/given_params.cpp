// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/given_params.h"

#include <algorithm>

#include "tenon/import/names.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/nearest.h"

namespace tenon::onnx {

using importers::printable;

namespace {

// Named dimensions that are not known yet are added to `dims`.
bool fits(const ValueInfo& input, const TensorData& data, std::map<std::string, int64_t>& dims) {
  if (!input.shape) return true;
  if (input.shape->size() != data.shape.size()) return false;
  for (size_t d = 0; d < data.shape.size(); ++d) {
    const Dim& dim = (*input.shape)[d];
    if (dim.value && *dim.value >= 0 && *dim.value != data.shape[d]) return false;
    if (!dim.value && !dim.name.empty() &&
        dims.emplace(dim.name, data.shape[d]).first->second != data.shape[d])
      return false;
  }
  return true;
}

// "(n, k=2, ?)".
std::string declared_shape(const ValueInfo& input, const std::map<std::string, int64_t>& dims) {
  std::vector<std::string> texts;
  for (const Dim& dim : *input.shape) {
    const auto known = dims.find(dim.name);
    if (dim.value && *dim.value >= 0)
      texts.push_back(std::to_string(*dim.value));
    else if (dim.value || dim.name.empty())
      texts.push_back("?");
    else if (known == dims.end())
      texts.push_back(printable(dim.name));
    else
      texts.push_back(fmt::format("{}={}", printable(dim.name), known->second));
  }
  return fmt::format("({}{})", fmt::join(texts, ", "), texts.size() == 1 ? "," : "");
}

void check_fits(const ValueInfo& input, const TensorData& data, const Origin& origin,
                std::map<std::string, int64_t>& dims) {
  if (input.kind != ValueKind::kTensor || !input.unsupported.empty())
    throw CompileError(kBadOption, origin, "a value is given for input `{}`, which is no tensor",
                       printable(input.name));
  if (input.dtype && *input.dtype != data.dtype)
    throw CompileError(kDTypeMismatch, origin, "input `{}` is given elements of {}; expected {}",
                       printable(input.name), data.dtype.str(), input.dtype->str());
  std::map<std::string, int64_t> known = dims;
  if (!fits(input, data, known))
    throw CompileError(kShapeMismatch, origin, "input `{}` is given shape {}; expected {}",
                       printable(input.name), str(data.shape), declared_shape(input, dims));
  dims = std::move(known);
}

}  // namespace

Model with_params(Model model, const std::map<std::string, Ref<TensorData>>& params,
                  std::map<std::string, int64_t>& dims) {
  Graph& graph = model.graph;
  for (const auto& [name, data] : params) {
    const auto input = std::ranges::find(graph.inputs, name, &ValueInfo::name);
    if (input == graph.inputs.end()) {
      std::vector<std::string> names;
      names.reserve(graph.inputs.size());
      for (const ValueInfo& one : graph.inputs) names.push_back(one.name);
      throw CompileError(kBadOption, {}, "{}: a value is given for `{}`, which is no input{}",
                         model.path, printable(name), did_you_mean(name, names));
    }
    check_fits(*input, *data, Origin::model(model.path, printable(name), "graph input"), dims);
    graph.inputs.erase(input);
    std::erase_if(graph.initializers, [&](const Tensor& tensor) { return tensor.name == name; });
    graph.initializers.push_back({name, data, ""});
  }
  return model;
}

}  // namespace tenon::onnx
