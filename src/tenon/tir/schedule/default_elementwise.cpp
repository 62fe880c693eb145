// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/default_elementwise.h"

#include <algorithm>

#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

/// What is read along `from` and written along `to`.
struct Transpose {
  size_t from, to;
  int64_t read;  // the region of the block's reads
};

std::optional<Transpose> transpose_of(const Block& block) {
  const auto accesses = linear_accesses(block);
  if (!accesses || accesses->loads.empty()) return std::nullopt;
  std::optional<size_t> to, from;
  for (size_t a = 0; a < block.iter_vars.size(); ++a)
    if (accesses->store.is_unit(a) && !is_int(block.iter_vars[a].domain.extent, 1)) to = a;
  if (!to) return std::nullopt;
  const LinearAccess* moved = nullptr;
  for (const LinearAccess& load : accesses->loads) {
    if (!load.moves(*to) || load.is_unit(*to)) continue;
    if (moved) return std::nullopt;
    moved = &load;
  }
  if (!moved) return std::nullopt;
  for (size_t a = 0; a < block.iter_vars.size(); ++a)
    if (moved->is_unit(a) && !is_int(block.iter_vars[a].domain.extent, 1)) from = a;
  if (!from) return std::nullopt;
  for (size_t r = 0; r < block.reads.size(); ++r)
    if (block.reads[r]->buffer.same_as(moved->buffer))
      return Transpose{*from, *to, static_cast<int64_t>(r)};
  return std::nullopt;
}

/// Elements of a square's side: a power of two that divides the extent, or a vector where much is
/// left besides. 0: too short.
int64_t side_of(int64_t extent, int64_t lanes, int64_t least) {
  for (int64_t side = lanes; side >= least; side /= 2)
    if (extent % side == 0 && (extent > 0 || side == lanes)) return side;
  for (int64_t side = lanes; side >= least; side /= 2)
    if (extent >= 2 * side) return side;
  return 0;
}

/// Axes that are read by quotient and remainder are cut by the divisor.
void split_div_mod_axes(Schedule& schedule, const BlockRV& block) {
  const std::vector<int64_t> divisors = div_mod_divisors(*schedule.get(block));
  for (size_t a = divisors.size(); a-- > 0;) {
    const int64_t extent = extent_of(schedule.get(block)->iter_vars[a]);
    if (divisors[a] > 1 && extent > divisors[a] && extent % divisors[a] == 0)
      schedule.split_block_iter(block, static_cast<int64_t>(a), divisors[a]);
  }
}

/// A nest of its own for the iterations of an axis that make whole sides; `block` stands in it.
void cut_whole(Schedule& schedule, const BlockRV& block, size_t axis, int64_t side) {
  const LoopRV loop = *loop_of_axis(schedule, block, axis);
  const Expr extent = schedule.get(loop)->extent;
  if (arith::Analyzer().proves_divisible(extent, side)) return;
  std::vector<LoopRV> order{loop};
  for (const LoopRV& other : schedule.get_loops(block))
    if (!(other == loop)) order.push_back(other);
  if (order.size() > 1) schedule.reorder(order);
  schedule.loop_partition(loop, {arith::simplify(floordiv(extent, side) * side)});
}

}  // namespace

bool transposes(const Block& block, const Ref<Buffer>& buffer) {
  const auto accesses = is_spatial(block) ? linear_accesses(block) : std::nullopt;
  if (!accesses) return false;
  for (const LinearAccess& load : accesses->loads) {
    if (!load.buffer.same_as(buffer)) continue;
    bool row = false, column = false;
    for (size_t a = 0; a < block.iter_vars.size(); ++a) {
      if (is_int(block.iter_vars[a].domain.extent, 1)) continue;
      row = row || (load.is_unit(a) && !accesses->store.is_unit(a));
      column = column || (accesses->store.is_unit(a) && load.moves(a) && !load.is_unit(a));
    }
    if (row && column) return true;
  }
  return false;
}

void schedule_transpose(Schedule& schedule, const BlockRV& block, const Target& target,
                        const TransposeOptions& options) {
  const MachineModel& model = machine_model(target);
  if (!options.inside) {
    schedule.simplify_block_iters(block);
    split_div_mod_axes(schedule, block);
  }
  if (options.joins) join_axes(schedule, block);
  const Ref<Block> node = schedule.get(block);
  bool guarded = false;
  walk<Call>(node->body, [&](const Call& call) { guarded |= call.is(IntrinsicId::kIfThenElse); });
  const auto found = transpose_of(*node);
  if (!found || guarded) illegal(node->origin, "block `{}` is no transpose", block.name);
  // Of narrow elements that are made of others, no wider than vectors of those.
  const int64_t most = std::clamp<int64_t>(target.vector_lanes(32), 8, model.square_lanes);
  const int64_t lanes = std::min<int64_t>(
      most, target.vector_lanes(node->writes.at(0)->buffer->dtype.storage().bits));
  const auto length = [&](size_t axis) {
    const auto loop = loop_of_axis(schedule, block, axis);
    if (!options.inside) return extent_of(node->iter_vars[axis]);
    return loop ? as_int(schedule.get(*loop)->extent).value_or(-1) : 1;
  };
  const int64_t rows = side_of(length(found->from), lanes, model.least_lanes);
  const int64_t columns = side_of(length(found->to), lanes, model.least_lanes);
  if (rows == 0 || columns == 0)
    illegal(node->origin, "block `{}` transposes few elements at a time", block.name);

  // The tile is indexed by the axes that place the load, the one of consecutive elements last.
  std::vector<int64_t> axes;
  const auto accesses = linear_accesses(*node);
  for (const LinearAccess& load : accesses->loads)
    if (load.buffer.same_as(node->reads[static_cast<size_t>(found->read)]->buffer))
      for (size_t a = 0; a < load.strides.size(); ++a)
        if (load.moves(a) && a != found->from && a != found->to)
          axes.push_back(static_cast<int64_t>(a));
  axes.push_back(static_cast<int64_t>(found->to));
  axes.push_back(static_cast<int64_t>(found->from));

  // A length known only at run time is cut around everything else: a nest of whole tiles.
  if (length(found->from) == 0) cut_whole(schedule, block, found->from, rows);
  const LoopRV to = *loop_of_axis(schedule, block, found->to);
  const LoopRV from = *loop_of_axis(schedule, block, found->from);
  std::vector<LoopRV> order;
  for (const LoopRV& loop : schedule.get_loops(block)) {
    if (!(loop == to) && !(loop == from)) order.push_back(loop);
    if (options.inside && loop == *options.inside) order.clear();
  }
  order.push_back(to);
  order.push_back(from);
  schedule.reorder(order);
  // Whole tiles first; what is left of either side keeps its loops.
  const auto whole = [&](const LoopRV& loop, int64_t side) {
    const Expr extent = schedule.get(loop)->extent;
    if (arith::Analyzer().proves_divisible(extent, side)) return loop;
    return schedule.loop_partition(loop, {arith::simplify(floordiv(extent, side) * side)})[0];
  };
  const LoopRV to_whole = whole(to, columns);
  const LoopRV from_whole = whole(from, rows);
  const auto to_parts = schedule.split(to_whole, columns);
  const auto from_parts = schedule.split(from_whole, rows);
  schedule.reorder({to_parts[0], from_parts[0], from_parts[1], to_parts[1]});
  const BlockRV tile = schedule.reindex_cache_read(block, found->read, "local", axes);
  // Tasks are the loops outside, or the tiles; both joined would hide what the places have in
  // common.
  order.resize(order.size() - 2);
  int64_t outside = 1;
  for (const LoopRV& loop : order)
    outside *= as_int(schedule.get(loop)->extent).value_or(model.unknown_row);
  const int64_t from_work = std::max<int64_t>(1, extent_of(node->iter_vars[found->from]));
  if (options.inside) {
    // A part of a task.
  } else if (outside >= model.square_tasks && to_whole == to) {
    const int64_t to_work = std::max<int64_t>(1, extent_of(node->iter_vars[found->to]));
    parallelize(schedule, order, from_work * to_work, model);
  } else {
    parallelize(schedule, {to_parts[0]}, from_work * columns, model);
  }
  schedule.compute_at(tile, from_parts[0]);
  const std::vector<LoopRV> copy = schedule.get_loops(tile);
  schedule.vectorize(copy.back());
  schedule.unroll(copy[copy.size() - 2]);
  schedule.unroll(from_parts[1]);
  schedule.vectorize(to_parts[1]);
}

}  // namespace tenon::tir
