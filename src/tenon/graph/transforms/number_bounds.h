// SPDX-License-Identifier: Apache-2.0
// Bounds that the user states of numbers which only the run knows: module attribute `bounds`, a map
// from the names of numbers to the most that they are.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

class NumberBounds {
 public:
  explicit NumberBounds(const IRModule& module);

  /// The program reads `number` here. Appends the check of its bound, where it has one: memory of
  /// sizes by it is then planned before the run.
  void read(const tenon::Var& number, const Origin& origin, std::vector<tir::Stmt>& out);
  /// \throws CompileError (kBadOption) where a bound is of no number that was read.
  void check_all_read() const;

 private:
  AttrValue::Map bounds_;
  std::vector<std::string> names_;  // of numbers that were read
};

}  // namespace tenon::graph
