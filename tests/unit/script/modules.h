// SPDX-License-Identifier: Apache-2.0
// Modules built from nodes, which the tests of printer and parser share.
#pragma once

#include "tenon/graph/op.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"

namespace tenon::script {

/// C = A @ B with a reduction block under a root block, sizes as given; index dtype int64.
Ref<tir::PrimFunc> matmul(Expr n, Expr k, Expr m);
/// A function without blocks: views, allocations, vectors, masks, asserts, loops of every kind.
Ref<tir::PrimFunc> lowered();

}  // namespace tenon::script
