// SPDX-License-Identifier: Apache-2.0
// Sizes that are known only when part of a program has run: numbers that it reads from tensors, what
// bounds them, and the places from which they are known.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::memory {

/// The numbers that a program reads from memory while it runs. Level 0 is what is known before;
/// each run of neighbouring T.Binds that read memory begins another, from 1.
class LateSizes {
 public:
  explicit LateSizes(const tir::PrimFunc& function);

  size_t levels() const { return last_.size(); }
  /// The level from which every variable of `size` is known.
  size_t level_of(const Expr& size) const;
  /// A size of level 0 that `size` is never above, by what the program asserts of its numbers
  /// (`n <= 100`); null where there is none below 2^32.
  Expr bound_of(const Expr& size) const;
  /// The statement behind which the numbers of a level, from 1, are known, and checked where checks
  /// follow at once.
  const Node* last_statement(size_t level) const { return last_.at(level); }

 private:
  void visit(const tir::Stmt& stmt);
  void note_fact(const Expr& condition);
  Expr extreme(const Expr& size, bool greatest) const;
  Expr extreme_of_product(const Binary& op, bool greatest) const;

  std::vector<const Node*> last_;
  std::unordered_map<const Node*, size_t> level_;  // of a variable; absent: 0
  std::unordered_map<const Node*, Expr> most_;     // bounds of variables
  bool is_open_ = false;                           // the statement before was such a Bind
};

}  // namespace tenon::memory
