// SPDX-License-Identifier: Apache-2.0
// What a network is given: its inputs and initialisers.
#include <algorithm>

#include "tenon/import/onnx/collection.h"
#include "tenon/import/onnx/importer.h"
#include "tenon/import/onnx/ranks.h"

namespace tenon::onnx {

using graph::TensorType;

std::vector<Ref<graph::Var>> Importer::parameters(Scope& scope) {
  std::set<std::string> initialized, seen;
  for (const Tensor& tensor : model_.graph.initializers) initialized.insert(tensor.name);
  std::vector<Ref<graph::Var>> params;
  for (const ValueInfo& input : model_.graph.inputs) {
    if (input.name.empty()) bad(kBadModel, "a graph input has no name");
    if (!seen.insert(input.name).second)
      bad(kBadModel, "graph input `{}` is declared twice", printable(input.name));
    if (initialized.count(input.name)) continue;
    ItemRef item;
    try {
      item = input.kind == ValueKind::kTensor ? parameter(input, params)
                                              : parameters_of(input, params);
    } catch (const Unsupported& refused) {
      refusals_.add(Origin::model(model_.path, printable(input.name), "graph input"), "graph input",
                    refused.form);
      item = std::make_shared<Item>();
      item->poisoned = true;
    }
    scope.set(input.name, std::move(item));
  }
  return params;
}

std::optional<size_t> Importer::rank_of(const ValueInfo& input) const {
  if (input.shape) return input.shape->size();
  const auto shape = options_.input_shapes.find(input.name);
  if (shape != options_.input_shapes.end()) return shape->second.size();
  if (const auto found = rank_by_use(model_.graph, input.name)) return found;
  return options_.rank_of ? options_.rank_of(input.name) : std::nullopt;
}

ItemRef Importer::parameter(const ValueInfo& input, std::vector<Ref<graph::Var>>& params) {
  input_names_.push_back(input.name);
  if (!input.unsupported.empty()) unsupported("{}", input.unsupported);
  if (!rank_of(input)) unsupported("a tensor of unknown rank; --shape gives it");
  auto item = std::make_shared<Item>();
  auto type = make<TensorType>(dims_of(input), *input.dtype);
  auto param = make<graph::Var>(names_.take(identifier(input.name)), type, false,
                                Origin::model(model_.path, printable(input.name), "graph input"));
  item->value = param;
  item->is_input = true;
  params.push_back(std::move(param));
  return item;
}

ItemRef Importer::parameters_of(const ValueInfo& input, std::vector<Ref<graph::Var>>& params) {
  if (!input.unsupported.empty()) unsupported("{}", input.unsupported);
  const auto length = length_of(input);
  if (!length) unsupported("a sequence, whose length --length {}=N gives", printable(input.name));
  Collection value;
  value.is_optional = input.is_optional();
  value.holds_sequence = input.is_sequence();
  value.dtype = input.dtype;
  if (*length == ImportOptions::kAbsent) return item_of(std::move(value));
  ValueInfo element = input;
  element.kind = ValueKind::kTensor;
  if (input.kind == ValueKind::kOptionalTensor) {
    value.items.push_back(parameter(element, params));
    return item_of(std::move(value));
  }
  Collection sequence;
  sequence.dtype = input.dtype;
  for (int64_t i = 0; i < *length; ++i) {
    element.name = fmt::format("{}[{}]", input.name, i);
    // A dimension that the type of all tensors names is one of each.
    element.shape = input.shape;
    if (element.shape)
      for (Dim& dim : *element.shape)
        if (!dim.name.empty() && !options_.dims.count(dim.name))
          dim.name = fmt::format("{}[{}]", dim.name, i);
    sequence.items.push_back(parameter(element, params));
  }
  if (!value.is_optional) return item_of(std::move(sequence));
  value.items.push_back(item_of(std::move(sequence)));
  return item_of(std::move(value));
}

std::optional<int64_t> Importer::length_of(const ValueInfo& input) const {
  if (const auto given = options_.lengths.find(input.name); given != options_.lengths.end())
    return given->second;
  if (input.kind == ValueKind::kOptionalTensor) return 1;
  int64_t length = 0;
  while (options_.input_shapes.count(fmt::format("{}[{}]", input.name, length))) ++length;
  return length > 0 ? std::optional(length) : std::nullopt;
}

void Importer::check_lengths() {
  constexpr int64_t kMostTensors = 4096;
  for (const auto& [name, length] : options_.lengths) {
    check_input_exists(name);
    const auto found = std::ranges::find(model_.graph.inputs, name, &ValueInfo::name);
    const bool exists = found != model_.graph.inputs.end();
    const ValueKind kind = exists ? found->kind : ValueKind::kTensor;
    if (kind == ValueKind::kTensor)
      bad(kBadOption, "input `{}` is a tensor, which has no length", printable(name));
    if (length == ImportOptions::kAbsent ? kind == ValueKind::kSequence
                                         : length < 0 || length > kMostTensors)
      bad(kBadOption, "the length of input `{}` is {}; expected 0 to {}", printable(name),
          length == ImportOptions::kAbsent ? "none" : std::to_string(length), kMostTensors);
    if (kind == ValueKind::kOptionalTensor && length > 1)
      bad(kBadOption, "the length of input `{}`, an optional, is {}; expected none or 1",
          printable(name), length);
  }
}

Dims Importer::dims_of(const ValueInfo& input) {
  std::vector<Dim> declared = input.shape.value_or(std::vector<Dim>(*rank_of(input)));
  // Some exporters write -1 for a dimension that they do not know.
  for (Dim& dim : declared)
    if (dim.value && *dim.value < 0) dim.value.reset();
  if (const auto given = options_.input_shapes.find(input.name);
      given != options_.input_shapes.end()) {
    if (input.shape && declared.size() != given->second.size())
      bad(kBadOption, "input `{}` has rank {}; the shape given, {}, has rank {}",
          printable(input.name), declared.size(), str(given->second), given->second.size());
    for (size_t d = 0; d < declared.size(); ++d) {
      const int64_t asked = given->second[d];
      if (asked < 0) continue;
      if (declared[d].value && *declared[d].value != asked)
        bad(kBadOption, "dimension {} of input `{}` is {}; the shape given has {}", d,
            printable(input.name), *declared[d].value, asked);
      if (!declared[d].name.empty()) named_.fix(declared[d].name, asked);
      declared[d].value = asked;
    }
  }
  Dims dims;
  std::vector<int64_t> constant;
  for (size_t d = 0; d < declared.size(); ++d) {
    const Dim& dim = declared[d];
    if (dim.value) {
      constant.push_back(*dim.value);
      dims.push_back(int64(*dim.value));
      continue;
    }
    if (dim.name.empty()) {
      dims.push_back(Var::size(names_.take(fmt::format("{}_d{}", identifier(input.name), d))));
      continue;
    }
    dims.push_back(named_.of(dim.name));
  }
  (void)checked_elements(constant, input.dtype->bytes(),
                         Origin::model(model_.path, printable(input.name), "graph input"));
  return dims;
}

void Importer::add_initializers(const Graph& graph, Scope& scope) {
  std::set<std::string> seen;
  for (const Tensor& tensor : graph.initializers) {
    if (!seen.insert(tensor.name).second)
      bad(kBadModel, "initialiser `{}` is given twice", printable(tensor.name));
    auto item = std::make_shared<Item>();
    if (tensor.data) {
      item->value = make<graph::Constant>(
          tensor.data, Origin::model(model_.path, printable(tensor.name), "initializer"));
    } else {
      item->unsupported = "a tensor of " + tensor.unsupported;
    }
    scope.set(tensor.name, std::move(item));
  }
  for (const std::string& name : graph.sparse_initializers) {
    auto item = std::make_shared<Item>();
    item->unsupported = "a sparse tensor";
    scope.set(name, std::move(item));
  }
}

std::set<std::string> Importer::given_names(const Graph& graph) {
  std::set<std::string> names;
  for (const ValueInfo& input : graph.inputs) names.insert(input.name);
  for (const Tensor& tensor : graph.initializers) names.insert(tensor.name);
  names.insert(graph.sparse_initializers.begin(), graph.sparse_initializers.end());
  return names;
}

}  // namespace tenon::onnx
