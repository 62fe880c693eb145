// SPDX-License-Identifier: Apache-2.0
// Checks of sizes that a program makes: no value has a negative dimension, nor so many elements that
// sums of sizes wrap.
#pragma once

#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::graph {

/// Appends to `checks` what runs before anything else: no buffer among `outputs` and the allocations
/// in `stmts` whose size follows from dimensions of `inputs` and from `scalars` (numbers in them)
/// has a negative dimension (a window that is larger than its axis), or, where scalars give it, too
/// many elements. Places in memory are sums of such sizes.
void check_given_sizes(std::span<const Ref<tir::Buffer>> inputs,
                       std::span<const Ref<tir::Buffer>> outputs,
                       std::span<const Ref<tenon::Var>> scalars,
                       const std::vector<tir::Stmt>& stmts, std::vector<tir::Stmt>& checks);

/// Checks of sizes that are known only when part of the program has run.
class LateSizeChecks {
 public:
  /// A number that the program reads while it runs.
  void add(const Node* var) { late_.insert(var); }
  /// Whether one stands in `node`.
  bool depends(const NodePtr& node) const;
  /// Appends the checks of `buffer`, whose size is known here, to `out`.
  void check(const tir::Buffer& buffer, std::vector<tir::Stmt>& out);

 private:
  std::unordered_set<const Node*> late_;
  std::set<std::string> checked_;  // dimensions
};

}  // namespace tenon::graph
