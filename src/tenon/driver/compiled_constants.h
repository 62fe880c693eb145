// SPDX-License-Identifier: Apache-2.0
// Constants that kernels make of constants, computed by compiled code.
#pragma once

#include <memory>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"
#include "tenon/tir/stmt.h"

namespace tenon {

/// Runs kernels on constants as machine code, where that gives the interpreter's bits: kernels of
/// one result without sums, which only move, add, multiply, divide, compare and select numbers, on
/// a target that rounds each by itself. They are for weights, of which there are millions; what is
/// small is interpreted sooner than it is compiled. Within a DeferredWorkScope kernels that cannot
/// fail are compiled and run later.
class CompiledConstants {
 public:
  /// The result of R.call_tir on constants; null where it is left to the interpreter.
  Ref<TensorData> evaluate(const IRModule& module, const graph::Call& call);

 private:
  struct Kernel;
  std::shared_ptr<Kernel> find(const IRModule& alone) const;
  /// `first`, and those of all other calls in `module` on constants, several at a time.
  void compile_kernels(const IRModule& module, IRModule first);
  std::vector<std::shared_ptr<Kernel>> known_;
};

}  // namespace tenon
