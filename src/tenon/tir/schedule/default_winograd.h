// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's forms: which one pays, and its schedule. Internal to the default schedule.
#pragma once

#include <optional>
#include <vector>

#include "tenon/support/target.h"
#include "tenon/tir/schedule/tile_plan.h"

namespace tenon::tir {

/// Blocks with this annotation compute something of constants alone, before the program runs
/// (SplitLayoutRewritePreproc). TVM's key, without the name of its tuner.
inline constexpr const char* kLayoutRewritePreproc = "layout_rewrite_preproc";

/// What is chosen for a convolution.
struct WinogradChoice {
  int64_t tile = 4;         // outputs along each axis
  int64_t block_tiles = 1;  // tiles that are transformed together, so that they stay in cache
  int64_t tasks = 1;        // of as many blocks each, with memory of its own; 1: loops of a block
  double seconds = 0, direct_seconds = 0;  // predicted, on one thread
};

/// The form that the model of the machine holds to be faster than direct sums, in blocks of as many
/// tiles as have their transforms in `room` bytes, or more in `grown`, where also F(6x6, 3x3) must have
/// them; nothing where none is, or where the block is no convolution of 3 x 3 taps of stride 1 over
/// channels in vectors.
std::optional<WinogradChoice> choose_winograd(const Block& block, const Target& target,
                                              int64_t room, int64_t grown = 0);

/// Bytes that the transforms take, one block of tiles for each task; 0 where the block is no such convolution.
int64_t winograd_bytes(const Block& block, const WinogradChoice& choice);

/// The number of blocks of tiles; 0 where the block is no such convolution.
int64_t winograd_blocks(const Block& block, const WinogradChoice& choice);

/// Schedules a convolution by this form, with what reads its result. Filters must be known before the
/// program runs. \returns the plans of the products, or `given`.
/// \throws CompileError (kScheduleIllegal) where the block does not suit; `schedule` may then be changed.
std::vector<TilePlan> schedule_winograd(Schedule& schedule, const BlockRV& block,
                                        const Target& target, const WinogradChoice& choice,
                                        std::span<const GivenNest> given = {});

}  // namespace tenon::tir
