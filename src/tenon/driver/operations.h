// SPDX-License-Identifier: Apache-2.0
// Counts the operators of a model and the floating-point operations of its contractions.
#pragma once

#include "tenon/ir/module.h"

namespace tenon {

struct Operations {
  int64_t operators = 0;  // calls of graph operators in `main`; of kernels where it is lowered
  /// Two for each multiply-accumulate of convolutions, matrix products and recurrences; 0 where a
  /// size that matters is symbolic.
  double flop = 0;
};
Operations count_operations(const IRModule& module);

}  // namespace tenon
