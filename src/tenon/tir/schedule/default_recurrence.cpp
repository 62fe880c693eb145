// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/default_recurrence.h"

#include <algorithm>
#include <bit>

#include "tenon/tir/analysis/block_work.h"
#include "tenon/tir/schedule/default_schedule.h"
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

/// Puts the loops that are inside all shared ones in the given order.
void reorder_inner(Schedule& schedule, const std::vector<LoopRV>& loops) {
  if (loops.size() > 1) schedule.reorder(loops);
}

/// The schedule of a step's product with weights.
class StepProduct {
 public:
  StepProduct(Schedule& schedule, BlockRV block, const Target& target, const LinearAccess& weights,
              size_t axis, size_t reduce, int64_t lanes)
      : sch_(schedule),
        block_(std::move(block)),
        target_(target),
        model_(machine_model(target)),
        weights_(weights),
        axis_(axis),
        reduce_(reduce),
        lanes_(lanes) {}

  /// \param own  loops that no other block shares, without those over steps.
  void run(const std::vector<LoopRV>& own) {
    const Ref<Block> node = sch_.get(block_);
    auto [parts_of_weights, outer, inner, rows] = loops_around(own);
    LoopRV columns = *loop_of_axis(sch_, block_, axis_);
    std::optional<LoopRV> k_inner, task;
    LoopRV k = *loop_of_axis(sch_, block_, reduce_);
    const int64_t tasks = step_tasks(*node, axis_, lanes_, target_);
    if (tasks > 1 && !parts_of_weights.empty()) {
      task = sch_.fuse(parts_of_weights);
      parts_of_weights.clear();
    } else if (tasks > 1) {
      const auto parts = sch_.split(columns, extent_of(node->iter_vars[axis_]) / tasks);
      task = parts[0];
      columns = parts[1];
    }
    const auto vectors = sch_.split(columns, lanes_);
    const int64_t served = rows.empty() ? 1 : as_int(sch_.get(rows[0])->extent).value_or(1);
    const int64_t tile = inner.empty() ? choose_tile(vectors[0], served) : 1;
    // In registers, rows of weights follow one another in steps that the core foresees.
    const int64_t row_bytes = tile * lanes_ * weights_.buffer->dtype.bytes();
    const int64_t steps =
        divisor_at_most(extent_of(node->iter_vars[reduce_]),
                        tile > 1 ? std::max<int64_t>(1, model_.foreseen_bytes / row_bytes)
                                 : model_.recurrent_steps);
    if (steps > 1) {
      const auto parts = sch_.split(k, steps);
      k = parts[0];
      k_inner = parts[1];
    }
    std::vector<LoopRV> order, unrolled;
    if (task) order.push_back(*task);
    order.insert(order.end(), parts_of_weights.begin(), parts_of_weights.end());
    order.insert(order.end(), outer.begin(), outer.end());
    if (tile > 1) {  // sums stay in registers from the first step to the last
      const auto parts = sch_.split(vectors[0], tile);
      order.insert(order.end(), {parts[0], k});
      if (k_inner) unrolled.push_back(*k_inner);
      unrolled.push_back(parts[1]);
      unrolled.insert(unrolled.end(), rows.begin(), rows.end());
    } else {  // sums wait in memory
      order.push_back(k);
      order.insert(order.end(), inner.begin(), inner.end());
      order.push_back(vectors[0]);
      unrolled = rows;
      if (k_inner) unrolled.push_back(*k_inner);
    }
    order.insert(order.end(), unrolled.begin(), unrolled.end());
    order.push_back(vectors[1]);
    // Loops of one iteration that carry no axis stand outside.
    for (const LoopRV& loop : own)
      if (find_loop(sch_.func()->body, loop.var.get()) &&
          std::find(order.begin(), order.end(), loop) == order.end())
        order.insert(order.begin(), loop);
    reorder_inner(sch_, order);
    for (const LoopRV& loop : unrolled) sch_.unroll(loop);
    sch_.vectorize(vectors[1]);
    if (task) sch_.parallel(*task);
    sch_.decompose_reduction(block_, k);
  }

 private:
  /// The loops besides those over columns and over the sum.
  struct LoopsAround {
    std::vector<LoopRV> parts_of_weights;  // outside of the sum: each part is read from end to end
    std::vector<LoopRV> outer, inner, rows;
  };

  LoopsAround loops_around(const std::vector<LoopRV>& own) {
    const Ref<Block> node = sch_.get(block_);
    LoopsAround out;
    const auto stride = [&](size_t a) { return as_int(weights_.strides[a]).value_or(0); };
    for (size_t a = 0; a < node->iter_vars.size(); ++a) {
      const auto loop = loop_of_axis(sch_, block_, a);
      if (a == axis_ || a == reduce_ || !loop ||
          std::find(own.begin(), own.end(), *loop) == own.end())
        continue;
      if (weights_.moves(a)) {
        (stride(a) > stride(reduce_) ? out.parts_of_weights : out.inner).push_back(*loop);
        continue;
      }
      const int64_t tile = divisor_at_most(extent_of(node->iter_vars[a]), model_.recurrent_rows);
      if (!out.rows.empty() || tile < 2) {
        out.outer.push_back(*loop);
        continue;
      }
      const auto parts = sch_.split(*loop, tile);
      out.outer.push_back(parts[0]);
      out.rows.push_back(parts[1]);
    }
    return out;
  }

  /// The number of vectors of columns whose sums registers hold for all rows of a tile: a divisor of
  /// the loop's, as those left over would need code of their own. 1 where too few sums would wait for
  /// each other, and where weights cannot be had in panels of the tile: pieces of rows come slower
  /// than sums that wait in memory cost.
  int64_t choose_tile(const LoopRV& vectors, int64_t rows) {
    const int64_t width = extent_of(sch_.get(block_)->iter_vars[axis_]);
    const int64_t registers = std::min<int64_t>(target_.vector_registers, model_.registers);
    const int64_t count = as_int(sch_.get(vectors)->extent).value_or(1);
    // A number of each row, and a vector of weights.
    const int64_t tile = divisor_at_most(count, (registers - rows - 1) / rows);
    const int64_t least = rows > 1 ? model_.least_sums_of_rows : model_.least_sums;
    if (width % lanes_ != 0 || tile * rows < least) return 1;
    return tile * lanes_ == width || pack_weights(tile * lanes_) ? tile : 1;
  }

  /// Puts constant weights in panels of `columns`, each read from end to end, before the program runs.
  /// \returns whether it could: they are constants, and have rows of columns.
  bool pack_weights(int64_t columns) {
    const Ref<PrimFunc> function = sch_.func();
    const auto free = function->attrs.ints(kLayoutFreeBuffers).value_or(std::vector<int64_t>());
    const bool is_free = std::any_of(free.begin(), free.end(), [&](int64_t i) {
      return function->buffers.at(static_cast<size_t>(i)).same_as(weights_.buffer);
    });
    const size_t ndim = weights_.buffer->ndim();
    const LinearAccess::Step &column = weights_.steps[axis_], &row = weights_.steps[reduce_];
    if (!is_free || !column.dim || !row.dim || *column.dim + 1 != ndim || *row.dim == *column.dim)
      return false;
    IndexMap map;
    for (size_t d = 0; d < ndim; ++d)
      map.from.push_back(var(fmt::format("d{}", d), weights_.buffer->shape[d]->dtype));
    const Expr place = map.from.back();
    for (size_t d = 0; d + 1 < ndim; ++d) {
      if (d == *row.dim) map.to.push_back(floordiv(place, columns));
      map.to.push_back(map.from[d]);
    }
    map.to.push_back(floormod(place, columns));
    const BlockRV copy = sch_.cache_read(block_, read_of(weights_.buffer), "global");
    sch_.transform_layout(copy, BufferRole::kWrite, 0, map);
    sch_.annotate(copy, kLayoutRewritePreproc, true);
    return true;
  }

  /// Which of the block's reads is of a buffer.
  int64_t read_of(const Ref<Buffer>& buffer) const {
    const Ref<Block> node = sch_.get(block_);
    const auto read = std::find_if(
        node->reads.begin(), node->reads.end(),
        [&](const Ref<BufferRegion>& region) { return region->buffer.same_as(buffer); });
    check(read != node->reads.end(), "a block reads its operands");
    return read - node->reads.begin();
  }

  Schedule& sch_;
  const BlockRV block_;
  const Target& target_;
  const MachineModel& model_;
  const LinearAccess& weights_;
  const size_t axis_, reduce_;
  const int64_t lanes_;
};

/// The axes and loops of a block of a step.
struct StepBlock {
  BlockAccesses accesses;
  size_t axis;                   // of columns
  std::optional<size_t> reduce;  // of the sum, where there is one
  std::vector<LoopRV> own;       // loops that no other block shares
};

StepBlock step_block_of(Schedule& schedule, const BlockRV& block) {
  const Ref<Block> node = schedule.get(block);
  auto accesses = linear_accesses(*node);
  if (!accesses) illegal(node->origin, "accesses of block `{}` are not linear", block.name);
  const auto axis = vector_axis(*node, *accesses);
  const auto lane_loop = axis ? loop_of_axis(schedule, block, *axis) : std::nullopt;
  if (!lane_loop)
    illegal(node->origin, "block `{}` has no axis of consecutive elements", block.name);
  StepBlock out{std::move(*accesses), *axis, {}, {}};
  // Loops that other blocks share stay where they are.
  for (const LoopRV& loop : schedule.get_loops(block)) {
    const Path path = find_loop(schedule.func()->body, loop.var.get());
    if (realizes_in(path.target()).size() == 1) out.own.push_back(loop);
  }
  if (std::find(out.own.begin(), out.own.end(), *lane_loop) == out.own.end())
    illegal(node->origin, "the loops of block `{}` are shared", block.name);
  for (size_t a = 0; a < node->iter_vars.size(); ++a) {
    const auto loop = loop_of_axis(schedule, block, a);
    if (!loop || node->iter_vars[a].kind != IterKind::kReduce) continue;
    if (out.reduce) illegal(node->origin, "block `{}` reduces over several axes", block.name);
    out.reduce = a;
  }
  return out;
}

/// Removes loops over steps: they stay outside, and in order, also where no other block shares them.
void remove_step_loops(Schedule& schedule, const BlockRV& block, std::vector<LoopRV>& own) {
  const Ref<Block> node = schedule.get(block);
  for (size_t a = 0; a < node->iter_vars.size(); ++a)
    if (const auto loop = loop_of_axis(schedule, block, a);
        loop && node->iter_vars[a].kind == IterKind::kScan)
      own.erase(std::remove(own.begin(), own.end(), *loop), own.end());
}

/// Cuts columns that fill no whole number of vectors: those that do, then ever narrower vectors. Masks would
/// keep sums in memory.
/// \returns the block of each piece.
std::vector<BlockRV> cut_columns(Schedule& schedule, const BlockRV& block, const StepBlock& whole,
                                 int64_t lanes) {
  const int64_t width = extent_of(schedule.get(block)->iter_vars[whole.axis]);
  std::vector<Expr> points;
  int64_t at = width / lanes * lanes;
  for (int64_t left = width - at; left > 0; left = width - at) {
    if (at > 0) points.push_back(int64(at));
    at += static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(left)));
  }
  if (points.empty()) return {block};
  const LoopRV columns = *loop_of_axis(schedule, block, whole.axis);
  std::vector<LoopRV> order = whole.own;
  remove_step_loops(schedule, block, order);
  order.erase(std::find(order.begin(), order.end(), columns));
  order.insert(order.begin(), columns);
  reorder_inner(schedule, order);
  std::vector<BlockRV> pieces;
  for (const LoopRV& part : schedule.loop_partition(columns, points)) {
    const Path path = find_loop(schedule.func()->body, part.var.get());
    // A part of one iteration has no loop: it is no vector, either.
    if (path) pieces.push_back({realizes_in(path.target()).at(0)->block->name});
  }
  return pieces;
}

/// Schedules a product with weights, or a piece of its columns, in vectors of `lanes` at most.
void schedule_product(Schedule& schedule, const BlockRV& block, const Target& target,
                      int64_t lanes) {
  const StepBlock whole = step_block_of(schedule, block);
  const Ref<Block> node = schedule.get(block);
  std::vector<LoopRV> own = whole.own;
  remove_step_loops(schedule, block, own);
  if (!whole.reduce) illegal(node->origin, "block `{}` sums up one term", block.name);
  // The weights are the operand that moves with both.
  const LinearAccess* weights = nullptr;
  for (const LinearAccess& load : whole.accesses.loads)
    if (load.moves(whole.axis) && load.moves(*whole.reduce)) weights = &load;
  if (!weights) illegal(node->origin, "block `{}` is no product with weights", block.name);
  const int64_t width = extent_of(node->iter_vars[whole.axis]);
  while (lanes > 1 && width > 0 && width < lanes) lanes /= 2;
  StepProduct{schedule, block, target, *weights, whole.axis, *whole.reduce, lanes}.run(own);
}

}  // namespace

void schedule_scan(Schedule& schedule, const BlockRV& block, const Target& target) {
  const StepBlock whole = step_block_of(schedule, block);
  if (!whole.reduce) {
    const LoopRV columns = *loop_of_axis(schedule, block, whole.axis);
    std::vector<LoopRV> order = whole.own;
    order.erase(std::find(order.begin(), order.end(), columns));
    order.push_back(columns);
    reorder_inner(schedule, order);
    vectorize_last_axis(schedule, block, target);
    return;
  }
  int widest = 32;
  for (const auto& region : schedule.get(block)->writes)
    widest = std::max<int>(widest, region->buffer->dtype.storage().bits);
  const int64_t lanes = target.vector_lanes(widest);
  for (const BlockRV& piece : cut_columns(schedule, block, whole, lanes))
    schedule_product(schedule, piece, target, lanes);
}

}  // namespace tenon::tir
