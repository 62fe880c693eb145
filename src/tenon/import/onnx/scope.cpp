// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/scope.h"

#include <queue>

#include "tenon/support/limit_codes.h"

namespace tenon::onnx {

NodeBudget::NodeBudget(const Model& model) : path_(model.path) {
  constexpr int64_t kFree = 100'000, kGrowth = 16;
  most_ = kFree + kGrowth * written(model.graph.nodes);
  for (const FunctionDef& function : model.functions) most_ += kGrowth * written(function.nodes);
}

void NodeBudget::charge(const std::vector<Node>& nodes, const Origin& origin) {
  charge(written(nodes), origin);
}

void NodeBudget::charge(const std::vector<const Node*>& nodes, const Origin& origin) {
  int64_t count = 0;
  for (const Node* node : nodes) count += written(*node, 0);
  charge(count, origin);
}

void NodeBudget::charge(int64_t count, const Origin& origin) {
  read_ += count;
  if (read_ > most_)
    throw CompileError(kTooMuchWork, origin, "{}: more than {} nodes once functions are inlined",
                       path_, most_);
}

// The nodes of a list, with those of graphs in their attributes: these count, whether they are
// converted or not, since they are looked through.
int64_t NodeBudget::written(const std::vector<Node>& nodes, int depth) {
  const auto known = written_.find(&nodes);
  if (known != written_.end()) return known->second;
  int64_t count = 0;
  for (const Node& node : nodes) count += written(node, depth);
  return written_[&nodes] = count;
}

int64_t NodeBudget::written(const Node& node, int depth) {
  int64_t count = 1;
  if (depth < kDeepest)
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attribute.value))
        count += written((*graph)->nodes, depth + 1);
  return count;
}

std::string name_of(const Node& node) {
  return printable(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
}

Origin origin_of(const Node& node, const std::string& path) {
  std::string name = node.name;
  for (const std::string& output : node.outputs)
    if (name.empty()) name = output;
  const std::string domain = node.domain.empty() ? "" : node.domain + ".";
  return Origin::model(path, printable(name), printable(domain + node.op_type));
}

namespace {

void add_free_names(const Graph& graph, std::set<std::string>& names, const std::string& path,
                    int depth);

std::set<std::string> read_names(const Node& node, const std::string& path, int depth) {
  std::set<std::string> names;
  for (const std::string& input : node.inputs)
    if (!input.empty()) names.insert(input);
  for (const auto& [name, attribute] : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attribute.value);
    if (!graph) continue;
    if (depth >= kDeepest)
      throw CompileError(kLimitExceeded, origin_of(node, path),
                         "graphs stand more than {} deep within one another", kDeepest);
    add_free_names(**graph, names, path, depth + 1);
  }
  return names;
}

void add_free_names(const Graph& graph, std::set<std::string>& names, const std::string& path,
                    int depth) {
  std::set<std::string> own;
  for (const ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const Tensor& tensor : graph.initializers) own.insert(tensor.name);
  for (const Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  for (const Node& node : graph.nodes)
    for (const std::string& name : read_names(node, path, depth))
      if (!own.count(name)) names.insert(name);
  for (const ValueInfo& output : graph.outputs)
    if (!own.count(output.name)) names.insert(output.name);
}

}  // namespace

std::set<std::string> read_names(const Node& node, const std::string& path) {
  return read_names(node, path, 0);
}

std::set<std::string> free_names(const Graph& graph, const std::string& path) {
  std::set<std::string> names;
  add_free_names(graph, names, path, 0);
  return names;
}

std::vector<const Node*> ordered(const std::vector<Node>& nodes,
                                 const std::set<std::string>& own_names, const Scope& outer,
                                 const std::vector<std::string>& results, const std::string& path) {
  std::map<std::string, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (own_names.count(output))
        throw CompileError(kBadModel, origin_of(nodes[i], path),
                           "`{}` is an input or initialiser of the graph and defined again",
                           printable(output));
      const auto [it, added] = producer.emplace(output, i);
      if (!added)
        throw CompileError(kBadModel, origin_of(nodes[i], path), "`{}` is defined twice",
                           printable(output))
            .note(origin_of(nodes[it->second], path), "first defined here");
    }
  }
  const auto defined = [&](const std::string& name) {
    return own_names.count(name) != 0 || outer.find(name) != nullptr;
  };
  std::vector<size_t> waits(nodes.size(), 0);
  std::vector<std::vector<size_t>> readers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<size_t> sources;
    for (const std::string& name : read_names(nodes[i], path)) {
      const auto it = producer.find(name);
      if (it != producer.end()) {
        sources.insert(it->second);
      } else if (!defined(name)) {
        throw CompileError(kBadModel, origin_of(nodes[i], path),
                           "input `{}` is defined by no node, initialiser or graph input",
                           printable(name));
      }
    }
    waits[i] = sources.size();
    for (const size_t source : sources) readers[source].push_back(i);
  }
  for (const std::string& name : results)
    if (!producer.count(name) && !defined(name))
      throw CompileError(kBadModel, {}, "{}: graph output `{}` is defined nowhere", path,
                         printable(name));
  // The earliest node of the file that is ready comes first.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  std::vector<const Node*> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(&nodes[i]);
    for (const size_t reader : readers[i])
      if (--waits[reader] == 0) ready.push(reader);
  }
  if (order.size() == nodes.size()) return order;
  // Walk back from a node that waits, to nodes that it waits for, until one comes again.
  size_t at = 0;
  while (waits[at] == 0) ++at;
  std::vector<size_t> trail;
  std::map<size_t, size_t> place;
  while (place.emplace(at, trail.size()).second) {
    trail.push_back(at);
    for (const std::string& name : read_names(nodes[at], path)) {
      const auto it = producer.find(name);
      if (it == producer.end() || waits[it->second] == 0) continue;
      at = it->second;
      break;
    }
  }
  CompileError error(kBadModel, origin_of(nodes[at], path), "the node depends on its own result");
  const size_t start = place[at];
  for (size_t i = start + 1; i < trail.size() && i < start + 9; ++i)
    error.note(origin_of(nodes[trail[i]], path), "through this node");
  throw error;
}

}  // namespace tenon::onnx
