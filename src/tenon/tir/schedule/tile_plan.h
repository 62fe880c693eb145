// SPDX-License-Identifier: Apache-2.0
// Plans of contractions, and of every reduction that keeps a tile of outputs in registers: the roles
// of a block's axes, and what is chosen for them by the model of the machine. Nothing here changes a
// schedule; tiles.cpp applies a plan. Internal to the default schedule.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/tir/schedule/roles.h"
#include "tenon/tir/schedule/tile_rules.h"

namespace tenon::tir {

/// Axes of a block by how its accesses move along them.
struct TileRoles {
  Ref<Var> lane;                // the output and an operand are consecutive along it
  std::vector<Ref<Var>> n;      // only operands that are consecutive along the lane move
  std::vector<Ref<Var>> m;      // only the other operands move
  std::vector<Ref<Var>> batch;  // both move, or neither
  std::vector<Ref<Var>> k;      // the reduction, in the order in which the weights lie
  bool depthwise = false;       // every operand moves along the lane
  bool flat = false;            // rows of outputs that follow each other are one long row
  bool window = false;          // the reduction reads neighbours of an output
  int64_t window_stride = 1;    // along the innermost axis of `m`
  bool overlaps = false;        // steps of the last reduction axis read what neighbours read
  size_t joinable_k = 1;  // last axes of `k` that every operand goes through as if they were one
};

/// The axis along which the output and an operand are consecutive, and no operand strides.
std::optional<size_t> lane_of(const Block& block, const BlockAccesses& accesses);

/// The roles of a block with linear accesses. `flat` says that the two innermost axes of `m` can be
/// joined; they are not yet.
TileRoles roles_of(const Block& block, const BlockAccesses& accesses, size_t lane);

/// What is chosen for one nest of a contraction, from its roles and extents.
struct TilePlan {
  /// An axis and its extent; 0: known at run time.
  struct Axis {
    std::string name;
    int64_t extent;
  };
  enum class Tasks : uint8_t { kNone, kRows, kColumns };
  enum class Algorithm : uint8_t {
    kContraction,  // weights in vectors, the other operand broadcast
    kRow,          // one row of outputs, bound by reading the weights
    kWindow,       // every operand in vectors
    kDots,         // a few columns: vectors along the reduction
  };

  Algorithm algorithm = Algorithm::kContraction;
  std::vector<Axis> batch, n, m, k;
  Axis lane;
  bool flat = false;
  std::string packed;              // the operand that is copied so that lanes are consecutive
  int64_t lanes = 1;               // of a vector
  bool vectors_along_lane = true;  // or along the innermost axis of `n`
  TileChoice choice;
  int64_t unrolled_fmas = 0;   // of an unrolled body, at most; 0: no steps are unrolled
  int64_t unrolled_steps = 1;  // of the reduction, that follow for a whole tile
  size_t joined_k = 1;         // last axes of `k` that are one loop
  Tasks tasks_of = Tasks::kNone;
  int64_t tasks = 1;           // into which these rows or columns are cut
  bool tasks_outside = false;  // of the loop over weights
  int64_t even_columns = 0;    // these are cut, and the rest is a nest of its own; 0: all are
  int64_t even_vectors =
      0;  // these along `n`, and the rest, are nests of their own; 0: all are one
  int64_t panel_distance = 0;  // iterations of the outer loops, as one, to the next panel; 0: none
  int64_t task_panels =
      1;  // iterations of the outer loops that are one task, where there are no `tasks`
  bool prefetches = false;       // the next panel, where its weights are constant
  bool fetches_columns = false;  // and its inputs, which leave the second cache between two panels
  double seconds = 0;            // predicted, on one thread; 0: there is no model
  double next_seconds = 0;       // of the next best tile; 0: there is none
  bool assumes_lengths = false;  // the model's, for extents that are known only at run time

  const Tile& tile() const { return choice.tile; }
  /// Whether tasks of rows stand inside the loop over weights.
  bool tasks_share_panels() const { return tasks > 1 && !tasks_outside; }
};

const char* name_of(TilePlan::Algorithm algorithm);

/// "contraction: M i[128], K k[256], lane j[512]; tile 6 x 1 x 4 (rows, columns, vectors of 16); ...":
/// one line.
std::string str(const TilePlan& plan);

struct GivenNest;

/// One nest: of the block, with the roles of its axes; `length` outputs along the lane in vectors of
/// `lanes`, of elements of at most `element_bits`. `grown`: the last panel of columns is not full.
struct TileNest {
  const Block& block;
  const BlockAccesses& accesses;  // of the block, or of what it was before axes were joined or cut
  size_t lane_axis = 0;           // in `accesses`
  const TileRoles& roles;
  int64_t length = 1, lanes = 1, element_bits = 32;
  bool grown = false;
  const GivenNest* given = nullptr;  // taken instead of what the model would choose
  bool leaves_columns = false;       // columns may be left to another nest,
  bool leaves_vectors = false;       // and vectors
  int64_t tasks = 0;                 // of columns, where they are known
  bool far_weights = false;          // kFarConstants
};

/// \throws CompileError (kBadPlan) where what is given does not fit the nest.
TilePlan plan_tiles(const TileNest& nest, const Target& target);

/// Schedules a reduction with registers of accumulators: contractions, windows, sums over outer axes.
/// \param given  the plans of all nests, or nothing: the model chooses.
/// \param options  see TileOptions
/// \returns the plans that were applied, one for each nest: lanes that are left over have their own.
/// \throws CompileError (kScheduleIllegal) where the block does not suit; kBadPlan where what is given
/// does not fit it; `schedule` may then be changed.
struct TileOptions {
  bool takes_in_reader =
      true;  // the only block that reads the result runs in its tiles, where it can
  bool first_axis_outside =
      false;               // a serial loop over the block's first axis is around all others
  bool is_serial = false;  // no loop is parallel
};
std::vector<TilePlan> schedule_tiles(Schedule& schedule, const BlockRV& block, const Target& target,
                                     std::span<const GivenNest> given = {},
                                     const TileOptions& options = {});

/// Steps of a reduction of `extent` (0: known at run time) that are unrolled around a tile of so many
/// accumulators, for a body of at most `fmas` multiply-adds.
int64_t unrolled_steps(int64_t extent, int64_t accumulators, int64_t fmas,
                       const MachineModel& model);

}  // namespace tenon::tir
