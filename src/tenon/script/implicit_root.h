// SPDX-License-Identifier: Apache-2.0
// The rule by which a PrimFunc's text may leave out its root block.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::script {

/// Whether the reader puts a root block round a function's `body`: it allocates at its top, is one
/// block with axes, or is no block and contains one.
bool gets_root_block(const tir::Stmt& body, bool allocates);

bool contains_block(const tir::Stmt& stmt);

}  // namespace tenon::script
