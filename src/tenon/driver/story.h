// SPDX-License-Identifier: Apache-2.0
// The story of a node of a model: what became of it from pass to pass, down to the functions,
// buffers and symbols of the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/driver/offload.h"
#include "tenon/ir/pass.h"
#include "tenon/support/remarks.h"
#include "tenon/support/target.h"

namespace tenon {

/// What is known of one node. `tenon explain MODEL NODE` and the report are renderings of it.
struct Story {
  struct Step {
    std::string pass;  // empty: as imported
    std::vector<std::string> lines;
  };
  struct Place {
    std::string name, where;  // "workspace + 14592", "output"
    int64_t bytes = -1;       // -1: known when the program runs
  };
  struct Group {
    std::string function;
    std::vector<std::string> nodes;  // that were fused into it
  };

  std::string node, origin;
  std::vector<Step> steps;
  std::vector<Group> groups;
  std::vector<std::string> kernels;    // that `main` calls for it in the end
  std::vector<std::string> libraries;  // symbols of foreign functions
  std::vector<Place> buffers;
  std::vector<std::string> symbols;  // in the artefact
  std::vector<Remark> remarks;
  std::vector<Placement> placements;
};

std::string text_of(const Story& story);
nlohmann::ordered_json json_of(const Story& story);

/// Gathers stories while passes run. Nodes are those of an ONNX network by their names, or
/// variables of a script's `main`.
class Storyteller {
 public:
  /// Of one node. \param imported  the module as it came.
  /// \throws CompileError (kUndefined) where it has no such node, with the nearest names.
  Storyteller(const std::string& node, const IRModule& imported);
  /// Of every node of the model, in their order: those of a network, or, where it has none, the
  /// variables of `main`.
  explicit Storyteller(const IRModule& imported);

  /// To be called after each pass.
  void after(const Pass& pass, const IRModule& module);
  /// To be called in the end. What a pass decided about a node, or about what it became, is told.
  std::vector<Story> finish(const std::vector<Remark>& remarks, const Target& target);

 private:
  // The stories that something with this origin belongs to.
  std::set<size_t> about(const Origin& origin) const;
  bool add_node(const std::string& node, const IRModule& imported);
  bool add_variable(const std::string& name, const IRModule& imported);
  void begin(const IRModule& imported);
  std::vector<std::vector<std::string>> lines_in(const IRModule& module);
  void find_calls(const IRModule& module, const BaseFunc& main);
  void find_groups(const IRModule& module);
  const std::string& line_of(const NodePtr& node);

  std::vector<Story> stories_;
  std::unordered_map<std::string, size_t> by_node_;                // of a network
  std::unordered_map<std::string, std::vector<size_t>> by_place_;  // origins of variables
  // Most of a module is the same after a pass: what was printed once is not printed again.
  std::unordered_map<const Node*, std::pair<NodePtr, std::string>> printed_;
  bool is_planned_ = false;
};

/// The names by which a user may ask for a node of a model: of its nodes, and of variables of
/// `main`.
std::vector<std::string> node_names(const IRModule& module);

/// Calls `visit` with each origin that this one was merged from, or with itself.
void each_part(const Origin& origin, const std::function<void(const Origin&)>& visit);

/// A remark as every --json of remarks writes it.
nlohmann::ordered_json json_of(const Remark& remark);

}  // namespace tenon
