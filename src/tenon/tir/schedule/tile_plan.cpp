// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/tile_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tenon/tir/analysis/integer_sum.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tir/schedule/weight_prefetch.h"

namespace tenon::tir {

// ---- roles --------------------------------------------------------------------------------------

std::optional<size_t> lane_of(const Block& block, const BlockAccesses& accesses) {
  for (size_t a = block.iter_vars.size(); a-- > 0;) {
    if (block.iter_vars[a].kind != IterKind::kSpatial || !accesses.store.is_unit(a)) continue;
    if (extent_of(block.iter_vars[a]) == 1) continue;
    bool unit = false, other = false;
    for (const LinearAccess& load : accesses.loads) {
      unit = unit || load.is_unit(a);
      other = other || (load.moves(a) && !load.is_unit(a));
    }
    if (unit && !other) return a;
  }
  return std::nullopt;
}

// Reduction axes in the order in which the weights lie, so that they are one stream.
static void sort_reduction(const BlockAccesses& accesses, size_t lane, std::vector<size_t>& k) {
  const LinearAccess* weights = nullptr;
  for (const LinearAccess& load : accesses.loads)
    if (load.moves(lane) && (!weights || load.buffer->ndim() > weights->buffer->ndim()))
      weights = &load;
  if (!weights) return;
  const auto stride = [&](size_t axis) {
    return as_int(weights->strides[axis]).value_or(int64_t{1} << 40);
  };
  // Few axes, and those of equal stride keep their order.
  for (size_t i = 1; i < k.size(); ++i)
    for (size_t j = i; j > 0 && stride(k[j - 1]) < stride(k[j]); --j) std::swap(k[j - 1], k[j]);
}

// Whether neighbouring pixels read the same elements in different steps of an axis of the reduction:
// such elements stay in registers from step to step where the steps are unrolled.
static bool steps_overlap(const BlockAccesses& accesses, size_t lane, const std::vector<size_t>& m,
                          size_t step, const Block& block) {
  const int64_t steps = extent_of(block.iter_vars[step]);
  for (const LinearAccess& load : accesses.loads)
    for (const size_t axis : m) {
      const auto along = as_int(load.strides[step]), across = as_int(load.strides[axis]);
      if (load.moves(lane) || !along || !across || *along == 0 || *across == 0) continue;
      if (*across % *along == 0 && *across / *along < steps) return true;
    }
  return false;
}

static bool joins(const BlockAccesses& accesses, size_t outer, size_t inner, const Block& block) {
  if (outer + 1 != inner) return false;
  arith::Analyzer analyzer;
  const Expr n = block.iter_vars[inner].domain.extent;
  if (!is_zero(block.iter_vars[inner].domain.min) || !is_zero(block.iter_vars[outer].domain.min))
    return false;
  for (const LinearAccess& load : accesses.loads)
    if (!analyzer.proves_equal(load.strides[outer], load.strides[inner] * n)) return false;
  return true;
}

// The number of last axes that can be one loop: each step of an axis goes on where the one inside of
// it ends, in every operand. Such are a window's columns and the channels of a block. One loop starts
// less often than several short ones.
static size_t joinable_axes(const Block& block, const BlockAccesses& accesses,
                            const std::vector<size_t>& k) {
  size_t count = 1;
  for (; count < k.size(); ++count) {
    const size_t outer = k[k.size() - 1 - count], inner = k[k.size() - count];
    const int64_t extent = extent_of(block.iter_vars[inner]);
    if (extent < 2 || extent_of(block.iter_vars[outer]) < 2 ||
        !is_zero(block.iter_vars[inner].domain.min) || !is_zero(block.iter_vars[outer].domain.min))
      break;
    const bool follows = std::ranges::all_of(accesses.loads, [&](const LinearAccess& load) {
      const auto along = as_int(load.strides[inner]), across = as_int(load.strides[outer]);
      return along && across && *across == *along * extent;
    });
    if (!follows) break;
  }
  return count;
}

// A window moves along the outputs in a dimension that the reduction walks through too.
static void find_window(const Block& block, const BlockAccesses& accesses, size_t lane,
                        const std::vector<size_t>& m, const std::vector<size_t>& k,
                        TileRoles& roles) {
  for (const LinearAccess& load : accesses.loads) {
    if (load.moves(lane)) continue;
    for (const size_t axis : m) {
      const LinearAccess::Step& step = load.steps[axis];
      const bool windowed =
          step.dim && std::any_of(k.begin(), k.end(), [&](size_t inner) {
            return load.steps[inner].dim == step.dim && extent_of(block.iter_vars[inner]) != 1;
          });
      if (!windowed) continue;
      roles.window = true;
      if (axis == m.back()) roles.window_stride = as_int(step.indices).value_or(1);
    }
  }
}

TileRoles roles_of(const Block& block, const BlockAccesses& accesses, size_t lane) {
  TileRoles roles;
  std::vector<const LinearAccess*> still, wide;
  for (const LinearAccess& load : accesses.loads)
    (load.moves(lane) ? wide : still).push_back(&load);
  if (still.empty()) {
    roles.depthwise = true;
    // The operand that moves along fewest axes plays the weights.
    const auto spread = [&](const LinearAccess* l) {
      size_t n = 0;
      for (size_t a = 0; a < block.iter_vars.size(); ++a)
        n += block.iter_vars[a].kind == IterKind::kSpatial && l->moves(a);
      return n;
    };
    if (wide.size() > 1) {
      std::swap(
          *std::min_element(wide.begin(), wide.end(),
                            [&](const auto* x, const auto* y) { return spread(x) < spread(y); }),
          wide.front());
      still.assign(wide.begin() + 1, wide.end());
      wide.resize(1);
    } else {
      std::swap(still, wide);
    }
  }
  std::vector<size_t> m, k;
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const Ref<Var>& axis = block.iter_vars[a].var;
    if (block.iter_vars[a].kind == IterKind::kReduce) {
      k.push_back(a);
      continue;
    }
    if (a == lane) {
      roles.lane = axis;
      continue;
    }
    const auto moves = [&](const LinearAccess* l) { return l->moves(a); };
    const bool in_still = std::any_of(still.begin(), still.end(), moves);
    const bool in_wide = std::any_of(wide.begin(), wide.end(), moves);
    if (in_still != in_wide && in_still) m.push_back(a);
    (in_still == in_wide ? roles.batch : in_still ? roles.m : roles.n).push_back(axis);
  }
  sort_reduction(accesses, lane, k);
  for (const size_t a : k) roles.k.push_back(block.iter_vars[a].var);
  roles.joinable_k = joinable_axes(block, accesses, k);
  roles.overlaps = !roles.depthwise && steps_overlap(accesses, lane, m, k.back(), block);
  find_window(block, accesses, lane, m, k, roles);
  roles.flat = m.size() >= 2 && joins(accesses, m[m.size() - 2], m.back(), block);
  return roles;
}

// ---- the plan -----------------------------------------------------------------------------------

int64_t unrolled_steps(int64_t extent, int64_t accumulators, int64_t fmas,
                       const MachineModel& model) {
  const int64_t most = fmas / accumulators;
  if (extent > 0 && extent <= model.whole_unrolled_steps && extent <= most) return extent;
  int64_t steps = 1;
  while (extent > 0 && extent % (steps * 2) == 0 && steps * 2 <= most &&
         steps < model.unrolled_steps)
    steps *= 2;
  return steps;
}

namespace {

const GivenNest& nothing() {
  static const GivenNest kNothing;
  return kNothing;
}

// Accumulators of a tile that is given, at most: twice the registers of any machine. Beyond that all
// spill, and the code grows with their number.
constexpr int64_t kMostAccumulators = 64;

class Planner {
 public:
  Planner(const TileNest& nest, const Target& target, int64_t most_vectors)
      : nest_(nest),
        given_(nest.given ? *nest.given : nothing()),
        target_(target),
        model_(machine_model(target)),
        most_vectors_(most_vectors) {}

  TilePlan run() {
    const TileRoles& roles = nest_.roles;
    plan_.batch = axes_of(roles.batch);
    plan_.n = axes_of(roles.n);
    plan_.m = axes_of(roles.m);
    plan_.k = axes_of(roles.k);
    plan_.lane = axis_of(roles.lane);
    plan_.flat = roles.flat;
    plan_.lanes = nest_.lanes;
    choose();
    if (given_.tile) take_tile(*given_.tile);
    if (plan_.even_vectors > 0) return plan_;
    count_panels();
    // What several steps of an unrolled body read stays in registers between them, and spills.
    if (!roles.overlaps) plan_.unrolled_fmas = model_.unrolled_fmas;
    if (plan_.algorithm == TilePlan::Algorithm::kRow && is_near_row())
      plan_.unrolled_fmas = std::max<int64_t>(1, model_.row_step_bytes / vector_bytes());
    if (takes_elements_apart())
      plan_.unrolled_fmas =
          std::max(plan_.unrolled_fmas, plan_.k.back().extent * plan_.tile().rows *
                                            plan_.tile().cols * plan_.tile().vectors);
    plan_.unrolled_fmas = given_.unrolled_fmas.value_or(plan_.unrolled_fmas);
    unroll_steps();
    cut_into_tasks();
    join_panels();
    if (plan_.tasks_share_panels())
      plan_.panel_distance = panels_ > 0 ? plan_.tasks : 0;
    else
      plan_.panel_distance = panels_ > 0 ? panels_ahead() : 0;
    const bool can_prefetch = fetches_panels(nest_.far_weights);
    if (given_.prefetches && *given_.prefetches && !can_prefetch)
      given_.misfit("prefetches",
                    "is true; the nest has no next panel of constant weights to fetch");
    plan_.prefetches = can_prefetch && (fetches_panels(false) || far_panels_pay());
    plan_.prefetches = given_.prefetches.value_or(plan_.prefetches);
    plan_.fetches_columns = plan_.prefetches && inputs_leave();
    predict();
    return plan_;
  }

 private:
  TilePlan::Axis axis_of(const Ref<Var>& var) const {
    for (const IterVar& iter : nest_.block.iter_vars)
      if (iter.var.same_as(var)) return {var->name, extent_of(iter)};
    unreachable("an axis that the block does not have");
  }
  std::vector<TilePlan::Axis> axes_of(const std::vector<Ref<Var>>& vars) const {
    std::vector<TilePlan::Axis> axes;
    for (const Ref<Var>& var : vars) axes.push_back(axis_of(var));
    return axes;
  }

  // The tile that the model holds for best.
  void choose() {
    const int64_t vectors_in_lane = nest_.length / nest_.lanes;
    plan_.vectors_along_lane = vectors_in_lane > 1;
    std::vector<int64_t> k;
    k.reserve(plan_.k.size());
    for (const TilePlan::Axis& axis : plan_.k)
      k.push_back(axis.extent > 0 ? axis.extent : model_.unknown_steps);
    problem_ = contraction(k, nest_.lanes * nest_.element_bits / 8);
    problem_.most_vectors = most_vectors_;
    problem_.width = plan_.m.empty() ? 1 : plan_.m.back().extent;
    problem_.window = nest_.roles.window;
    problem_.stride = nest_.roles.window_stride;
    if (plan_.m.size() >= 2 && !plan_.flat) problem_.height = plan_.m[plan_.m.size() - 2].extent;
    if (problem_.height == 0) problem_.height = 1;
    problem_.vectors = vectors_in_lane > 1 ? vectors_in_lane
                       : plan_.n.empty()   ? 1
                                           : std::max<int64_t>(1, plan_.n.back().extent);
    problem_.all_vectors = nest_.grown && vectors_in_lane > 1;
    if (const int64_t products = count_products(nest_.block); products > 0)
      of_digits(problem_, products);
    if (problem_.width == 1 && problem_.height == 1) {
      plan_.algorithm = TilePlan::Algorithm::kRow;
      const int64_t room =
          (std::min<int64_t>(target_.vector_registers, model_.registers) - model_.spare_registers) /
          (problem_.registers + 1);
      int64_t most = problem_.all_vectors ? model_.most_vectors : model_.row_vectors;
      if (problem_.registers > 1) most = std::clamp<int64_t>(room, 1, most);
      plan_.choice.tile = {1, 1, widest_divisor(problem_.vectors, most)};
    } else if (nest_.roles.depthwise) {
      plan_.algorithm = TilePlan::Algorithm::kWindow;
      plan_.choice.tile = choose_window_tile(problem_, target_);
    } else {
      plan_.choice = choose_tile(problem_, target_);
      if (!given_.tile) leave_vectors();
    }
  }

  // Whether vectors may be cut into tiles of two widths, each a nest of its own.
  bool may_leave_vectors() const {
    return nest_.leaves_vectors && !plan_.vectors_along_lane && !plan_.n.empty() &&
           plan_.n.back().extent > 1;
  }

  void leave_vectors() {
    if (may_leave_vectors()) plan_.even_vectors = even_vectors(problem_, plan_.choice, target_);
  }

  // A tile that was given; the model's own is its runner-up.
  void take_tile(const Tile& tile) {
    if (tile == plan_.tile()) return;
    const auto fits = [&](const char* what, int64_t seen, int64_t most) {
      if (seen > most)
        given_.misfit("tile", "has {} {}; expected at most {} of this nest", seen, what, most);
    };
    fits("rows", tile.rows, problem_.height);
    if (problem_.width > 0) fits("columns", tile.cols, problem_.width);
    if (problem_.width == 0 && tile.cols > 1 && tile.cols % model_.remainder != 0)
      given_.misfit("tile",
                    "has {} columns of a length that is known only at run time; expected 1 or a "
                    "multiple of {}",
                    tile.cols, model_.remainder);
    if (problem_.vectors % tile.vectors != 0 && may_leave_vectors()) {
      const auto [size, count] = balanced_parts(problem_.vectors, tile.vectors)[0];
      plan_.even_vectors = size * count;
      return;
    }
    if (problem_.vectors % tile.vectors != 0)
      given_.misfit("tile", "has {} vectors; expected a divisor of {}", tile.vectors,
                    problem_.vectors);
    fits("accumulators", tile.rows * tile.cols * tile.vectors, kMostAccumulators);
    if (plan_.choice.cycles > 0) {
      plan_.choice.next = plan_.choice.tile;
      plan_.choice.next_cycles = plan_.choice.cycles;
      plan_.choice.cycles = tiled_cycles(tile, problem_, target_);
    }
    plan_.choice.tile = tile;
  }

  // Whether the last axis of the reduction goes through numbers that share an element: all of one are
  // taken from it while it is in a register.
  bool takes_elements_apart() const {
    if (plan_.k.back().extent < 2 || plan_.k.back().extent > model_.whole_unrolled_steps)
      return false;
    const Var* step = nest_.roles.k.back().get();
    const DType sum = nest_.accesses.store.buffer->dtype;
    return std::any_of(
        nest_.block.reads.begin(), nest_.block.reads.end(), [&](const Ref<BufferRegion>& read) {
          return shares_elements(*read->buffer, sum) &&
                 std::none_of(read->region.begin(), read->region.end(),
                              [&](const Range& range) { return uses_var(range.min, step); });
        });
  }

  // Axes of the reduction are joined where no fewer steps are unrolled for it.
  void unroll_steps() {
    const int64_t accumulators = plan_.tile().rows * plan_.tile().cols * plan_.tile().vectors;
    int64_t extent = plan_.k.back().extent;
    plan_.unrolled_steps = unrolled_steps(extent, accumulators, plan_.unrolled_fmas, model_);
    if (takes_elements_apart()) return;
    for (size_t joined = 2; joined <= nest_.roles.joinable_k; ++joined) {
      extent *= plan_.k[plan_.k.size() - joined].extent;
      const int64_t steps = unrolled_steps(extent, accumulators, plan_.unrolled_fmas, model_);
      if (steps < plan_.unrolled_steps) continue;
      plan_.unrolled_steps = steps;
      plan_.joined_k = joined;
    }
  }

  int64_t vector_bytes() const { return plan_.lanes * nest_.accesses.store.buffer->dtype.bytes(); }

  // Whether the weights of a row, which are read once, may be in the second cache.
  bool is_near_row() const {
    double bytes = static_cast<double>(nest_.accesses.store.buffer->dtype.bytes() * nest_.length);
    for (const auto* axes : {&plan_.batch, &plan_.n, &plan_.k})
      for (const TilePlan::Axis& axis : *axes) bytes *= static_cast<double>(axis.extent);
    return bytes > 0 && bytes <= static_cast<double>(target_.l2_bytes) / 2;
  }

  // The panels that the tile's vectors leave.
  void count_panels() {
    panels_ = static_cast<int64_t>(plan_.n.size());
    for (const TilePlan::Axis& axis : plan_.n) columns_ *= std::max<int64_t>(1, axis.extent);
    const int64_t vectors = plan_.tile().vectors, vectors_in_lane = nest_.length / nest_.lanes;
    if (vectors_in_lane > 1) {
      if (vectors_in_lane > vectors) {
        ++panels_;
        columns_ *= (vectors_in_lane + vectors - 1) / vectors;
      }
    } else if (!plan_.n.empty() && vectors > 1) {
      const int64_t extent = plan_.n.back().extent;
      columns_ /= extent;
      if (extent == vectors)
        --panels_;
      else
        columns_ *= (extent + vectors - 1) / vectors;
    }
  }

  // Of the weights.
  int64_t panels_ahead() const {
    int64_t most = 1;
    for (const LinearAccess& load : nest_.accesses.loads)
      if (load.moves(nest_.lane_axis))
        most = std::max(
            most, tir::panels_ahead(*load.buffer, nest_.accesses.store.buffer->dtype, target_));
    return most;
  }

  // Whether there is a next panel that comes from beyond the second cache.
  bool fetches_panels(bool is_far) const {
    if (plan_.panel_distance == 0 || problem_.width == 1) return false;
    const auto is_weights = [&](const Ref<BufferRegion>& region) {
      return std::ranges::any_of(nest_.accesses.loads, [&](const LinearAccess& load) {
        return load.moves(nest_.lane_axis) && load.buffer.same_as(region->buffer);
      });
    };
    return std::ranges::any_of(nest_.block.reads, [&](const Ref<BufferRegion>& region) {
      return is_weights(region) && streams_panels(nest_.block, *region, target_, is_far);
    });
  }

  // Whether hints that reach into another thread's panels are few beside the others, or beside the
  // arithmetic.
  bool far_panels_pay() const {
    int64_t rows = 1;
    for (const TilePlan::Axis& axis : plan_.m) rows *= std::max<int64_t>(1, axis.extent);
    return columns_ >= model_.far_panels || rows >= model_.far_rows;
  }

  // Panels of a vector of digits' weights are small: a task has several, so that its call costs little
  // beside reading them, and more where there are more panels than tasks.
  void join_panels() {
    if (problem_.registers == 1 || plan_.tasks > 1) return;
    const int64_t work = problem_.steps * nest_.length * plan_.tile().vectors;
    const int64_t many =
        std::min(model_.task_macs / std::max<int64_t>(1, work), outer_ / model_.contraction_tasks);
    plan_.task_panels = widest_divisor(outer_, std::max(panels_ahead(), many));
  }

  // Rows in tasks where the outer axes alone do not give enough of them. The number follows from
  // sizes only, never from the number of threads.
  void cut_into_tasks() {
    const Tile& tile = plan_.tile();
    const size_t inner = plan_.m.empty() ? 0 : plan_.m.size() >= 2 && !plan_.flat ? 2 : 1;
    int64_t outer = columns_;
    for (const TilePlan::Axis& axis : plan_.batch) outer *= std::max<int64_t>(1, axis.extent);
    for (size_t i = 0; i + inner < plan_.m.size(); ++i)
      outer *= std::max<int64_t>(1, plan_.m[i].extent);
    outer_ = outer;
    const int64_t row_count = inner == 2 ? plan_.m[plan_.m.size() - 2].extent : 1;
    const int64_t column_count = inner > 0 ? plan_.m.back().extent : 1;
    if (given_.tasks) return take_tasks(*given_.tasks, row_count, column_count);
    if (nest_.tasks > 0) return cut_columns(nest_.tasks);
    const int64_t work = outer * std::max<int64_t>(1, row_count) *
                         std::max<int64_t>(1, column_count) * problem_.steps * nest_.length *
                         tile.vectors;
    const bool has_rows = plan_.m.size() >= 2 || plan_.flat;
    // Two threads get no equal parts of an odd number of rows, and tiles of two rows leave one row in each part. An
    // even number of blocks of channels divides better.
    const bool has_even_blocks = plan_.algorithm == TilePlan::Algorithm::kWindow && tile.rows > 1 &&
                                 outer % 2 == 0 && row_count % 2 == 1 && work <= model_.task_macs;
    if (has_rows && !has_even_blocks && work >= 2 * model_.near_task_macs) {
      const int64_t bytes = all_bytes();
      const bool is_near = bytes <= target_.l2_bytes / model_.near_l2_parts;
      const bool is_small = bytes <= target_.l2_bytes && work <= model_.even_macs;
      if ((is_near || is_small) &&
          cut_near(row_count, column_count, is_near ? model_.near_share : 1))
        return;
    }
    int64_t wanted = std::clamp<int64_t>(work / model_.task_macs, 1, model_.contraction_tasks);
    // Where panels are tasks enough, their rows stay together as long as the second cache holds them
    // beside a panel: each part would read that again, in tiles that are less full.
    if (outer >= model_.panel_tasks) {
      const int64_t room = std::max<int64_t>(1, target_.l2_bytes / 2);
      wanted = std::min(wanted, outer * ((operand_bytes().second + room - 1) / room));
    }
    const int64_t more = (wanted + outer - 1) / outer;
    if (more <= 1) return;
    const bool by_rows = row_count > 1;
    const int64_t count = by_rows ? row_count : column_count;
    const int64_t least = by_rows ? tile.rows : 2 * tile.cols;
    if (inner == 0 || count < 2 * least) return;
    const int64_t best = tasks_of_plane(more, count, least, by_rows);
    if (best < 2) return leave_columns(more, column_count);
    plan_.tasks_of = by_rows ? TilePlan::Tasks::kRows : TilePlan::Tasks::kColumns;
    plan_.tasks = best;
    plan_.tasks_outside = weights_last();
  }

  // Tasks of equal size that a plane of tiles is cut into: a divisor of `count` rows or columns, near
  // what is wanted at most, whose parts take least time over some numbers of threads. More tasks divide
  // better over threads, and their tiles are less full. \returns 1 where nothing divides them
  // \param least  rows or columns of a task
  int64_t tasks_of_plane(int64_t wanted, int64_t count, int64_t least, bool by_rows) const {
    // What is cut so that its parts stay in the second cache has no fewer of them.
    const bool for_cache = outer_ >= model_.panel_tasks;
    const int64_t most = std::min(model_.task_slack * wanted, count / least);
    std::vector<std::pair<int64_t, double>> costs;
    double cheapest = std::numeric_limits<double>::infinity();
    for (int64_t tasks = for_cache ? wanted : 1; tasks <= most; ++tasks) {
      if (count % tasks != 0) continue;
      TileProblem part = problem_;
      (by_rows ? part.height : part.width) = count / tasks;
      const double cycles = tiled_cycles(plan_.tile(), part, target_);
      costs.emplace_back(tasks, spread_cost(outer_ * tasks, cycles, model_));
      cheapest = std::min(cheapest, costs.back().second);
      if (tasks >= wanted) break;
    }
    // Of what costs about the same, the most: there may be more threads.
    for (auto it = costs.rbegin(); it != costs.rend(); ++it)
      if (it->second <= cheapest + model_.even_cost) return it->first;
    for (int64_t tasks = std::min(wanted - 1, most); tasks > 1; --tasks)
      if (count % tasks == 0) return tasks;
    return 1;
  }

  void cut_columns(int64_t tasks) {
    plan_.tasks_of = TilePlan::Tasks::kColumns;
    plan_.tasks = tasks;
    plan_.tasks_outside = weights_last();
  }

  // The most columns that are `tasks` times as many whole tiles, or all in parts of a tile each.
  int64_t columns_of(int64_t tasks, int64_t column_count) const {
    const int64_t tile = plan_.tile().cols;
    if (column_count % tasks == 0 && 2 * (column_count / tasks) > tile) return column_count;
    return column_count / (tasks * tile) * tasks * tile;
  }

  // Panels are few and odd in number, so that one of two threads waits, and no number of tasks divides
  // the columns well: whole tiles of them are cut, and the fewest columns are left to a nest of their
  // own, which reads the weights again.
  void leave_columns(int64_t most, int64_t column_count) {
    if (!nest_.leaves_columns || outer_ % 2 == 0 || outer_ >= model_.panel_tasks ||
        operand_bytes().first > target_.l2_bytes)
      return;
    const int64_t least = std::min(most, (model_.panel_tasks + outer_ - 1) / outer_);
    int64_t best = 0, even = column_count - column_count / model_.uneven_parts - 1;
    for (int64_t tasks = least; tasks <= std::min(most, 2 * least); ++tasks) {
      if (columns_of(tasks, column_count) <= even) continue;
      best = tasks;
      even = columns_of(tasks, column_count);
    }
    if (best == 0) return;
    cut_columns(best);
    if (even < column_count) plan_.even_columns = even;
  }

  // Of what the nest reads and writes.
  int64_t all_bytes() const {
    const auto bytes = [](const Ref<Buffer>& buffer) {
      const auto count = as_int(arith::simplify(element_count(buffer->shape)));
      return count ? *count * buffer->dtype.bytes() : int64_t{1} << 40;
    };
    int64_t all = bytes(nest_.accesses.store.buffer);
    for (const LinearAccess& load : nest_.accesses.loads) all += bytes(load.buffer);
    return all;
  }

  // Rows in a few tasks outside of all other loops, of which two threads have about as many each: of kernels
  // that stay in the cache of a core. Handing over is cheap then beside reading what another core has
  // written: kernels that follow each other divide the same rows. The number follows from sizes only.
  // \param share  of full use of two threads, at least
  bool cut_near(int64_t row_count, int64_t column_count, double share) {
    const bool by_rows = row_count > 1;
    const int64_t count = by_rows ? row_count : column_count;
    const int64_t most =
        count / std::max<int64_t>(1, by_rows ? plan_.tile().rows : plan_.tile().cols);
    const auto is_even = [&](int64_t tasks, double used) {
      const auto all = static_cast<double>(tasks * outer_);
      return count % tasks == 0 && all >= used * 2 * std::ceil(all / 2);
    };
    int64_t tasks = std::min(model_.near_tasks, most);
    while (tasks > 1 && !is_even(tasks, 1)) --tasks;
    if (tasks < 2) {
      if (outer_ > 1 || share == 1) return false;
      tasks = 2;
      while (tasks <= most && !is_even(tasks, share)) ++tasks;
      if (tasks > std::min(most, model_.task_slack * model_.near_tasks)) return false;
    }
    plan_.tasks_of = by_rows ? TilePlan::Tasks::kRows : TilePlan::Tasks::kColumns;
    plan_.tasks = tasks;
    plan_.tasks_outside = true;
    return true;
  }

  void take_tasks(const GivenNest::Tasks& tasks, int64_t row_count, int64_t column_count) {
    plan_.tasks_of = tasks.of;
    if (tasks.of == TilePlan::Tasks::kNone) return;
    const bool by_rows = tasks.of == TilePlan::Tasks::kRows;
    const int64_t count = by_rows ? row_count : column_count;
    const int64_t least = by_rows ? plan_.tile().rows : plan_.tile().cols;
    if (count == 0)
      given_.misfit("tasks", "are {} of a number that is known only at run time; expected null",
                    tasks.count);
    const int64_t even = by_rows ? 0 : columns_of(tasks.count, column_count);
    if (even > 0 && even < count && nest_.leaves_columns)
      plan_.even_columns = even;
    else if (even != count && (count % tasks.count != 0 || count / tasks.count < least))
      given_.misfit("tasks", "are {}; expected a divisor of the {} {} that leaves tiles of {}",
                    tasks.count, count, by_rows ? "rows" : "columns", least);
    plan_.tasks = tasks.count;
    plan_.tasks_outside = tasks.outside;
  }

  // Of the weights, and of the other operand. What is known only at run time is large.
  std::pair<int64_t, int64_t> operand_bytes() const {
    int64_t weights = 0, other = 0;
    for (const LinearAccess& load : nest_.accesses.loads) {
      const auto count = as_int(arith::simplify(element_count(load.buffer->shape)));
      const int64_t bytes = count ? *count * load.buffer->dtype.bytes() : int64_t{1} << 40;
      int64_t& most = load.moves(nest_.lane_axis) ? weights : other;
      most = std::max(most, bytes);
    }
    return {weights, other};
  }

  // Whether columns are cache lines of blocks of channels, and what each panel is used for does not stay
  // beside it and the next one in the second cache. Where every other column is left out, so is
  // every other set of the cache.
  bool inputs_leave() const {
    if (columns_ < 2 || plan_.m.empty() || plan_.k.size() < 2 || !plan_.batch.empty() ||
        nest_.roles.window)
      return false;
    const auto index_of = [&](const TilePlan::Axis& axis) {
      size_t a = 0;
      while (nest_.block.iter_vars[a].var->name != axis.name) ++a;
      return a;
    };
    for (const LinearAccess& load : nest_.accesses.loads) {
      const auto block = as_int(load.buffer->shape.back());
      // Accesses are those of the block before its rows were joined: of these the last axis counts.
      const size_t joined = load.strides.size() - nest_.block.iter_vars.size();
      const auto stride = [&](const TilePlan::Axis& axis) {
        return as_int(load.strides[index_of(axis) + joined]).value_or(0);
      };
      const int64_t along = stride(plan_.m.back());
      if (load.moves(nest_.lane_axis) || !block ||
          *block * load.buffer->dtype.bytes() != model_.line_bytes || along < *block ||
          along % *block != 0 || stride(plan_.k.back()) != 1 || plan_.k.back().extent != *block ||
          stride(plan_.k.end()[-2]) <= along)
        continue;
      int64_t inputs = load.buffer->dtype.bytes() * (along / *block);
      for (const TilePlan::Axis& axis : plan_.m) inputs *= std::max<int64_t>(1, axis.extent);
      for (const TilePlan::Axis& axis : plan_.k) inputs *= std::max<int64_t>(1, axis.extent);
      if (plan_.tasks_outside) inputs /= std::max<int64_t>(1, plan_.tasks);
      return inputs + 2 * operand_bytes().first / columns_ > target_.l2_bytes;
    }
    return false;
  }

  // Whether the loop over tasks of rows goes outside the one over weights: where the weights stay in
  // cache and the other operand does not.
  bool weights_last() const {
    if (nest_.accesses.loads.size() < 2) return true;
    const auto [weights, other] = operand_bytes();
    const int64_t room = target_.l2_bytes * model_.weights_l2_halves / 2;
    return weights <= room && other > room;
  }

  // The tile's cycles, or the time in which its weights come from beyond the second cache. There is
  // no model of windows; symbolic extents that the tile does not see count as 1.
  void predict() {
    if (plan_.algorithm == TilePlan::Algorithm::kWindow) return;
    double bytes = 0;
    for (const LinearAccess& load : nest_.accesses.loads) {
      const auto count = as_int(arith::simplify(element_count(load.buffer->shape)));
      const int64_t size = count ? *count * load.buffer->dtype.bytes() : 0;
      if (size > target_.l2_bytes) bytes += static_cast<double>(size);
    }
    if (plan_.algorithm == TilePlan::Algorithm::kRow)
      plan_.choice.cycles = tiled_cycles(plan_.tile(), problem_, target_);
    // `outer_` counts panels of the tile's width; the cycles are of all vectors.
    const double panels = std::ceil(static_cast<double>(problem_.vectors) /
                                    static_cast<double>(plan_.tile().vectors));
    const double times = static_cast<double>(outer_) / panels;
    const auto seconds = [&](double cycles) {
      return std::max(cycles * times / model_.cycles_per_second, bytes / model_.bytes_per_second);
    };
    plan_.seconds = seconds(plan_.choice.cycles);
    for (const auto* axes : {&plan_.batch, &plan_.n, &plan_.m, &plan_.k})
      for (const TilePlan::Axis& axis : *axes) plan_.assumes_lengths |= axis.extent == 0;
    if (plan_.choice.next_cycles > 0) plan_.next_seconds = seconds(plan_.choice.next_cycles);
  }

  const TileNest& nest_;
  const GivenNest& given_;
  const Target& target_;
  const MachineModel& model_;
  TilePlan plan_;
  TileProblem problem_;
  int64_t most_vectors_;  // of a tile that is chosen
  int64_t panels_ = 0;    // axes over panels of columns
  int64_t columns_ = 1;   // panels
  int64_t outer_ = 1;     // iterations outside of a plane of tiles and its tasks
};

std::string axes_text(const char* role, const std::vector<TilePlan::Axis>& axes) {
  if (axes.empty()) return "";
  std::string text = role;
  for (const TilePlan::Axis& axis : axes)
    text += fmt::format(" {}[{}]", axis.name,
                        axis.extent > 0 ? std::to_string(axis.extent) : std::string("?"));
  return text + ", ";
}

}  // namespace

TilePlan plan_tiles(const TileNest& nest, const Target& target) {
  TilePlan plan = Planner(nest, target, std::numeric_limits<int64_t>::max()).run();
  // Of few columns: narrower panels, whose number is even, rather than columns that read all weights again.
  const MachineModel& model = machine_model(target);
  const bool may_narrow = plan.even_columns > 0 && plan.m.back().extent <= model.narrow_columns &&
                          plan.tile().vectors > 1 &&
                          !(nest.given && (nest.given->tile || nest.given->tasks));
  if (may_narrow) {
    TilePlan narrow = Planner(nest, target, plan.tile().vectors / 2).run();
    if (narrow.even_columns == 0 && narrow.choice.cycles <= plan.choice.cycles * model.narrow_share)
      return narrow;
  }
  return plan;
}

const char* name_of(TilePlan::Algorithm algorithm) {
  switch (algorithm) {
    case TilePlan::Algorithm::kContraction: return "contraction";
    case TilePlan::Algorithm::kRow: return "row";
    case TilePlan::Algorithm::kWindow: return "window";
    case TilePlan::Algorithm::kDots: return "dots";
  }
  unreachable("an algorithm");
}

std::string str(const TilePlan& plan) {
  std::string text = fmt::format("{}: ", name_of(plan.algorithm)) + axes_text("batch", plan.batch) +
                     axes_text("M", plan.m) + axes_text("N", plan.n) + axes_text("K", plan.k) +
                     axes_text("lane", {plan.lane});
  text.resize(text.size() - 2);
  if (plan.algorithm == TilePlan::Algorithm::kDots)
    text += fmt::format("; vectors of {} along K", plan.lanes);
  else
    text += fmt::format("; tile {} (rows, columns, vectors of {}{})", str(plan.tile()), plan.lanes,
                        plan.vectors_along_lane || plan.tile().vectors == 1 ? "" : " along N");
  if (plan.flat) text += ", rows joined";
  if (!plan.packed.empty()) text += fmt::format("; `{}` packed", plan.packed);
  if (plan.joined_k > 1) {
    text += "; ";
    for (size_t i = plan.k.size() - plan.joined_k; i < plan.k.size(); ++i)
      text += plan.k[i].name + (i + 1 < plan.k.size() ? " and " : " in one loop");
  }
  if (plan.unrolled_steps > 1) text += fmt::format("; {} steps unrolled", plan.unrolled_steps);
  if (plan.tasks_of != TilePlan::Tasks::kNone)
    text += fmt::format("; {} cut into {} tasks {} the weights",
                        plan.tasks_of == TilePlan::Tasks::kRows ? "rows" : "columns", plan.tasks,
                        plan.tasks_outside ? "outside" : "inside");
  if (plan.task_panels > 1) text += fmt::format("; tasks of {} panels", plan.task_panels);
  if (plan.prefetches) text += "; prefetches the next panel";
  if (plan.fetches_columns) text += " and inputs";
  if (plan.seconds > 0)
    text += fmt::format("; predicted {:.4g} us{}", plan.seconds * 1e6,
                        plan.assumes_lengths ? " at assumed lengths" : "");
  if (plan.next_seconds > 0)
    text +=
        fmt::format("; runner-up {}: {:.4g} us", str(plan.choice.next), plan.next_seconds * 1e6);
  return text;
}

}  // namespace tenon::tir
