// SPDX-License-Identifier: Apache-2.0
// Roles of a block's axes, from the strides of its linear accesses. Internal to the default
// schedule.
#pragma once

#include <optional>
#include <vector>

#include "tenon/support/target.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// An access as a linear function of the block's axes: elements that one step of each axis moves.
struct LinearAccess {
  Ref<Buffer> buffer;
  std::vector<Expr> strides;  // one for each axis; simplified; no number where it jumps
  /// For each axis, the dimension of the buffer that it moves in, and by how many indices; no
  /// dimension where it stands still, or moves in more than one.
  struct Step {
    std::optional<size_t> dim;
    Expr indices;
  };
  std::vector<Step> steps;
  bool moves(size_t axis) const { return !is_int(strides[axis], 0); }
  bool is_unit(size_t axis) const { return is_int(strides[axis], 1); }
};

/// The store's access of a block with one store, then its loads in order (one for each different
/// place; what a reduction accumulates does not count). Nothing where an index is not linear.
struct BlockAccesses {
  LinearAccess store;
  std::vector<LinearAccess> loads;
};
/// \param takes_gathers  whether an axis may jump as elements of another buffer say, which are no
/// loads of their own then.
std::optional<BlockAccesses> linear_accesses(const Block& block, bool takes_gathers = false);

/// Constant divisors c > 1 of `axis // c` and `axis % c` in the block's indices, by axis; 0 where
/// there is none, and of a reduction's axis that has no whole number of them (it stays as it is).
std::vector<int64_t> div_mod_divisors(const Block& block);

/// The loop that carries axis `axis` of a block, or nothing where it stands still.
std::optional<LoopRV> loop_of_axis(Schedule& schedule, const BlockRV& block, size_t axis);

/// Extent of an axis where it is a constant, 0 where it is not.
int64_t extent_of(const IterVar& iter);

/// The divisor of n nearest to `wanted` from above, at most `n`.
int64_t divisor_at_least(int64_t n, int64_t wanted);

// ---- schedules of one block; each throws CompileError (kScheduleIllegal) where it does not suit,
// and may then have changed `schedule`.

/// A reduction over consecutive elements: lanes hold partial results.
struct RowReduction {
  BlockRV part, whole;
  Expr full;                    // vectors that are full
  std::vector<BlockRV> halves;  // that join the lanes, in order, before `whole` does
};
RowReduction split_row_reduction(Schedule& schedule, const BlockRV& block, const Target& target);
void finish_row_reduction(Schedule& schedule, const RowReduction& reduction,
                          const MachineModel& model);

/// An element-wise block: joined axes, vectors, parallel outer loops.
void schedule_elementwise(Schedule& schedule, const BlockRV& block, const Target& target);
/// Joins neighbouring axes that every access walks through as one.
void join_axes(Schedule& schedule, const BlockRV& block);
/// Whether a block calls no functions; conditions do not count.
bool is_cheap(const Block& block);
/// Vectors for the loop of the last axis of a spatial block, whatever loops are around it.
void vectorize_last_axis(Schedule& schedule, const BlockRV& block, const Target& target);
/// Makes the outer loops of a nest one parallel loop of tasks; each of their iterations does `work`
/// units. The loops are replaced by what is returned: the loop inside a task.
LoopRV parallelize(Schedule& schedule, const std::vector<LoopRV>& loops, int64_t work,
                   const MachineModel& model);

}  // namespace tenon::tir
