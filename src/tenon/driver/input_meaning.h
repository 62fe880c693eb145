// What the inputs of a program are used for, as far as it decides which values they may have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/tir/stmt.h"

namespace tenon {

struct InputMeaning {
  enum class Kind : uint8_t {
    kValue,
    kIndex,     // into an axis of `extent`; below 0 from its end where `from_end`
    kCount,     // 0 to `extent`: lengths
    kDivisor,   // not 0
    kPositive,  // arguments of logarithms and roots, variances, scales
    kUnit,      // in [-1, 1]: arguments of asin and acos
    kShift,     // 0 to one below the bits of its type
    kSteers,    // integers from which indices or shapes are computed: 0 or 1, which are legal for
                // nearly all that may be computed from them
  };
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
