// SPDX-License-Identifier: Apache-2.0
// What a network is given: its inputs and initialisers.
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
    inputs_.push_back(&input);
    auto item = std::make_shared<Item>();
    if (!input.unsupported.empty()) {
      item->unsupported = input.unsupported;
    } else if (!has_rank(input)) {
      item->unsupported = "a tensor of unknown rank; --shape gives it";
    }
    if (!item->unsupported.empty()) {
      item->poisoned = true;
      refusals_.add(Origin::model(model_.path, printable(input.name), "graph input"), "graph input",
                    item->unsupported);
    } else {
      const Origin origin = Origin::model(model_.path, printable(input.name), "graph input");
      auto type = make<TensorType>(dims_of(input), *input.dtype);
      auto param = make<graph::Var>(names_.take(identifier(input.name)), type, false, origin);
      item->value = param;
      item->is_input = true;
      params.push_back(std::move(param));
    }
    scope.set(input.name, std::move(item));
  }
  return params;
}

bool Importer::has_rank(const ValueInfo& input) const {
  return input.shape || options_.input_shapes.count(input.name) ||
         rank_by_use(model_.graph, input.name);
}

Dims Importer::dims_of(const ValueInfo& input) {
  std::vector<Dim> declared;
  if (input.shape)
    declared = *input.shape;
  else if (!options_.input_shapes.count(input.name))
    declared.resize(*rank_by_use(model_.graph, input.name));
  // Some exporters write -1 for a dimension that they do not know.
  for (Dim& dim : declared)
    if (dim.value && *dim.value < 0) dim.value.reset();
  if (const auto given = options_.input_shapes.find(input.name);
      given != options_.input_shapes.end()) {
    if (input.shape && declared.size() != given->second.size())
      bad(kBadOption, "input `{}` has rank {}; the shape given, {}, has rank {}",
          printable(input.name), declared.size(), str(given->second), given->second.size());
    declared.resize(given->second.size());
    for (size_t d = 0; d < declared.size(); ++d) {
      const int64_t asked = given->second[d];
      if (asked < 0) continue;
      if (declared[d].value && *declared[d].value != asked)
        bad(kBadOption, "dimension {} of input `{}` is {}; the shape given has {}", d,
            printable(input.name), *declared[d].value, asked);
      if (!declared[d].name.empty()) named_.emplace(declared[d].name, int64(asked));
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
    Expr& known = named_[dim.name];
    if (!known) {
      const auto fixed = options_.dims.find(dim.name);
      known = fixed != options_.dims.end() ? int64(fixed->second)
                                           : Expr(Var::size(names_.take(identifier(dim.name))));
      if (fixed != options_.dims.end() && fixed->second < 0)
        bad(kBadOption, "dimension `{}` is set to {}", printable(dim.name), fixed->second);
    }
    dims.push_back(known);
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
