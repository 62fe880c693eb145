// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/tile_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/tir/schedule/machine_model.h"

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
  const MachineModel& model = machine_model(target);
  const double n = static_cast<double>(pixels * vectors);
  const double loads = static_cast<double>(pixels + vectors);
  double weight = model.near_weight_cycles;
  if (problem.step_bytes * vectors > model.near_weight_bytes)
    weight = model.far_weight_cycles * target.vector_bits / model.far_weight_bits;
  double cycles = std::max({n / model.fmas_per_cycle, loads / model.loads_per_cycle,
                            (n + loads + 1) / model.issues_per_cycle, model.fma_latency}) +
                  model.load_cycles * loads + weight * static_cast<double>(vectors);
  if (n > model.crowded_accumulators) cycles += model.crowded_cycles * n;
  if (vectors == 1) cycles += model.lone_broadcast_cycles * n;
  return cycles;
}

double tile_cost(int64_t pixels, int64_t vectors, const TileProblem& problem,
                 const Target& target) {
  const MachineModel& model = machine_model(target);
  const double steps = static_cast<double>(std::max<int64_t>(problem.steps, 1));
  return steps * step_cycles(pixels, vectors, problem, target) +
         model.accumulator_cycles * static_cast<double>(pixels * vectors) + model.tile_cycles;
}

}  // namespace

Tile choose_tile(const TileProblem& problem, const Target& target) {
  const MachineModel& model = machine_model(target);
  const int64_t budget =
      std::min<int64_t>(target.vector_registers, model.registers) - model.spare_registers;
  const int64_t width = problem.width > 0 ? problem.width : model.unknown_width;
  const int64_t height = problem.height > 0 ? problem.height : model.unknown_height;
  const int64_t vectors = problem.vectors > 0 ? problem.vectors : model.unknown_vectors;
  const int64_t most_vectors = std::min(vectors, model.most_vectors);
  const int64_t most_rows = problem.height == 1 ? 1 : std::min(height, model.most_rows);
  Tile best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t c = 1; c <= most_vectors; ++c) {
    if (problem.vectors_divide && vectors % c != 0) continue;
    if (problem.all_vectors && c < most_vectors) continue;
    for (int64_t a = 1; a <= most_rows; ++a) {
      for (int64_t b = 1; b <= std::min(width, model.most_columns); ++b) {
        if (a * b * c + c > budget) break;
        if (c == 1 && a * b > model.lone_broadcast_outputs) break;
        // What is left of a length known only at run time goes by a divisor of the tile.
        if (problem.width == 0 && b > 1 && b % model.remainder != 0) continue;
        double cost = 0;
        for (const auto& [rows, row_count] : balanced_parts(height, a))
          for (const auto& [cols, col_count] : balanced_parts(width, b))
            for (const auto& [vecs, vec_count] : balanced_parts(vectors, c))
              cost += static_cast<double>(row_count * col_count * vec_count) *
                      tile_cost(rows * cols, vecs, problem, target);
        const double aspect = problem.window
                                  ? 1 +
                                        model.tall_share * static_cast<double>(problem.stride) *
                                            static_cast<double>(std::max<int64_t>(0, a - b)) +
                                        model.aspect_share * static_cast<double>(std::abs(a - b))
                                  : 1 + model.row_share * static_cast<double>(a - 1);
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
  const MachineModel& model = machine_model(target);
  Tile tile;
  const int64_t width = problem.width > 0 ? problem.width : model.window_columns;
  tile.cols = std::min(width, model.window_columns);
  const int64_t most = target.vector_registers * model.window_register_eighths / 8;
  for (int64_t cols = model.window_least_columns;
       problem.width > 0 && width % tile.cols != 0 && cols <= most; ++cols)
    if (width % cols == 0) tile.cols = cols;
  if (tile.cols < model.window_accumulators && problem.height > 1)
    tile.rows = std::min(problem.height, model.window_rows);
  tile.vectors = tile.cols * tile.rows >= model.window_accumulators
                     ? 1
                     : widest_divisor(problem.vectors, model.most_vectors);
  return tile;
}

}  // namespace tenon::tir
