// SPDX-License-Identifier: Apache-2.0
// Schedules of element-wise blocks and of reductions over consecutive elements.
#include <algorithm>

#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

int lanes_for(const Block& block, const Target& target) {
  int widest = 32;
  const auto see = [&](const Ref<Buffer>& buffer) {
    widest = std::max<int>(widest, buffer->dtype.storage().bits);
  };
  for (const auto& region : block.reads) see(region->buffer);
  for (const auto& region : block.writes) see(region->buffer);
  return target.vector_lanes(widest);
}

/// Conditions of if_then_else and Select in the block's body.
std::vector<Expr> conditions_of(const Block& block) {
  std::vector<Expr> out;
  walk(block.body, [&](const NodePtr& node) {
    if (const auto* call = node.as<Call>(); call && call->is(IntrinsicId::kIfThenElse))
      out.push_back(call->arg(0));
  });
  return out;
}

bool in_conditions(const Block& block, const Var* axis) {
  for (const Expr& condition : conditions_of(block))
    if (uses_var(condition, axis)) return true;
  return false;
}

/// Values at which a condition on the axis alone may change: where the axis' loop is to be cut.
std::vector<int64_t> turning_points(const Block& block, size_t axis) {
  const IterVar& iter = block.iter_vars[axis];
  const int64_t n = extent_of(iter);
  const int64_t low = as_int(iter.domain.min).value_or(0);
  std::vector<int64_t> points;
  arith::Analyzer analyzer;
  const std::vector<Ref<Var>> vars{iter.var};
  for (const Expr& condition : conditions_of(block))
    walk<Binary>(condition, [&](const Binary& op) {
      if (!is_comparison(op.op) || !op.lhs->dtype.is_int()) return;
      const auto form = analyzer.linear(op.lhs - op.rhs, vars);
      if (!form || is_zero(form->coefficients[0])) return;
      const auto rest = as_int(form->rest), slope = as_int(form->coefficients[0]);
      if (!rest || !slope || (*slope != 1 && *slope != -1)) return;
      const int64_t crossing = *slope == 1 ? -*rest : *rest;
      for (const int64_t point : {crossing, crossing + 1})
        if (point > low && point < low + n) points.push_back(point - low);
    });
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

}  // namespace

LoopRV parallelize(Schedule& schedule, const std::vector<LoopRV>& loops, int64_t work,
                   const MachineModel& model) {
  const LoopRV all = schedule.fuse(loops);
  const auto count = as_int(schedule.get(all)->extent);
  work = std::max<int64_t>(work, 1);
  if (!count) {
    const int64_t each = std::max<int64_t>(1, model.task_operations / work);
    if (each == 1) {
      schedule.parallel(all);
      return all;
    }
    const auto parts = schedule.split(all, each);
    schedule.parallel(parts[0]);
    return parts[1];
  }
  const int64_t wanted =
      std::min({*count * work / model.task_operations, *count, model.loop_tasks});
  if (wanted < 2) return all;
  int64_t tasks = divisor_at_least(*count, wanted);
  if (tasks > model.task_slack * wanted) tasks = wanted;  // uneven, under a predicate
  if (tasks == *count) {
    schedule.parallel(all);
    return all;
  }
  const auto parts = schedule.split(all, (*count + tasks - 1) / tasks);
  schedule.parallel(parts[0]);
  return parts[1];
}

/// As parallelize(), of as few outer loops as give enough tasks: the others stay as they are, so
/// that no place inside follows from quotients and remainders. An iteration of all does `work`.
static void parallelize_outer(Schedule& schedule, const std::vector<LoopRV>& loops, int64_t work,
                              const MachineModel& model) {
  std::vector<int64_t> extents;
  size_t symbolic = 0;  // loops up to the last one whose extent is known only at run time
  for (const LoopRV& loop : loops) {
    const auto extent = as_int(schedule.get(loop)->extent);
    extents.push_back(extent.value_or(1));
    if (!extent) symbolic = extents.size();
  }
  int64_t inside = std::max<int64_t>(work, 1), tasks = 1;
  for (const int64_t extent : extents) inside *= std::max<int64_t>(extent, 1);
  size_t count = 0;
  while (count < loops.size() &&
         (count == 0 || count < symbolic ||
          (tasks < model.enough_tasks && inside > 2 * model.task_operations))) {
    tasks *= std::max<int64_t>(extents[count], 1);
    inside /= std::max<int64_t>(extents[count], 1);
    ++count;
  }
  std::vector<LoopRV> joined(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(count));
  const int64_t each = std::max<int64_t>(1, model.task_operations / std::max<int64_t>(inside, 1));
  if (count > 1 && count == symbolic && each > 1) {
    // Tasks are runs of the last loop, so that a place in the others is computed once for each.
    joined.back() = schedule.split(joined.back(), each)[0];
    schedule.parallel(schedule.fuse(joined));
    return;
  }
  parallelize(schedule, joined, inside, model);
}

/// `loop`, of symbolic extent, without what is left of its vectors, which gets a loop of its own
/// where there may be any.
static LoopRV whole_vectors(Schedule& schedule, const LoopRV& loop, int64_t lanes) {
  const Expr extent = schedule.get(loop)->extent;
  const Expr whole = arith::simplify(floordiv(extent, lanes) * lanes);
  return arith::proves_equal(whole, extent) ? loop : schedule.loop_partition(loop, {whole})[0];
}

/// Cuts `loop`, which carries axis `axis` of `block`, into vectors and what is left of them.
static void vectorize_loop(Schedule& schedule, const BlockRV& block, const LoopRV& loop,
                           int64_t lanes, bool may_unroll) {
  (void)block;
  const Expr extent = schedule.get(loop)->extent;
  const auto n = as_int(extent);
  if (!n) {
    schedule.vectorize(schedule.split(whole_vectors(schedule, loop, lanes), lanes)[1]);
    return;
  }
  if (*n < 2) return;
  if (*n < lanes) {
    int64_t width = 1;
    while (width * 2 <= *n) width *= 2;
    if (width == *n) {
      schedule.vectorize(loop);
      return;
    }
    if (width < 2) return;
    const auto parts = schedule.loop_partition(loop, {int64(width)});
    schedule.vectorize(parts[0]);
    vectorize_loop(schedule, block, parts[1], lanes, false);
    return;
  }
  const int64_t main = *n / lanes * lanes;
  LoopRV body = loop;
  if (main < *n) {
    const auto parts = schedule.loop_partition(loop, {int64(main)});
    body = parts[0];
    vectorize_loop(schedule, block, parts[1], lanes, false);
  }
  if (main == lanes) {
    schedule.vectorize(body);
    return;
  }
  const bool unroll = may_unroll && main % (4 * lanes) == 0 && main > 4 * lanes;
  if (unroll) {
    const auto parts = schedule.split(body, {Expr(), int64(4), int64(lanes)});
    schedule.unroll(parts[1]);
    schedule.vectorize(parts[2]);
    return;
  }
  schedule.vectorize(schedule.split(body, lanes)[1]);
}

/// Whether every access moves by one element or none along the axis; loads by up to four, which
/// whole vectors hold as well.
static bool suits_lanes(const Block& block, size_t axis) {
  const auto accesses = linear_accesses(block);
  if (!accesses || !accesses->store.is_unit(axis)) return false;
  for (const LinearAccess& load : accesses->loads) {
    const auto step = as_int(load.strides[axis]);
    if (!step || *step < 0 || *step > 4) return false;
  }
  return true;
}

bool is_cheap(const Block& block) {
  int calls = 0;
  walk<Call>(block.body, [&](const Call& call) { calls += !call.is(IntrinsicId::kIfThenElse); });
  return calls == 0;
}

void vectorize_last_axis(Schedule& schedule, const BlockRV& block, const Target& target) {
  const Ref<Block> node = schedule.get(block);
  for (size_t a = node->iter_vars.size(); a-- > 0;) {
    const auto loop = loop_of_axis(schedule, block, a);
    if (!loop) continue;
    if (schedule.get(*loop)->kind != ForKind::kSerial || !suits_lanes(*node, a)) return;
    const int lanes = lanes_for(*node, target);
    if (!in_conditions(*node, node->iter_vars[a].var.get())) {
      vectorize_loop(schedule, block, *loop, lanes, is_cheap(*node));
      return;
    }
    if (extent_of(node->iter_vars[a]) == 0) return;
    // Only from the domain's start on are the turning points where the loop is to be cut.
    const auto whole = as_int(schedule.get(*loop)->extent);
    if (!whole || *whole > extent_of(node->iter_vars[a])) return;
    arith::Analyzer analyzer;
    if (!analyzer.proves_equal(schedule.realize(block)->iter_values[a] - Expr(loop->var),
                               node->iter_vars[a].domain.min))
      return;
    std::vector<Expr> points;
    for (const int64_t point : turning_points(*node, a))
      if (point < *whole) points.push_back(int64(point));
    if (points.empty() || points.size() > 6) return;
    for (const LoopRV& part : schedule.loop_partition(*loop, points)) {
      const Path path = find_loop(schedule.func()->body, part.var.get());
      if (!path) continue;
      const auto inside = realizes_in(path.target());
      if (inside.size() != 1) continue;
      const Ref<Block> piece = inside[0]->block;
      if (in_conditions(*piece, piece->iter_vars[a].var.get())) continue;
      vectorize_loop(schedule, {piece->name}, part, lanes, false);
    }
    return;
  }
}

void join_axes(Schedule& schedule, const BlockRV& block) {
  for (;;) {
    const Ref<Block> node = schedule.get(block);
    const auto accesses = linear_accesses(*node);
    if (!accesses) return;
    arith::Analyzer analyzer;
    bool joined = false;
    for (size_t a = node->iter_vars.size(); a-- > 1 && !joined;) {
      const IterVar &outer = node->iter_vars[a - 1], &inner = node->iter_vars[a];
      if (!is_zero(outer.domain.min) || !is_zero(inner.domain.min)) continue;
      if (in_conditions(*node, outer.var.get()) || in_conditions(*node, inner.var.get())) continue;
      bool plain = true;  // no use of an axis but in indices
      const auto store = only_store(*node);
      rewrite(store->value, [&](const NodePtr& n) -> std::optional<NodePtr> {
        if (n.as<BufferLoad>()) return NodePtr(imm(n.as<ExprNode>()->dtype, int64_t{0}));
        return std::nullopt;
      });
      std::vector<LinearAccess> all = accesses->loads;
      all.push_back(accesses->store);
      for (const LinearAccess& access : all)
        plain = plain && analyzer.proves_equal(access.strides[a - 1],
                                               access.strides[a] * inner.domain.extent);
      if (!plain) continue;
      schedule.fuse_block_iters(block, static_cast<int64_t>(a) - 1, 2);
      joined = true;
    }
    if (!joined) return;
  }
}

void schedule_elementwise(Schedule& schedule, const BlockRV& block, const Target& target) {
  const MachineModel& model = machine_model(target);
  schedule.simplify_block_iters(block);
  const bool cheap = is_cheap(*schedule.get(block));
  if (schedule.get(block)->iter_vars.empty()) return;
  attempt(schedule, [&] { join_axes(schedule, block); });
  const Ref<Block> node = schedule.get(block);
  const size_t last = node->iter_vars.size() - 1;
  const int64_t n = extent_of(node->iter_vars[last]);
  const int64_t weight = cheap ? 1 : model.call_operations;
  std::vector<LoopRV> loops = schedule.get_loops(block);
  if (loops.size() > 1) {
    loops.pop_back();
    parallelize_outer(schedule, loops, weight * (n > 0 ? n : model.unknown_operations), model);
    vectorize_last_axis(schedule, block, target);
    return;
  }
  if (loops.empty()) return;
  // One long row: whole vectors in tasks, then the rest.
  const int lanes = lanes_for(*node, target);
  if (!suits_lanes(*node, last) || in_conditions(*node, node->iter_vars[last].var.get())) {
    parallelize(schedule, loops, weight * model.scalar_operations, model);
    return;
  }
  if (n > 0 && n < model.least_row_vectors * lanes) {
    vectorize_last_axis(schedule, block, target);
    return;
  }
  const bool has_rest = n == 0 || n % lanes != 0;
  const LoopRV main = has_rest ? whole_vectors(schedule, loops[0], lanes) : loops[0];
  const auto parts = schedule.split(main, lanes);
  schedule.vectorize(parts[1]);
  parallelize(schedule, {parts[0]}, weight * lanes, model);
}

// ---- reductions over consecutive elements -------------------------------------------------------

RowReduction split_row_reduction(Schedule& schedule, const BlockRV& block, const Target& target) {
  schedule.simplify_block_iters(block);
  Ref<Block> node = schedule.get(block);
  if (!is_reduction(*node)) illegal(node->origin, "block `{}` is no reduction", block.name);
  // Join the reduction's axes where all operands walk through them as one.
  for (;;) {
    const auto accesses = linear_accesses(*node);
    if (!accesses || accesses->loads.empty())
      illegal(node->origin, "accesses of block `{}` are not linear", block.name);
    arith::Analyzer analyzer;
    bool joined = false;
    for (size_t a = node->iter_vars.size(); a-- > 1 && !joined;) {
      if (node->iter_vars[a].kind != IterKind::kReduce ||
          node->iter_vars[a - 1].kind != IterKind::kReduce)
        continue;
      // A long axis gains nothing, and places in several joined axes are harder to simplify.
      if (extent_of(node->iter_vars[a]) >= machine_model(target).long_axis) continue;
      bool same = true;
      for (const LinearAccess& load : accesses->loads)
        same = same && analyzer.proves_equal(load.strides[a - 1],
                                             load.strides[a] * node->iter_vars[a].domain.extent);
      if (!same) continue;
      schedule.fuse_block_iters(block, static_cast<int64_t>(a) - 1, 2);
      node = schedule.get(block);
      joined = true;
    }
    if (!joined) break;
  }
  const auto accesses = linear_accesses(*node);
  std::optional<size_t> axis;
  for (size_t a = 0; a < node->iter_vars.size(); ++a) {
    if (node->iter_vars[a].kind != IterKind::kReduce) continue;
    bool unit = false, other = false;
    for (const LinearAccess& load : accesses->loads) {
      unit = unit || load.is_unit(a);
      other = other || (load.moves(a) && !load.is_unit(a));
    }
    if (unit && !other) axis = a;
  }
  if (!axis)
    illegal(node->origin, "block `{}` does not reduce over consecutive elements", block.name);
  const int64_t n = extent_of(node->iter_vars[*axis]);
  const int lanes = lanes_for(*node, target);
  if (n > 0 && n < 2 * lanes)
    illegal(node->origin, "block `{}` reduces over {} elements only", block.name, n);
  const Expr full = arith::simplify(floordiv(node->iter_vars[*axis].domain.extent, lanes));
  if (n == 0 || n % lanes != 0) schedule.pad_reduction(block, static_cast<int64_t>(*axis), lanes);
  const auto loop = loop_of_axis(schedule, block, *axis);
  const auto parts = schedule.split(*loop, lanes);
  // The parts are the innermost loop, so that a vector of them is one place.
  std::vector<LoopRV> order;
  for (const LoopRV& l : schedule.get_loops(block))
    if (!(l == parts[1])) order.push_back(l);
  order.push_back(parts[1]);
  schedule.reorder(order);
  const BlockRV part = schedule.rfactor(parts[1]);
  // The lanes are joined half by half: a vector operation for each step instead of a chain.
  std::vector<BlockRV> halves;
  for (int width = lanes; width > 2; width /= 2)
    halves.push_back(
        schedule.rfactor(schedule.split(schedule.get_loops(block).back(), width / 2)[1]));
  return {part, block, full, halves};
}

// Starts the parts before the loops of their reduction, and makes their lanes vectors; `lane` is
// the axis of the lanes, `k` the other reduced one.
static void vectorize_parts(Schedule& schedule, const RowReduction& reduction, size_t lane,
                            size_t k) {
  const auto lane_loop = loop_of_axis(schedule, reduction.part, lane);
  if (!lane_loop) return;
  const auto k_loop = loop_of_axis(schedule, reduction.part, k);
  const Ref<Block> node = schedule.get(reduction.part);
  const auto is_reduced = [&](const LoopRV& loop) {
    for (size_t a = 0; a < node->iter_vars.size(); ++a)
      if (node->iter_vars[a].kind == IterKind::kReduce)
        if (loop_of_axis(schedule, reduction.part, a) == loop) return true;
    return false;
  };
  const auto loops = schedule.get_loops(reduction.part);
  const LoopRV first = *std::find_if(loops.begin(), loops.end(), is_reduced);
  const BlockRV start = schedule.decompose_reduction(reduction.part, first);
  const size_t last = schedule.get(start)->iter_vars.size() - 1;
  for (const LoopRV& loop : schedule.get_loops(start))
    if (loop_of_axis(schedule, start, last) == loop) schedule.vectorize(loop);
  // The last vector may not be full: it is added under a mask.
  bool guarded = false;
  walk<Call>(schedule.get(reduction.part)->body,
             [&](const Call& call) { guarded = guarded || call.is(IntrinsicId::kIfThenElse); });
  if (!guarded) {
    schedule.vectorize(*lane_loop);
  } else if (first == *k_loop) {
    const LoopRV rest = schedule.loop_partition(*k_loop, {reduction.full})[1];
    const auto main = loop_of_axis(schedule, reduction.part, lane);
    if (main) schedule.vectorize(*main);
    const Path path = find_loop(schedule.func()->body, rest.var.get());
    for (const Ref<BlockRealize>& realize : realizes_in(path ? path.target() : Stmt()))
      schedule.vectorize(schedule.get_loops({realize->block->name}).back());
  }
}

void finish_row_reduction(Schedule& schedule, const RowReduction& reduction,
                          const MachineModel& model) {
  // Axes of the part: spatial ones, the reduction, with the lanes where the factored loop stood.
  const Ref<Block> node = schedule.get(reduction.part);
  std::optional<size_t> lane, k;
  for (size_t a = 0; a < node->iter_vars.size(); ++a) {
    if (node->iter_vars[a].kind == IterKind::kReduce && loop_of_axis(schedule, reduction.part, a))
      k = a;
    const BufferStore* store = only_store(*node);
    if (store->indices.back().same_as(node->iter_vars[a].var)) lane = a;
  }
  if (!lane) return;
  if (k) vectorize_parts(schedule, reduction, *lane, *k);
  for (const BlockRV& half : reduction.halves) {
    const std::vector<LoopRV> loops = schedule.get_loops(half);
    schedule.unroll(loops[loops.size() - 2]);
    schedule.vectorize(loops.back());
  }
  const std::vector<LoopRV> whole = schedule.get_loops(reduction.whole);
  const auto rest = whole.empty() ? std::nullopt : as_int(schedule.get(whole.back())->extent);
  if (rest && *rest <= model.unrolled_iterations) schedule.unroll(whole.back());
}

}  // namespace tenon::tir
