// SPDX-License-Identifier: Apache-2.0
// Resolves the names of a graph and orders its nodes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tenon/import/onnx/context.h"
#include "tenon/import/onnx/model.h"

namespace tenon::onnx {

/// The names that are visible in a graph: its own, and those of the graphs around it.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}
  ItemRef find(const std::string& name) const {
    for (const Scope* scope = this; scope; scope = scope->outer_) {
      const auto it = scope->items_.find(name);
      if (it != scope->items_.end()) return it->second;
    }
    return nullptr;
  }
  void set(const std::string& name, ItemRef item) { items_[name] = std::move(item); }

 private:
  const Scope* outer_;
  std::map<std::string, ItemRef> items_;
};

/// How many graphs may stand within one another, and functions call one another.
inline constexpr int kDeepest = 32;

/// How many nodes a network may have once its functions are inlined. Functions that each call the
/// one before twice double the network with every one: what is read again and again has a limit that
/// follows from what is written.
class NodeBudget {
 public:
  explicit NodeBudget(const Model& model);
  /// \throws CompileError (kTooMuchWork) at `origin` where these nodes are too many.
  void charge(const std::vector<Node>& nodes, const Origin& origin);
  void charge(const std::vector<const Node*>& nodes, const Origin& origin);

 private:
  void charge(int64_t count, const Origin& origin);
  int64_t written(const std::vector<Node>& nodes, int depth = 0);
  int64_t written(const Node& node, int depth);

  std::string path_;
  int64_t read_ = 0, most_ = 0;
  std::map<const std::vector<Node>*, int64_t> written_;
};

/// Its operator, with the domain where that is not ai.onnx.
std::string name_of(const Node& node);

/// The place of a node in diagnostics.
Origin origin_of(const Node& node, const std::string& path);

/// The names that a node reads, in graphs of its attributes too.
std::set<std::string> read_names(const Node& node, const std::string& path);

/// The names that a graph takes from those around it.
std::set<std::string> free_names(const Graph& graph, const std::string& path);

/// The nodes in an order in which every value is computed before it is used: that of the file where
/// it is one. `own_names` are those given to the graph: inputs and initialisers; `outer` those around.
/// \throws CompileError (kBadModel) for a name that nothing defines, one that is defined twice, and
///     a cycle.
std::vector<const Node*> ordered(const std::vector<Node>& nodes,
                                 const std::set<std::string>& own_names, const Scope& outer,
                                 const std::vector<std::string>& results, const std::string& path);

}  // namespace tenon::onnx
