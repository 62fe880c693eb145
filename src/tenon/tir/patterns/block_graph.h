// SPDX-License-Identifier: Apache-2.0
// The blocks of a function and how they depend on one another: which can be moved, and together.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tenon/tir/effects.h"
#include "tenon/tir/patterns/definition.h"

namespace tenon::tir {

/// A block right below the root block, or a statement there that holds none.
struct GraphBlock {
  size_t item = 0;            // of the root's statements, in which it is
  Ref<BlockRealize> realize;  // null: the item as a whole
  Stmt alone;                 // the item with nothing but this in its loops
  Effects effects;
  std::optional<Definition> definition;  // none where `item` cannot be divided
  std::string why;                       // there is no definition
  /// Of a reduction: the block that starts it, which is then in `definition.init`.
  std::optional<size_t> start;
};

class BlockGraph {
 public:
  /// Of a function with a root block. \throws CompileError (kScheduleIllegal) without one.
  explicit BlockGraph(const PrimFunc& function, AxesOf axes = AxesOf::kBlock);

  const std::vector<Stmt>& items() const { return items_; }
  /// In program order.
  const std::vector<GraphBlock>& blocks() const { return blocks_; }
  /// The statements of the root block in which some of `members` stand, divided into blocks; all
  /// others stand as they are. `before` and `after` are what must run, or may as well, on either
  /// side of the members.
  struct Division {
    std::vector<Stmt> before, after;
  };
  /// Nothing where one of them is computed from another through a block that is none of them.
  std::optional<Division> divide(const std::set<size_t>& members) const;
  bool is_intermediate(const Ref<Buffer>& buffer) const;
  /// Whether it is the start of another block's reduction.
  bool is_start(size_t block) const;

 private:
  void find_starts();
  bool starts(const GraphBlock& start, const GraphBlock& update) const;
  std::string shared_loops_problem(const std::vector<size_t>& blocks) const;

  std::vector<Stmt> items_;
  std::vector<GraphBlock> blocks_;
  std::vector<Path> paths_;  // of blocks, within the function
  std::vector<Ref<Buffer>> allocs_;
  bool has_views_ = false;
};

}  // namespace tenon::tir
