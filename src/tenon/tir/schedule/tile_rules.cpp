// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/tile_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::tir {

std::vector<std::pair<int64_t, int64_t>> balanced_parts(int64_t n, int64_t tile) {
  const int64_t tiles = (n + tile - 1) / tile;
  const int64_t small = n / tiles, large_count = n % tiles;
  std::vector<std::pair<int64_t, int64_t>> parts;
  if (large_count > 0) parts.emplace_back(small + 1, large_count);
  parts.emplace_back(small, tiles - large_count);
  return parts;
}

namespace {

/// Cycles of one reduction step of a tile: multiply-adds, loads and broadcasts share two ports.
double step_cycles(int64_t pixels, int64_t vectors, const TileProblem& problem,
                   const Target& target) {
  const double n = static_cast<double>(pixels * vectors);
  const double loads = static_cast<double>(pixels + vectors);
  double weight = 0.05;
  // Weights that leave the nearest cache between two tiles: by bytes of a vector.
  if (problem.step_bytes * vectors > 20 * 1024) weight = 0.6 * target.vector_bits / 512;
  double cycles = std::max({n / 2, loads / 2, (n + loads + 1) / 4, 4.0}) + 0.13 * loads +
                  weight * static_cast<double>(vectors);
  if (n > 28) cycles += 0.06 * n;
  // Each broadcast serves one multiply-add only and is no operand of it.
  if (vectors == 1 && target.vector_registers < 32) cycles += 0.06 * n;
  return cycles;
}

double tile_cost(int64_t pixels, int64_t vectors, const TileProblem& problem,
                 const Target& target) {
  const double steps = static_cast<double>(std::max<int64_t>(problem.steps, 1));
  return steps * step_cycles(pixels, vectors, problem, target) +
         3 * static_cast<double>(pixels * vectors) + 20;
}

}  // namespace

Tile choose_tile(const TileProblem& problem, const Target& target) {
  const int64_t registers = target.vector_registers;
  // Spare registers: the compiler hoists loads across unrolled steps, and a spill costs more than
  // any difference between tiles.
  const int64_t budget = registers >= 32 ? 28 : registers - 1;
  // An extent known only at run time counts as a long one: the remainder does not decide.
  const int64_t width = problem.width > 0 ? problem.width : 960;
  const int64_t height = problem.height > 0 ? problem.height : 64;
  const int64_t vectors = problem.vectors > 0 ? problem.vectors : 64;
  Tile best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t c = 1; c <= std::min<int64_t>(vectors, 8); ++c) {
    if (problem.vectors_divide && vectors % c != 0) continue;
    if (problem.all_vectors && c < std::min<int64_t>(vectors, 8)) continue;
    for (int64_t a = 1; a <= std::min<int64_t>(height, problem.height == 1 ? 1 : 7); ++a) {
      for (int64_t b = 1; b <= std::min<int64_t>(width, 28); ++b) {
        if (a * b * c + c > budget) break;
        // A broadcast that serves one accumulator waits in a register of its own.
        if (c == 1 && registers < 32 && a * b > 8) break;
        // What is left of a length known only at run time goes by four, then one by one.
        if (problem.width == 0 && b > 1 && b % 4 != 0) continue;
        double cost = 0;
        for (const auto& [rows, row_count] : balanced_parts(height, a))
          for (const auto& [cols, col_count] : balanced_parts(width, b))
            for (const auto& [vecs, vec_count] : balanced_parts(vectors, c))
              cost += static_cast<double>(row_count * col_count * vec_count) *
                      tile_cost(rows * cols, vecs, problem, target);
        const double aspect = problem.window
                                  ? 1 +
                                        0.008 * static_cast<double>(problem.stride) *
                                            static_cast<double>(std::max<int64_t>(0, a - b)) +
                                        0.001 * static_cast<double>(std::abs(a - b))
                                  : 1 + 0.03 * static_cast<double>(a - 1);
        cost *= aspect;
        if (cost < least * (1 - 1e-9)) {
          least = cost;
          best = {a, b, c};
        } else if (cost <= least * (1 + 1e-9) && a * b > best.rows * best.cols) {
          best = {a, b, c};
        }
      }
    }
  }
  return best;
}

int64_t widest_divisor(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

Tile choose_window_tile(const TileProblem& problem, const Target& target) {
  Tile tile;
  const int64_t width = problem.width > 0 ? problem.width : 8;
  tile.cols = std::min<int64_t>(width, 8);
  const int64_t most = target.vector_registers * 5 / 8;
  for (int64_t cols = 5; problem.width > 0 && width % tile.cols != 0 && cols <= most; ++cols)
    if (width % cols == 0) tile.cols = cols;
  if (tile.cols < 4 && problem.height > 1) tile.rows = std::min<int64_t>(problem.height, 2);
  tile.vectors = tile.cols * tile.rows >= 4 ? 1 : widest_divisor(problem.vectors, 8);
  return tile;
}

}  // namespace tenon::tir
