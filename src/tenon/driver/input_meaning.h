// SPDX-License-Identifier: Apache-2.0
// Infers the roles of a program's inputs (index, extent, ...), which limit made-up values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/graph/op.h"
#include "tenon/tir/stmt.h"

namespace tenon {

struct InputMeaning {
  // Of an index, below 0 from the end of its axis only where `from_end`; what steers is an integer
  // from which indices or shapes are computed: 0 or 1, which are legal for nearly all that may be
  // computed from them.
  using Kind = graph::InputUse;
  Kind kind = Kind::kValue;
  Expr extent = {};  // in terms of the function's dimensions
  bool from_end = false;
  std::vector<Expr> shape = {};  // as the function declares it
};

/// Of each parameter of a graph function: what the first use that asks for something asks, directly
/// or through operators that only move elements or change their type, in functions that it calls
/// too.
std::vector<InputMeaning> input_meanings(const IRModule& module, const graph::Function& function);

/// Of each buffer parameter of a PrimFunc.
std::vector<InputMeaning> input_meanings(const IRModule& module, const tir::PrimFunc& function);

/// Of each input of `main`, of either kind.
std::vector<InputMeaning> input_meanings(const IRModule& module);

}  // namespace tenon
