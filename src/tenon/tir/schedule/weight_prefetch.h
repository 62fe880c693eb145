// SPDX-License-Identifier: Apache-2.0
// Prefetches weights that do not stay in cache, while the panel before them is in use.
#pragma once

#include "tenon/support/target.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// The loops of one tile of a contraction, as they stand when it is scheduled.
struct PanelStream {
  std::vector<LoopRV> reduction;         // outermost first
  std::optional<LoopRV> unrolled;        // its steps that are unrolled, inside of these
  LoopRV panels;                         // the loop that goes from panel to panel
  int64_t distance = 1;                  // its iterations from one panel to the next
  int64_t tasks = 1;                     // of rows, which are iterations of `panels`
  LoopRV tiles;                          // the tiles that read one panel
  std::optional<LoopRV> row_tiles = {};  // around `tiles`
  int64_t sums = 1;                      // vectors of results in a tile
  int64_t before = 0;                    // tiles of other pieces that read the panel first
  int64_t passes = 0;                    // tiles of all pieces; 0: unknown
};

/// Whether elements hold numbers of few bits, of which a float, like `sum`, is made for each product.
bool shares_elements(const Buffer& buffer, DType sum);

/// Whether panels of `weights`, a read of `block`, come from beyond the second cache, and are small enough that one is
/// fetched while another is in use (panels_l2_quarters): by their size, or where `is_far` (kFarConstants) and the first
/// cache is too small for all. A panel is a place of the outermost dimension, or the part of it that the block
/// reads. Of numbers that share elements the size of all panels does not matter: hints cost nothing beside their
/// conversion.
bool streams_panels(const Block& block, const BufferRegion& weights, const Target& target,
                    bool is_far);

/// Panels from one in use to the one that is fetched meanwhile: more than one of small panels of numbers
/// that share elements, which are used up before the next has come.
int64_t panels_ahead(const Buffer& buffer, DType sum, const Target& target);

/// Hints of the next panel, spread evenly over the tiles that read this one: so that the requests
/// neither come in a burst nor repeat. For panels of a parameter for which
/// streams_panels() holds; nothing elsewhere.
void prefetch_weights(Schedule& schedule, const BlockRV& block, const PanelStream& stream,
                      const Target& target);

/// The loops of a tile by which it reads blocks of channels: columns follow one another, blocks do not.
struct ColumnStream {
  LoopRV step;   // the innermost loop of the reduction that is not unrolled: goes through a block
  LoopRV ahead;  // the loop around it: goes from block to block
  std::vector<LoopRV> registers;  // the columns of the tile among them
};

/// Hints of the columns that the next block of channels has, a line of them in each step. Such lines are too far
/// apart for a machine to foresee, and a step too short to wait for the third cache. For inputs that are given, of
/// lines of one block; nothing elsewhere.
void prefetch_columns(Schedule& schedule, const BlockRV& block, const ColumnStream& stream,
                      const Target& target);

}  // namespace tenon::tir
