// SPDX-License-Identifier: Apache-2.0
// Counts the work of a block, from which costs of kernels are estimated.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// What a block does at a point of its axes.
enum class WorkKind : uint8_t {
  kMoves,     // it stores what it loads, or a constant
  kComputes,  // arithmetic
  kContracts  // it adds a product of two loads to what it stores to
};

struct BlockWork {
  WorkKind kind = WorkKind::kMoves;
  double points = 0;  // of its axes; an extent that is not known counts as 1
};
BlockWork work_of(const Block& block);

/// The blocks right below the root block, in order; none where there is no root block.
std::vector<Ref<Block>> blocks_of(const PrimFunc& function);

}  // namespace tenon::tir
