// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/tile_rules.h"

#include <fmt/core.h>

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
  const double n = static_cast<double>(pixels * vectors * problem.products) +
                   problem.weight_instructions * static_cast<double>(vectors);
  const double loads = static_cast<double>(pixels + vectors);
  double weight = model.near_weight_cycles;
  if (problem.step_bytes * vectors > model.near_weight_bytes)
    weight = model.far_weight_cycles * target.vector_bits / model.far_weight_bits;
  const auto bytes = static_cast<double>(problem.vector_bytes * vectors);
  // Weights of all steps are read again for each tile, where there are several. Lengths that only the run
  // knows may be shorter than is assumed.
  const bool is_far = problem.width > 0 && problem.width * problem.height > 1 &&
                      bytes * static_cast<double>(problem.steps) > target.l1_bytes;
  double cycles = std::max({n / model.fmas_per_cycle, loads / model.loads_per_cycle,
                            (n + loads + 1) / model.issues_per_cycle, model.fma_latency,
                            is_far ? bytes / model.l2_bytes_per_cycle : 0}) +
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

/// The lengths of a problem, with those assumed that are known only at run time.
TileProblem with_lengths(TileProblem problem, const MachineModel& model) {
  if (problem.width == 0) problem.width = model.unknown_width;
  if (problem.height == 0) problem.height = model.unknown_height;
  if (problem.vectors == 0) problem.vectors = model.unknown_vectors;
  return problem;
}

}  // namespace

void of_digits(TileProblem& problem, int64_t products) {
  problem.products = products;
  problem.registers = 1 + products;
  // The mask and, for every other one, the shift that take weights of four bits apart.
  problem.weight_instructions = 1.5;
}

TileProblem contraction(const std::vector<int64_t>& reduction, int64_t vector_bytes) {
  TileProblem problem;
  problem.step_bytes = problem.vector_bytes = vector_bytes;
  for (const int64_t extent : reduction) {
    // The outermost axis that moves is the outer step.
    if (problem.steps > 1) problem.step_bytes *= extent;
    problem.steps *= extent;
  }
  return problem;
}

std::string str(const Tile& tile) {
  return fmt::format("{} x {} x {}", tile.rows, tile.cols, tile.vectors);
}

double tiled_cycles(const Tile& tile, const TileProblem& problem, const Target& target) {
  const MachineModel& model = machine_model(target);
  const TileProblem whole = with_lengths(problem, model);
  double cycles = 0;
  for (const auto& [rows, row_count] : balanced_parts(whole.height, tile.rows))
    for (const auto& [cols, col_count] : balanced_parts(whole.width, tile.cols))
      for (const auto& [vecs, vec_count] : balanced_parts(whole.vectors, tile.vectors))
        cycles += static_cast<double>(row_count * col_count * vec_count) *
                  tile_cost(rows * cols, vecs, problem, target);
  const auto off = static_cast<double>(std::abs(tile.rows - tile.cols));
  const double aspect =
      problem.window ? 1 +
                           model.tall_share * static_cast<double>(problem.stride) *
                               static_cast<double>(std::max<int64_t>(0, tile.rows - tile.cols)) +
                           model.aspect_share * off
                     : 1 + model.row_share * static_cast<double>(tile.rows - 1);
  return cycles * aspect;
}

TileChoice choose_tile(const TileProblem& problem, const Target& target) {
  const MachineModel& model = machine_model(target);
  const TileProblem whole = with_lengths(problem, model);
  const int64_t budget =
      std::min<int64_t>(target.vector_registers, model.registers) - model.spare_registers;
  const int64_t most_vectors = std::min({whole.vectors, model.most_vectors, problem.most_vectors});
  const int64_t most_rows = std::min(whole.height, model.most_rows);
  const int64_t most_columns = std::min(whole.width, model.most_columns);
  TileChoice choice;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t c = 1; c <= most_vectors; ++c) {
    if (problem.vectors_divide && whole.vectors % c != 0) continue;
    if (problem.all_vectors && c < most_vectors) continue;
    for (int64_t a = 1; a <= most_rows; ++a) {
      for (int64_t b = 1; b <= most_columns; ++b) {
        if (a * b * c * problem.registers + c > budget) break;
        if (c == 1 && a * b > model.lone_broadcast_outputs) break;
        // What is left of a length known only at run time goes by a divisor of the tile.
        if (problem.width == 0 && b > 1 && b % model.remainder != 0) continue;
        const Tile tile{a, b, c};
        const double cycles = tiled_cycles(tile, problem, target);
        const Tile& best = choice.tile;
        const bool less = cycles < least * (1 - 1e-9);
        if (less || (cycles <= least * (1 + 1e-9) && a * b > best.rows * best.cols)) {
          if (choice.cycles > 0) {
            choice.next = choice.tile;
            choice.next_cycles = choice.cycles;
          }
          choice.tile = tile;
          choice.cycles = cycles;
          if (less) least = cycles;
        } else if (choice.next_cycles == 0 || cycles < choice.next_cycles) {
          choice.next = tile;
          choice.next_cycles = cycles;
        }
      }
    }
  }
  return choice;
}

int64_t even_vectors(const TileProblem& problem, const TileChoice& choice, const Target& target) {
  const MachineModel& model = machine_model(target);
  if (problem.window && choice.tile.vectors == problem.vectors) return 0;
  double least = choice.cycles * model.two_widths_share;
  const int64_t most = std::min(model.most_vectors, problem.most_vectors);
  int64_t even = 0;
  for (int64_t vectors = 2; vectors <= std::min(most, problem.vectors - 1); ++vectors) {
    const auto parts = balanced_parts(problem.vectors, vectors);
    if (parts.size() < 2) continue;
    double cycles = 0;
    for (const auto& [size, count] : parts) {
      TileProblem part = problem;
      part.vectors = size * count;
      cycles += choose_tile(part, target).cycles;
    }
    if (cycles >= least) continue;
    least = cycles;
    even = parts[0].first * parts[0].second;
  }
  return even;
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
