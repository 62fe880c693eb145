// SPDX-License-Identifier: Apache-2.0
// The story of one node of a model: what became of it from pass to pass, down to the functions,
// buffers and symbols of the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "tenon/driver/offload.h"
#include "tenon/ir/pass.h"
#include "tenon/support/remarks.h"
#include "tenon/support/target.h"

namespace tenon {

/// Nodes are those of an ONNX network by their names, or variables of a script's `main`.
class Story {
 public:
  /// \param imported  the module as it came.
  /// \throws CompileError (kUndefined) where it has no such node, with the nearest names.
  Story(std::string node, const IRModule& imported);

  /// To be called after each pass.
  void after(const Pass& pass, const IRModule& module);
  /// To be called in the end. What a pass decided about the node, or about what it became, is told.
  void finish(const std::vector<Remark>& remarks, const Target& target);

  std::string text() const;
  nlohmann::ordered_json json() const;

 private:
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

  bool is_about(const Origin& origin) const;
  std::vector<std::string> lines_in(const IRModule& module);
  void find_calls(const IRModule& module, const BaseFunc& main);
  void find_group(const IRModule& module);

  std::string node_, origin_;
  bool is_variable_ = false;      // a script's
  std::set<std::string> places_;  // its origins, where it is a variable
  std::vector<Step> steps_;
  std::vector<Group> groups_;
  std::vector<std::string> kernels_;    // that `main` calls for it in the end
  std::vector<std::string> libraries_;  // symbols of foreign functions
  std::vector<Place> buffers_;
  std::vector<std::string> symbols_;  // in the artefact
  std::vector<Remark> remarks_;
  std::vector<Placement> placements_;
  bool is_planned_ = false;
};

/// The names by which a user may ask for a node of a model: of its nodes, and of variables of
/// `main`.
std::vector<std::string> node_names(const IRModule& module);

/// A remark as every --json of remarks writes it.
nlohmann::ordered_json json_of(const Remark& remark);

}  // namespace tenon
