// SPDX-License-Identifier: Apache-2.0
// Numbers that a branch reads while it runs, and on which the sizes of its result depend.
#pragma once

#include <string>

#include "tenon/graph/builder.h"

namespace tenon::onnx {

/// `branch`, of which `taken` says whether it runs, so that its result has no dimension that only the
/// branch knows: it is cut at each reading of a number of that kind. What stands before runs in an If
/// of its own, which is emitted here and gives the tensor that is read, and whatever stands behind
/// needs; where the branch is not taken it gives zeros. The number is read outside, and is 0 there.
Ref<graph::SeqExpr> with_numbers_outside(graph::BlockBuilder& builder, Ref<graph::SeqExpr> branch,
                                         const Expr& taken, const std::string& name);

}  // namespace tenon::onnx
