// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/maps.h"

#include <algorithm>
#include <set>

#include "tenon/import/names.h"
#include "tenon/import/onnx/scope.h"

namespace tenon::onnx {

namespace {

using importers::printable;

class Pairs {
 public:
  explicit Pairs(Model& model) : model_(model) {
    for (const ValueInfo& input : model.graph.inputs) taken_.insert(input.name);
    for (const Node& node : model.graph.nodes)
      taken_.insert(node.outputs.begin(), node.outputs.end());
  }

  void run() {
    std::vector<ValueInfo> inputs;
    for (ValueInfo& input : model_.graph.inputs) {
      if (!input.map) {
        inputs.push_back(std::move(input));
        continue;
      }
      const Pair& pair = pair_of(input.name);
      for (const bool is_key : {true, false}) {
        ValueInfo half;
        half.name = is_key ? pair.keys : pair.values;
        half.dtype = is_key ? input.map->key : input.map->value;
        half.shape = {Dim{std::nullopt, input.name + ".size"}};
        inputs.push_back(std::move(half));
      }
    }
    model_.graph.inputs = std::move(inputs);
    for (Node& node : model_.graph.nodes)
      if (is_one(node, {"ZipMap"}) && node.outputs.size() == 1) {
        const Pair& pair = pair_of(node.outputs[0]);
        node.outputs = {pair.keys, pair.values};
      }
    for (Node& node : model_.graph.nodes) change_operands(node);
    std::vector<ValueInfo> outputs;
    for (ValueInfo& output : model_.graph.outputs) {
      const auto pair = pairs_.find(output.name);
      if (pair == pairs_.end()) {
        outputs.push_back(std::move(output));
        continue;
      }
      for (const std::string& name : {pair->second.keys, pair->second.values})
        outputs.emplace_back().name = name;
    }
    model_.graph.outputs = std::move(outputs);
  }

 private:
  struct Pair {
    std::string keys, values;
  };

  static bool is_one(const Node& node, std::initializer_list<std::string_view> names) {
    return node.domain == "ai.onnx.ml" &&
           std::find(names.begin(), names.end(), node.op_type) != names.end();
  }

  const Pair& pair_of(const std::string& name) {
    const auto [it, is_new] = pairs_.try_emplace(name);
    if (is_new) it->second = {fresh(name + ".keys"), fresh(name + ".values")};
    return it->second;
  }

  std::string fresh(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  void change_operands(Node& node) {
    std::vector<std::string> operands;
    for (const std::string& name : node.inputs) {
      const auto pair = pairs_.find(name);
      if (pair == pairs_.end()) {
        operands.push_back(name);
        continue;
      }
      if (!is_one(node, {"DictVectorizer", "CastMap"}))
        throw CompileError(kUnsupportedOperator, origin_of(node, model_.path),
                           "operand `{}` of `{}` is a map; expected DictVectorizer or CastMap",
                           printable(name), name_of(node));
      operands.push_back(pair->second.keys);
      operands.push_back(pair->second.values);
    }
    node.inputs = std::move(operands);
  }

  Model& model_;
  std::set<std::string> taken_;
  std::map<std::string, Pair> pairs_;
};

}  // namespace

Model with_maps_in_pairs(Model model) {
  Pairs(model).run();
  return model;
}

}  // namespace tenon::onnx
