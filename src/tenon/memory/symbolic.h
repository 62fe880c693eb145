// SPDX-License-Identifier: Apache-2.0
// Memory planning where sizes are expressions of dimensions that are known only at run time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/ir/expr.h"
#include "tenon/memory/plan.h"

namespace tenon::memory {

/// A buffer whose size may be symbolic. One pool; make a call for each.
struct SymbolicAllocation {
  std::string name;
  Expr bytes;  // an integer scalar; >= 0 wherever every dimension in it is >= 1
  int64_t alignment = 1;
  int64_t lower = 0, upper = 0;  // alive at the steps lower <= t < upper
  Origin origin = {};
};

/// True where a <= b is proved for all values >= 1 of the dimensions; false where it is not known.
using ProvesLessEqual = std::function<bool(const Expr& a, const Expr& b)>;

/// Knows equal structures, constants, and a constant factor over the same rest (`n * 4 <= n * 8`).
bool proves_less_equal_by_structure(const Expr& a, const Expr& b);

struct SymbolicOptions {
  PlanOptions constants = {};  // for the buffers of constant size
  ProvesLessEqual proves_less_equal = proves_less_equal_by_structure;
};

struct SymbolicPlan {
  std::vector<Expr> offsets;   // int64, for each buffer
  Expr total;                  // int64: the bytes of the whole, a constant where all sizes are
  Plan constants;              // of the buffers of constant size alone, in their order
  int64_t constant_bytes = 0;  // the part [0, constant_bytes) that they take
  size_t slots = 0;            // that the others share
};

/// Places every buffer so that no two that live at once overlap, whatever value >= 1 the dimensions
/// have (as long as the total fits 64 bits: whoever evaluates it at run time checks that). Buffers
/// of constant size are packed by plan(); above them the others share slots, each as large as its
/// largest member: interval colouring, where a buffer prefers a free slot that is provably large
/// enough, then one that is provably smaller, then any, whose size becomes a `max`.
///
/// \throws CompileError kBadProblem as validate() does, and where a size is no integer scalar.
SymbolicPlan plan_symbolic(const std::vector<SymbolicAllocation>& buffers,
                           const SymbolicOptions& options = {});

}  // namespace tenon::memory
