// SPDX-License-Identifier: Apache-2.0
// Reductions in chunks: long ones, so that operands stay in the second cache, and those of few sums, which
// would wait for themselves. Internal to the default schedule.
#pragma once

#include <cstdint>

#include "tenon/support/target.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// Into how many chunks the reduction of a product of float32 is cut: so that the rows' operand and
/// two panels of weights of a chunk take half of the second cache, where there are many rows, and so
/// that the accumulators of all chunks hide their latency, where there are few. Of a convolution: so
/// that a chunk of a panel of filters is no larger than the second cache. 1 where nothing asks for it,
/// or where the block is no product of rows and columns whose numbers are known.
int64_t choose_chunks(const Block& block, const Target& target);

/// Cuts the reduction of a product, or the channels of a convolution, into blocks of about as many
/// steps, the first under its name, that add to its buffer one after the other, and one in front that
/// starts it.
/// \throws CompileError (kScheduleIllegal) where the block does not suit.
void cut_into_chunks(Schedule& schedule, const BlockRV& block, int64_t chunks);

}  // namespace tenon::tir
