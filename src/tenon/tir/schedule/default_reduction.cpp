// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/default_reduction.h"

#include <algorithm>

#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

/// A number for comparisons: the expression where every dimension that is known only at run time
/// has one length, of no special form. Nothing where it depends on something else.
std::optional<int64_t> typical(const Expr& expr) {
  constexpr int64_t kLength = 37;
  const Expr filled = rewrite(expr, [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* dimension = node.as<Var>();
    if (!dimension || !dimension->is_size) return std::nullopt;
    return NodePtr(imm(dimension->dtype, kLength));
  });
  return as_int(arith::simplify(filled));
}

/// Elements that the loops around the block (below the root) run it for, or 0 where not known.
int64_t runs_of(Schedule& schedule, const BlockRV& block, size_t from) {
  Expr runs = int64(1);
  const std::vector<LoopRV> loops = schedule.get_loops(block);
  for (size_t i = from; i < loops.size(); ++i) runs = runs * schedule.get(loops[i])->extent;
  return typical(runs).value_or(0);
}

int64_t domain_of(const Block& block) {
  Expr points = int64(1);
  for (const IterVar& iter : block.iter_vars) points = points * iter.domain.extent;
  return typical(points).value_or(0);
}

/// Whether the loops from `from` on have constant extents.
bool is_constant_inside(Schedule& schedule, const BlockRV& block, size_t from) {
  const std::vector<LoopRV> loops = schedule.get_loops(block);
  return std::all_of(
      loops.begin() + static_cast<std::ptrdiff_t>(from), loops.end(),
      [&](const LoopRV& loop) { return as_int(schedule.get(loop)->extent).has_value(); });
}

}  // namespace

void schedule_window(Schedule& schedule, const BlockRV& block, const Target& target) {
  const MachineModel& model = machine_model(target);
  schedule.simplify_block_iters(block);
  const Ref<Block> node = schedule.get(block);
  const auto accesses = linear_accesses(*node);
  if (!is_reduction(*node) || !accesses)
    illegal(node->origin, "block `{}` is no reduction with linear accesses", block.name);
  std::optional<size_t> axis;
  for (size_t a = 0; a < node->iter_vars.size(); ++a)
    if (node->iter_vars[a].kind == IterKind::kSpatial && accesses->store.is_unit(a)) axis = a;
  if (!axis) illegal(node->origin, "results of block `{}` are not consecutive", block.name);
  for (const LinearAccess& load : accesses->loads) {
    const auto step = as_int(load.strides[*axis]);
    if (!step || *step < 0 || *step > model.widest_lane_stride)
      illegal(node->origin, "block `{}` reads `{}` far apart", block.name, load.buffer->name);
  }
  const int64_t extent = extent_of(node->iter_vars[*axis]);
  const int64_t widest = target.vector_lanes(node->writes.at(0)->buffer->dtype.storage().bits);
  int64_t lanes = widest;
  while (extent > 0 && lanes > extent) lanes /= 2;
  // Narrower vectors without a rest beat wide ones with a rest that is gathered under a mask.
  for (int64_t even = lanes; extent > 0 && even >= model.least_lanes; even /= 2)
    if (extent % even == 0) {
      lanes = even;
      break;
    }
  if (lanes < model.least_lanes) illegal(node->origin, "block `{}` has short rows", block.name);

  std::vector<LoopRV> outer, taps;
  int64_t count = 1;
  for (size_t a = 0; a < node->iter_vars.size(); ++a) {
    const auto loop = loop_of_axis(schedule, block, a);
    if (!loop || a == *axis) continue;
    if (node->iter_vars[a].kind == IterKind::kReduce) {
      taps.push_back(*loop);
      count *= std::max<int64_t>(1, extent_of(node->iter_vars[a]));
      if (extent_of(node->iter_vars[a]) == 0) count = model.unrolled_taps + 1;
    } else {
      outer.push_back(*loop);
    }
  }
  if (taps.empty()) illegal(node->origin, "block `{}` reduces nothing", block.name);
  const LoopRV row = *loop_of_axis(schedule, block, *axis);
  const auto parts = schedule.split(row, lanes);
  std::vector<LoopRV> order = outer;
  order.push_back(parts[0]);
  order.insert(order.end(), taps.begin(), taps.end());
  order.push_back(parts[1]);
  schedule.reorder(order);
  schedule.vectorize(parts[1]);
  if (count <= model.unrolled_taps)
    for (const LoopRV& tap : taps) schedule.unroll(tap);
  schedule.decompose_reduction(block, taps[0]);
  if (extent == 0 || extent % lanes != 0)
    schedule.loop_partition(
        parts[0], {arith::simplify(floordiv(node->iter_vars[*axis].domain.extent, lanes))});
  if (!outer.empty())
    parallelize(schedule, outer, std::max(extent, model.unknown_row) * count, model);
}

bool is_padding(const Schedule& schedule, const BlockRV& block) {
  const Ref<Block> node = schedule.get(block);
  const BufferStore* store = only_store(*node);
  if (!store || !is_spatial(*node) || !schedule.is_intermediate(store->buffer)) return false;
  const auto* guard = store->value.as<Call>();
  if (!guard || !guard->is(IntrinsicId::kIfThenElse)) return false;
  const std::vector<BlockRV> readers = schedule.consumers(block);
  return readers.size() == 1 && is_reduction(*schedule.get(readers[0]));
}

void place_padding(Schedule& schedule, const BlockRV& padding, const Target& target) {
  const MachineModel& model = machine_model(target);
  const std::vector<BlockRV> readers = schedule.consumers(padding);
  const Ref<Block> node = schedule.get(padding);
  const int64_t points = domain_of(*node);
  if (readers.empty() || points == 0)
    illegal(node->origin, "block `{}` has no readers, or dimensions that are not known",
            padding.name);
  const int64_t bytes = node->writes.at(0)->buffer->dtype.bytes();
  const std::vector<LoopRV> loops = schedule.get_loops(readers[0]);
  // The innermost place at which little is computed twice.
  for (size_t l = loops.size(); l-- > 0;) {
    const Ref<For> loop = schedule.get(loops[l]);
    const int64_t extent = as_int(loop->extent).value_or(0);
    if (loop->kind == ForKind::kVectorized || loop->kind == ForKind::kUnrolled) continue;
    for (const int64_t rows : model.padding_rows) {
      if (rows > 1 && (extent % rows != 0 || extent <= rows)) continue;
      if (rows > 1 && loop->kind != ForKind::kSerial) continue;
      Schedule trial = schedule;
      const bool is_placed = attempt(trial, [&] {
        trial.compute_at(padding, rows > 1 ? trial.split(loops[l], rows)[0] : loops[l]);
      });
      if (!is_placed) continue;
      // Parts of a row have their guards in places that are not known.
      const Ref<BlockRealize> placed = trial.realize(padding);
      const auto row = loop_of_axis(trial, padding, placed->iter_values.size() - 1);
      if (!row || !arith::proves_equal(placed->iter_values.back() - Expr(row->var),
                                       node->iter_vars.back().domain.min))
        continue;
      const int64_t inside = runs_of(trial, padding, l + 1);
      const int64_t all = runs_of(trial, padding, 0);
      if (all == 0 || all > points + points * model.repeated_quarters / 4 ||
          inside * bytes > target.l2_bytes * model.padding_l2_quarters / 4)
        continue;
      schedule = std::move(trial);
      if (is_constant_inside(schedule, padding, l + 1) &&
          inside * bytes <= target.l1_bytes * model.padding_l1_quarters / 4)
        schedule.set_scope(padding, 0, "local");
      vectorize_last_axis(schedule, padding, target);
      return;
    }
  }
  illegal(node->origin, "rows of `{}` would be computed several times", padding.name);
}

}  // namespace tenon::tir
