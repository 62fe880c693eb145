// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/default_recurrence.h"

#include <algorithm>
#include <functional>

#include "tenon/tir/analysis/block_work.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

int64_t divisor_at_most(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

/// The last spatial axis along which every access moves by one element or none.
std::optional<size_t> vector_axis(const Block& block, const BlockAccesses& accesses) {
  for (size_t a = block.iter_vars.size(); a-- > 0;) {
    if (block.iter_vars[a].kind != IterKind::kSpatial || !accesses.store.is_unit(a)) continue;
    const bool suits =
        std::all_of(accesses.loads.begin(), accesses.loads.end(),
                    [&](const LinearAccess& load) { return !load.moves(a) || load.is_unit(a); });
    if (suits) return a;
  }
  return std::nullopt;
}

/// The number of tasks that a step is worth, by which its columns can be cut into whole vectors; 1
/// where it is too short to be handed over. Each thread reads the same weights in every step.
int64_t step_tasks(const Block& block, size_t axis, int64_t lanes, const Target& target) {
  const int64_t columns = extent_of(block.iter_vars[axis]);
  const MachineModel& model = machine_model(target);
  const BlockWork work = work_of(block);
  int64_t steps = 1;
  for (const IterVar& iter : block.iter_vars)
    if (iter.kind == IterKind::kScan) steps *= std::max<int64_t>(1, extent_of(iter));
  const double macs = work.points / static_cast<double>(steps);
  const auto most = static_cast<int64_t>(macs / static_cast<double>(model.step_macs));
  for (int64_t tasks = std::min(most, model.step_tasks); tasks > 1; --tasks)
    if (columns % (tasks * lanes) == 0) return tasks;
  return 1;
}

/// The loops of a product with weights besides those over its columns and its sum.
struct LoopsAround {
  std::vector<LoopRV> parts_of_weights;  // outside of the sum: each part is read from end to end
  std::vector<LoopRV> outer, inner, rows;
};

LoopsAround loops_around(Schedule& schedule, const BlockRV& block, const LinearAccess& weights,
                         size_t axis, size_t reduce, int64_t most_rows,
                         const std::function<bool(const LoopRV&)>& is_own) {
  const Ref<Block> node = schedule.get(block);
  LoopsAround out;
  const auto stride = [&](size_t a) { return as_int(weights.strides[a]).value_or(0); };
  for (size_t a = 0; a < node->iter_vars.size(); ++a) {
    const auto loop = loop_of_axis(schedule, block, a);
    if (a == axis || a == reduce || !loop || !is_own(*loop)) continue;
    if (weights.moves(a)) {
      (stride(a) > stride(reduce) ? out.parts_of_weights : out.inner).push_back(*loop);
      continue;
    }
    const int64_t tile = divisor_at_most(extent_of(node->iter_vars[a]), most_rows);
    if (!out.rows.empty() || tile < 2) {
      out.outer.push_back(*loop);
      continue;
    }
    const auto parts = schedule.split(*loop, tile);
    out.outer.push_back(parts[0]);
    out.rows.push_back(parts[1]);
  }
  return out;
}

/// Puts the loops that are inside all shared ones in the given order.
void reorder_inner(Schedule& schedule, const std::vector<LoopRV>& loops) {
  if (loops.size() > 1) schedule.reorder(loops);
}

}  // namespace

void schedule_scan(Schedule& schedule, const BlockRV& block, const Target& target) {
  const MachineModel& model = machine_model(target);
  const Ref<Block> node = schedule.get(block);
  const auto accesses = linear_accesses(*node);
  if (!accesses) illegal(node->origin, "accesses of block `{}` are not linear", block.name);
  const auto axis = vector_axis(*node, *accesses);
  const auto lane_loop = axis ? loop_of_axis(schedule, block, *axis) : std::nullopt;
  if (!lane_loop)
    illegal(node->origin, "block `{}` has no axis of consecutive elements", block.name);
  // Loops that other blocks share stay where they are.
  std::vector<LoopRV> own;
  for (const LoopRV& loop : schedule.get_loops(block)) {
    const Path path = find_loop(schedule.func()->body, loop.var.get());
    if (realizes_in(path.target()).size() == 1) own.push_back(loop);
  }
  const auto is_own = [&](const LoopRV& loop) {
    return std::find(own.begin(), own.end(), loop) != own.end();
  };
  if (!is_own(*lane_loop)) illegal(node->origin, "the loops of block `{}` are shared", block.name);
  int widest = 32;
  for (const auto& region : node->writes)
    widest = std::max<int>(widest, region->buffer->dtype.storage().bits);
  const int64_t lanes = target.vector_lanes(widest);

  std::optional<size_t> reduce;
  for (size_t a = 0; a < node->iter_vars.size(); ++a)
    if (node->iter_vars[a].kind == IterKind::kReduce && loop_of_axis(schedule, block, a)) {
      if (reduce) illegal(node->origin, "block `{}` reduces over several axes", block.name);
      reduce = a;
    }
  if (!reduce) {
    std::vector<LoopRV> order;
    for (const LoopRV& loop : own)
      if (!(loop == *lane_loop)) order.push_back(loop);
    order.push_back(*lane_loop);
    reorder_inner(schedule, order);
    vectorize_last_axis(schedule, block, target);
    return;
  }

  // The loop over steps stays outside, and in order, where this block has it alone, too.
  for (size_t a = 0; a < node->iter_vars.size(); ++a)
    if (const auto loop = loop_of_axis(schedule, block, a);
        loop && node->iter_vars[a].kind == IterKind::kScan)
      own.erase(std::remove(own.begin(), own.end(), *loop), own.end());

  // The weights are the operand that moves with both; what moves it besides stays inside.
  const LinearAccess* weights = nullptr;
  for (const LinearAccess& load : accesses->loads)
    if (load.moves(*axis) && load.moves(*reduce)) weights = &load;
  if (!weights) illegal(node->origin, "block `{}` is no product with weights", block.name);
  auto [parts_of_weights, outer, inner, rows] =
      loops_around(schedule, block, *weights, *axis, *reduce, model.recurrent_rows, is_own);
  const LoopRV k = *loop_of_axis(schedule, block, *reduce);
  const int64_t tasks = step_tasks(*node, *axis, lanes, target);
  std::optional<LoopRV> task;
  LoopRV columns = *lane_loop;
  if (tasks > 1 && !parts_of_weights.empty()) {
    task = schedule.fuse(parts_of_weights);
    parts_of_weights.clear();
  } else if (tasks > 1) {
    const auto parts = schedule.split(*lane_loop, extent_of(node->iter_vars[*axis]) / tasks);
    task = parts[0];
    columns = parts[1];
  }
  const auto vectors = schedule.split(columns, lanes);
  const int64_t steps = divisor_at_most(extent_of(node->iter_vars[*reduce]), model.recurrent_steps);
  LoopRV k_outer = k;
  std::vector<LoopRV> order;
  if (task) order.push_back(*task);
  order.insert(order.end(), parts_of_weights.begin(), parts_of_weights.end());
  order.insert(order.end(), outer.begin(), outer.end());
  std::optional<LoopRV> k_inner;
  if (steps > 1) {
    const auto parts = schedule.split(k, steps);
    k_outer = parts[0];
    k_inner = parts[1];
  }
  order.push_back(k_outer);
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(vectors[0]);
  order.insert(order.end(), rows.begin(), rows.end());
  if (k_inner) order.push_back(*k_inner);
  order.push_back(vectors[1]);
  // Loops of one iteration that carry no axis stand outside.
  for (const LoopRV& loop : own)
    if (find_loop(schedule.func()->body, loop.var.get()) &&
        std::find(order.begin(), order.end(), loop) == order.end())
      order.insert(order.begin(), loop);
  reorder_inner(schedule, order);
  for (const LoopRV& loop : rows) schedule.unroll(loop);
  if (k_inner) schedule.unroll(*k_inner);
  schedule.vectorize(vectors[1]);
  if (task) schedule.parallel(*task);
  schedule.decompose_reduction(block, k_outer);
}

}  // namespace tenon::tir
