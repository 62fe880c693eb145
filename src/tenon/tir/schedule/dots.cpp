// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/dots.h"

#include <algorithm>

#include "tenon/tir/analysis/integer_sum.h"
#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"

namespace tenon::tir {

namespace {

class Dots {
 public:
  Dots(Schedule& schedule, const BlockRV& block, const AllColumns& all, const Target& target)
      : sch_(schedule),
        block_(block),
        target_(target),
        model_(machine_model(target)),
        node_(schedule.get(block)),
        all_(all),
        roles_(roles_of(*all.block, all.accesses, all.lane)) {}

  /// The plan, where the nest suits.
  std::optional<TilePlan> plan() {
    const Ref<Buffer>& sums = node_->writes.at(0)->buffer;
    if (all_.accesses.loads.size() != 2 || !sums->dtype.is_float() || count_products(*node_) > 0)
      return std::nullopt;
    for (const LinearAccess& load : all_.accesses.loads)
      if (load.buffer->dtype != sums->dtype) return std::nullopt;
    if (roles_.depthwise || roles_.window || !roles_.n.empty() || roles_.m.empty() ||
        roles_.k.size() != 1)
      return std::nullopt;
    TilePlan plan;
    plan.algorithm = TilePlan::Algorithm::kDots;
    plan.batch = axes_of(roles_.batch);
    plan.m = axes_of(roles_.m);
    plan.k = axes_of(roles_.k);
    plan.lane = axes_of({roles_.lane})[0];
    plan.lanes = target_.vector_lanes(sums->dtype.storage().bits);
    k_ = position(roles_.k[0]);
    for (const LinearAccess& load : all_.accesses.loads) {
      if (!load.moves(all_.lane) && !load.is_unit(k_)) return std::nullopt;
      if (load.moves(all_.lane)) column_ = &load;
    }
    if (!column_ || !pays(plan) || !cut_into_tasks(plan)) return std::nullopt;
    plan.seconds = seconds(plan);
    return plan;
  }

  void apply(const BlockRV& epilogue, TilePlan& plan, bool is_serial) {
    std::optional<BlockRV> copy;
    if (!column_->is_unit(k_)) {
      plan.packed = column_->buffer->name;
      copy = copy_columns();
    }
    sch_.cache_write(block_, 0, "local");
    sch_.reverse_compute_inline(epilogue);
    std::vector<int64_t> order;
    for (const auto* axes : {&roles_.batch, &roles_.m})
      for (const Ref<Var>& axis : *axes) order.push_back(static_cast<int64_t>(position(axis)));
    order.push_back(static_cast<int64_t>(all_.lane));
    order.push_back(static_cast<int64_t>(k_));
    sch_.reorder_block_iters(block_, order);
    const RowReduction reduction = split_row_reduction(sch_, block_, target_);
    const auto [task, row] = place(reduction.whole, plan.tasks, is_serial);
    for (size_t i = reduction.halves.size(); i-- > 0;) compute_in(reduction.halves[i], row);
    compute_in(reduction.part, row);
    if (copy) compute_in(*copy, task);
    sch_.reverse_compute_at(epilogue, row);
    unroll_columns(reduction, epilogue, row);
    finish_row_reduction(sch_, reduction, model_);
    unroll_steps(reduction.part);
  }

 private:
  size_t position(const Ref<Var>& axis) const {
    size_t a = 0;
    while (!all_.block->iter_vars[a].var.same_as(axis)) ++a;
    return a;
  }

  std::vector<TilePlan::Axis> axes_of(const std::vector<Ref<Var>>& axes) const {
    std::vector<TilePlan::Axis> out;
    out.reserve(axes.size());
    for (const Ref<Var>& axis : axes)
      out.push_back({axis->name, extent_of(node_->iter_vars[position(axis)])});
    return out;
  }

  /// Of one dot product, a vector of the reduction counted as one.
  int64_t instructions(const TilePlan& plan) const {
    return plan.k[0].extent / plan.lanes + model_.dot_instructions;
  }

  double seconds(const TilePlan& plan) const {
    auto dots = static_cast<double>(plan.lane.extent);
    for (const auto* axes : {&plan.batch, &plan.m})
      for (const TilePlan::Axis& axis : *axes) dots *= static_cast<double>(axis.extent);
    return dots * static_cast<double>(instructions(plan)) / model_.fmas_per_cycle /
           model_.cycles_per_second;
  }

  /// Whether the columns take less time so than as vectors of fewer lanes, of which some may be left to dots.
  bool pays(const TilePlan& plan) const {
    const int64_t steps = plan.k[0].extent, columns = plan.lane.extent;
    int64_t rows = 1;
    for (const TilePlan::Axis& axis : plan.m) rows *= axis.extent;
    if (rows < model_.least_dot_rows || steps < 2 * plan.lanes ||
        columns > target_.vector_registers / 2)
      return false;
    const int64_t bytes = columns * steps * node_->writes[0]->buffer->dtype.bytes();
    if (!column_->is_unit(k_) && bytes > target_.l1_bytes / model_.dot_l1_parts) return false;
    const auto dots = [&](int64_t n) { return n * instructions(plan); };
    int64_t best = 0;  // of the columns of the lowest bits
    for (int64_t bit = 1, low = 0; bit <= columns; bit *= 2) {
      if ((columns & bit) == 0) continue;
      low += bit;
      best = std::min(steps + best, dots(low));
    }
    return dots(columns) == best;
  }

  /// Rows are cut into tasks where they are many. \returns false where no number divides them
  bool cut_into_tasks(TilePlan& plan) const {
    int64_t work = plan.k[0].extent + model_.dot_instructions * plan.lanes;
    for (const auto* axes : {&plan.batch, &plan.m})
      for (const TilePlan::Axis& axis : *axes) work *= axis.extent;
    work *= plan.lane.extent;
    int64_t wanted = std::clamp<int64_t>(work / model_.task_macs, 1, model_.contraction_tasks);
    for (const TilePlan::Axis& axis : plan.batch) {
      const int64_t extent = std::max<int64_t>(1, axis.extent);
      wanted = (wanted + extent - 1) / extent;
    }
    const int64_t rows = plan.m.front().extent;
    wanted = std::min(wanted, rows / model_.least_dot_rows);
    if (wanted <= 1) return true;
    plan.tasks = widest_divisor(rows, wanted);
    if (plan.tasks == 1 || plan.m.size() > 2) return false;
    plan.tasks_of = plan.m.size() == 1 ? TilePlan::Tasks::kColumns : TilePlan::Tasks::kRows;
    plan.tasks_outside = true;
    return true;
  }

  BlockRV copy_columns() const {
    std::vector<int64_t> order;
    for (size_t a = 0; a < node_->iter_vars.size(); ++a)
      if (a != k_ && (a == all_.lane || column_->moves(a)))
        order.push_back(static_cast<int64_t>(a));
    order.push_back(static_cast<int64_t>(k_));
    size_t read = 0;
    while (!node_->reads[read]->buffer.same_as(column_->buffer)) ++read;
    return sch_.reindex_cache_read(block_, static_cast<int64_t>(read), "global", order);
  }

  void compute_in(const BlockRV& block, const LoopRV& loop) {
    sch_.compute_at(block, loop);
    sch_.set_scope(block, 0, "local");
  }

  /// The dots of an output row run side by side, so that a vector of its operand serves all of them.
  void unroll_columns(const RowReduction& reduction, const BlockRV& epilogue, const LoopRV& row) {
    const auto below = [&](const BlockRV& block) {
      std::vector<LoopRV> loops = sch_.get_loops(block);
      loops.erase(loops.begin(), std::find(loops.begin(), loops.end(), row) + 1);
      return loops;
    };
    if (extent_of(node_->iter_vars[all_.lane]) > 1) {
      const std::vector<LoopRV> loops = below(reduction.part);  // columns, steps, lanes
      sch_.reorder({loops[1], loops[0], loops[2]});
      sch_.unroll(loops[0]);
      for (const BlockRV& half : reduction.halves) sch_.unroll(below(half)[0]);
      sch_.unroll(below(reduction.whole)[0]);
      sch_.unroll(below(epilogue)[0]);
    }
  }

  void unroll_steps(const BlockRV& part) {
    const Ref<Block> node = sch_.get(part);
    for (size_t a = 0; a < node->iter_vars.size(); ++a) {
      const auto loop = loop_of_axis(sch_, part, a);
      if (!loop || node->iter_vars[a].kind != IterKind::kReduce) continue;
      const int64_t count = as_int(sch_.get(*loop)->extent).value_or(1);
      const int64_t steps = unrolled_steps(count, 1, model_.unrolled_fmas, model_);
      if (steps > 1) sch_.unroll(steps == count ? *loop : sch_.split(*loop, steps)[1]);
    }
  }

  /// The loops around the dots: over tasks, and the innermost one over rows.
  std::pair<LoopRV, LoopRV> place(const BlockRV& whole, int64_t tasks, bool is_serial) {
    const Ref<Block> node = sch_.get(whole);
    const auto is_batch = [&](const IterVar& iter) {
      return std::any_of(roles_.batch.begin(), roles_.batch.end(),
                         [&](const Ref<Var>& axis) { return axis->name == iter.var->name; });
    };
    std::vector<LoopRV> outer, rows;
    for (size_t a = 0; a < node->iter_vars.size(); ++a) {
      const auto loop = loop_of_axis(sch_, whole, a);
      if (!loop || node->iter_vars[a].kind != IterKind::kSpatial) continue;
      if (is_batch(node->iter_vars[a]))
        outer.push_back(*loop);
      else if (node->iter_vars[a].var->name != roles_.lane->name)
        rows.push_back(*loop);
    }
    if (rows.empty()) illegal(node->origin, "block `{}` has no rows", whole.name);
    if (tasks > 1) {
      const auto parts = sch_.split(rows.front(), {int64(tasks), Expr()});
      outer.push_back(parts[0]);
      rows.front() = parts[1];
    }
    if (outer.empty()) {
      std::vector<LoopRV> order = sch_.get_loops(whole);
      outer.push_back(sch_.add_unit_loop(whole));
      order.insert(order.begin(), outer.front());
      sch_.reorder(order);
      return {outer.front(), rows.back()};
    }
    const LoopRV task = sch_.fuse(outer);
    if (!is_serial) sch_.parallel(task);
    return {task, rows.back()};
  }

  Schedule& sch_;
  const BlockRV& block_;
  const Target& target_;
  const MachineModel& model_;
  Ref<Block> node_;  // as it was; its axes are where those of all columns are
  const AllColumns& all_;
  TileRoles roles_;
  size_t k_ = 0;
  const LinearAccess* column_ = nullptr;  // of the operand that moves from column to column
};

}  // namespace

std::optional<TilePlan> schedule_dots(Schedule& schedule, const BlockRV& block,
                                      const BlockRV& epilogue, const AllColumns& all,
                                      const Target& target, bool is_serial) {
  Dots dots(schedule, block, all, target);
  std::optional<TilePlan> plan = dots.plan();
  if (!plan || !attempt(schedule, [&] { dots.apply(epilogue, *plan, is_serial); }))
    return std::nullopt;
  return plan;
}

}  // namespace tenon::tir
