// SPDX-License-Identifier: Apache-2.0
// Register tiles of contractions by cost, without search: which accumulators a kernel of given
// extents holds. Costs were fitted to measurements of direct kernels (vector loads of weights,
// broadcast loads of the other operand, one fused multiply-add for each accumulator and step).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tenon/support/target.h"

namespace tenon::tir {

/// `rows` x `cols` x `vectors` accumulators: rows and columns of outputs, vectors of lanes.
struct Tile {
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t vectors = 1;
  bool operator==(const Tile&) const = default;
};

/// The extents that a tile is chosen for. An extent that is not known at compile time is 0.
struct TileProblem {
  int64_t height = 1;        // of outputs; 1 where they are flat
  int64_t width = 1;         // of outputs
  int64_t vectors = 1;       // vectors of outputs in the other direction
  int64_t steps = 1;         // of the reduction
  int64_t stride = 1;        // of the window along the width
  int64_t step_bytes = 0;    // weights of one vector that one outer step of the reduction reads
  int64_t vector_bytes = 0;  // one vector of weights
  int64_t most_vectors = std::numeric_limits<int64_t>::max();  // of the tile
  int64_t products = 1;                                        // instructions of an output and step
  double weight_instructions = 0;  // of a vector of weights and step, beside its load
  int64_t registers = 1;  // of an output: its sum, and those beside it (analysis/integer_sum.h)
  bool window = false;    // the reduction reads neighbours of a pixel too (not 1x1)
  bool vectors_divide = true;  // the tile's vectors must divide `vectors`
  bool all_vectors = false;    // the tile has all `vectors`, where the registers suffice
};

/// The part of a problem that follows from so many products of 8 bits in each term.
void of_digits(TileProblem& problem, int64_t products);

/// The part of a problem that follows from its reduction: the extents in the order in which the
/// weights lie, and the bytes of one vector of weights.
TileProblem contraction(const std::vector<int64_t>& reduction, int64_t vector_bytes);

/// "1 x 6 x 4".
std::string str(const Tile& tile);

/// Cycles for all of a problem in tiles of one size, whose parts are balanced. Lengths that are known
/// only at run time are those that the model assumes.
double tiled_cycles(const Tile& tile, const TileProblem& problem, const Target& target);

/// A tile, and the next best one. Cycles are 0 where there is no such tile or no model of it.
struct TileChoice {
  Tile tile;
  double cycles = 0;
  Tile next;
  double next_cycles = 0;
};

/// The cheapest tile for the target's registers. Deterministic; ties go to more columns.
TileChoice choose_tile(const TileProblem& problem, const Target& target);

/// Tiles of two widths, which differ by one vector, each width in a nest of its own: for numbers of vectors
/// that have no good divisor, such as primes. `choice` is the best tile of one width.
/// \returns how many of the vectors are in the wider tiles; 0 where two widths are not faster than `choice`.
/// Also 0 for a window with one panel: its rows of padding are made in the nest, and cannot be for two.
int64_t even_vectors(const TileProblem& problem, const TileChoice& choice, const Target& target);

/// The cheapest tile for windows over channels: enough accumulators to hide the latency of an addition.
/// Columns that divide the width are preferred: the tiles are then one nest, into which rows of
/// padding can be copied.
Tile choose_window_tile(const TileProblem& problem, const Target& target);

/// The largest divisor of n that is at most `most`.
int64_t widest_divisor(int64_t n, int64_t most);

/// `n` cut into ceil(n / tile) parts whose sizes differ by one at most: {size, count}, the larger
/// size first. One pair where they are equal.
std::vector<std::pair<int64_t, int64_t>> balanced_parts(int64_t n, int64_t tile);

}  // namespace tenon::tir
