// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/reduce.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "onnx/onnx-data_pb.h"
#include "tenon/reduce/reduce.h"

namespace tenon::onnx {

namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::ValueInfoProto;

// Removes the items of a repeated field that `keep` does not hold for.
template <typename Items, typename Keep>
void keep_only(Items* items, const Keep& keep) {
  int kept = 0;
  for (int i = 0; i < items->size(); ++i)
    if (keep(items->Get(i))) items->SwapElements(kept++, i);
  items->DeleteSubrange(kept, items->size() - kept);
}

void add_used(const NodeProto& node, std::set<std::string>& used) {
  used.insert(node.input().begin(), node.input().end());
  // Bodies of control flow use values of the graphs around them.
  for (const AttributeProto& attribute : node.attribute()) {
    for (const NodeProto& inner : attribute.g().node()) add_used(inner, used);
    for (const auto& output : attribute.g().output()) used.insert(output.name());
  }
}

// The graph with the nodes of `kept` alone; nothing where no value is left to be an output.
bool keep_nodes(GraphProto* graph, const std::vector<size_t>& kept) {
  std::map<std::string, ValueInfoProto> types;
  for (const auto* list : {&graph->value_info(), &graph->input(), &graph->output()})
    for (const ValueInfoProto& value : *list) types.emplace(value.name(), value);
  std::set<std::string> made, used, lost, wanted;
  const std::set<size_t> keep(kept.begin(), kept.end());
  GraphProto smaller = *graph;
  smaller.clear_node();
  for (int i = 0; i < graph->node_size(); ++i) {
    const NodeProto& node = graph->node(i);
    if (keep.count(static_cast<size_t>(i))) {
      *smaller.add_node() = node;
      made.insert(node.output().begin(), node.output().end());
      add_used(node, used);
    } else {
      lost.insert(node.output().begin(), node.output().end());
      add_used(node, wanted);
    }
  }
  keep_only(smaller.mutable_output(),
            [&](const ValueInfoProto& output) { return !lost.count(output.name()); });
  if (smaller.output_size() < graph->output_size()) {
    std::set<std::string> outputs;
    for (const ValueInfoProto& output : smaller.output()) outputs.insert(output.name());
    for (const std::string& name : made)
      if (!name.empty() && wanted.count(name) && outputs.insert(name).second) {
        const auto type = types.find(name);
        if (type != types.end())
          *smaller.add_output() = type->second;
        else
          smaller.add_output()->set_name(name);
      }
  }
  for (const std::string& name : lost) {
    if (name.empty() || !used.count(name)) continue;
    ValueInfoProto* input = smaller.add_input();
    const auto type = types.find(name);
    if (type != types.end())
      *input = type->second;
    else
      input->mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
    input->set_name(name);
  }
  for (const ValueInfoProto& output : smaller.output()) used.insert(output.name());
  keep_only(smaller.mutable_input(),
            [&](const ValueInfoProto& input) { return used.count(input.name()) != 0; });
  keep_only(smaller.mutable_initializer(),
            [&](const auto& tensor) { return used.count(tensor.name()) != 0; });
  keep_only(smaller.mutable_sparse_initializer(),
            [&](const auto& tensor) { return used.count(tensor.values().name()) != 0; });
  if (smaller.output_size() == 0) return false;
  *graph = std::move(smaller);
  return true;
}

class NetworkReduction {
 public:
  NetworkReduction(ModelProto model, const std::function<bool(const std::string&)>& shows,
                   const std::function<bool()>& out_of_time)
      : model_(std::move(model)), shows_(shows), out_of_time_(out_of_time) {}

  ModelProto run() {
    nodes();
    outputs();
    attributes();
    rest();
    return std::move(model_);
  }

 private:
  bool shows(const ModelProto& candidate) { return shows_(candidate.SerializeAsString()); }

  // Leaves out parts of a list of `count` items; `apply(model, kept)` makes the candidate.
  template <typename Apply>
  void leave_out(size_t count, const Apply& apply) {
    const auto candidate = [&](const std::vector<size_t>& kept) {
      ModelProto smaller = model_;
      const bool possible = apply(smaller, kept);
      return std::pair(possible, std::move(smaller));
    };
    const std::vector<size_t> kept = reduce::minimise(
        count,
        [&](const std::vector<size_t>& some) {
          const auto [possible, smaller] = candidate(some);
          return possible && shows(smaller);
        },
        out_of_time_);
    if (kept.size() < count) model_ = candidate(kept).second;
  }

  void nodes() {
    leave_out(static_cast<size_t>(model_.graph().node_size()),
              [](ModelProto& model, const std::vector<size_t>& kept) {
                return keep_nodes(model.mutable_graph(), kept);
              });
  }

  void outputs() {
    leave_out(static_cast<size_t>(model_.graph().output_size()),
              [](ModelProto& model, const std::vector<size_t>& kept) {
                GraphProto* graph = model.mutable_graph();
                const auto all = graph->output();
                graph->clear_output();
                for (const size_t i : kept) *graph->add_output() = all.Get(static_cast<int>(i));
                return !kept.empty();
              });
  }

  void attributes() {
    size_t count = 0;
    for (const NodeProto& node : model_.graph().node())
      count += static_cast<size_t>(node.attribute_size());
    leave_out(count, [](ModelProto& model, const std::vector<size_t>& kept) {
      const std::set<size_t> keep(kept.begin(), kept.end());
      size_t index = 0;
      for (NodeProto& node : *model.mutable_graph()->mutable_node())
        keep_only(node.mutable_attribute(),
                  [&](const AttributeProto&) { return keep.count(index++) != 0; });
      return true;
    });
  }

  // Functions, and what says something about the network but is no part of it.
  void rest() {
    leave_out(static_cast<size_t>(model_.functions_size()),
              [](ModelProto& model, const std::vector<size_t>& kept) {
                const auto all = model.functions();
                model.clear_functions();
                for (const size_t i : kept) *model.add_functions() = all.Get(static_cast<int>(i));
                return true;
              });
    leave_out(2, [](ModelProto& model, const std::vector<size_t>& kept) {
      if (std::find(kept.begin(), kept.end(), size_t{0}) == kept.end()) {
        model.clear_metadata_props();
        model.clear_doc_string();
        model.clear_training_info();
        for (NodeProto& node : *model.mutable_graph()->mutable_node()) node.clear_doc_string();
      }
      if (std::find(kept.begin(), kept.end(), size_t{1}) == kept.end())
        model.mutable_graph()->clear_value_info();
      return true;
    });
  }

  ModelProto model_;
  const std::function<bool(const std::string&)>& shows_;
  const std::function<bool()>& out_of_time_;
};

// Of what is no protocol buffer: pieces, so that there are few enough to leave out.
std::string reduce_bytes(const std::string& contents,
                         const std::function<bool(const std::string&)>& shows,
                         const std::function<bool()>& out_of_time) {
  constexpr size_t kMostPieces = 4096;
  const size_t size = contents.size() / kMostPieces + 1;
  const auto joined = [&](const std::vector<size_t>& kept) {
    std::string bytes;
    for (const size_t i : kept) bytes += contents.substr(i * size, size);
    return bytes;
  };
  return joined(reduce::minimise(
      (contents.size() + size - 1) / size,
      [&](const std::vector<size_t>& kept) { return shows(joined(kept)); }, out_of_time));
}

}  // namespace

std::string reduce_network(const std::string& contents,
                           const std::function<bool(const std::string&)>& shows,
                           const std::function<bool()>& out_of_time) {
  ModelProto model;
  if (!model.ParseFromString(contents) || !shows(model.SerializeAsString()))
    return reduce_bytes(contents, shows, out_of_time);
  return NetworkReduction(std::move(model), shows, out_of_time).run().SerializeAsString();
}

}  // namespace tenon::onnx
