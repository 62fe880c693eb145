// SPDX-License-Identifier: Apache-2.0
// Matches of back ends' patterns in one graph function, with what the back ends say of them.
#pragma once

#include <unordered_map>

#include "tenon/graph/backend.h"
#include "tenon/graph/transforms/composites.h"

namespace tenon::tune {

/// A match, and whether its back end takes it.
struct Found {
  const graph::Backend* backend;
  const graph::FusionPattern* pattern;
  graph::Match match;
  graph::Composite composite;
  graph::Verdict verdict;
  std::optional<double> declared;  // seconds
  int64_t priority = 0;            // the pattern's, or what its signature states

  const std::string& name() const { return pattern->name; }
  /// What the match's result is bound to; its annotation stands under this name.
  const Ref<graph::Var>& root() const { return match.outputs.back(); }
};

class PlacementSearch {
 public:
  PlacementSearch(const IRModule& module, const Ref<graph::Function>& function);

  /// The matches of the back end's graph patterns, refused ones too, in the order of priority and
  /// registration, then of bindings. `backend` must outlive them.
  std::vector<Found> all(const graph::Backend& backend) const;
  /// Those whose root is this binding, of patterns called `name` (or any, where it is empty).
  std::vector<Found> at(const graph::Backend& backend, const Ref<graph::Binding>& root,
                        const std::string& name) const;
  /// The block in which all of a match that is accepted stands.
  const graph::BindingBlock& block_of(const Found& found) const;
  /// Where a pattern matches nothing: what came nearest.
  std::string nearest(const graph::FusionPattern& pattern) const;
  /// What kept the patterns from matching at this binding, whose operator they begin with.
  std::string near_misses(const graph::Backend& backend, const Ref<graph::Binding>& root) const;

 private:
  std::optional<Found> match(const graph::Backend& backend, const graph::FusionPattern& pattern,
                             const Ref<graph::Binding>& root, std::string* why = nullptr) const;
  graph::Verdict legal(const graph::Match& match) const;

  const IRModule& module_;
  Ref<graph::Function> function_;
  graph::Matcher matcher_;
  std::unordered_map<const Node*, const graph::BindingBlock*> block_of_;  // by variable
};

}  // namespace tenon::tune
