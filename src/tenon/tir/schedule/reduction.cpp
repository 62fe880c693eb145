// SPDX-License-Identifier: Apache-2.0
// decompose_reduction, rfactor and prefetch.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

BlockRV Schedule::decompose_reduction(const BlockRV& block, const LoopRV& loop) {
  const Path path = path_of(block);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const Ref<Block> old = realize->block;
  const bool reduces =
      std::all_of(old->iter_vars.begin(), old->iter_vars.end(),
                  [](const IterVar& iter) { return iter.kind != IterKind::kOpaque; });
  if (!old->init || !reduces)
    illegal(old->origin, "block `{}` is no reduction with an init", block.name);
  const std::vector<Ref<For>> loops = loops_of(path);
  const auto at = std::find_if(loops.begin(), loops.end(),
                               [&](const Ref<For>& l) { return l->loop_var.same_as(loop.var); });
  if (at == loops.end())
    illegal(old->origin, "loop `{}` is not around block `{}`", loop.var->name, block.name);
  if (at != loops.begin())
    check_no_pipeline(**std::prev(at), "given another statement, which has no stage");
  const auto carries = [&](const Ref<For>& l, bool reduce) {
    for (size_t a = 0; a < old->iter_vars.size(); ++a)
      if ((old->iter_vars[a].kind == IterKind::kReduce) == reduce &&
          uses_var(realize->iter_values[a], l->loop_var.get()))
        return true;
    return false;
  };
  for (auto l = loops.begin(); l != at; ++l)
    if (carries(*l, true))
      illegal(old->origin,
              "loop `{}` runs over the reduction outside `{}`; the start must come before it",
              (*l)->loop_var->name, loop.var->name);
  // The start: the spatial axes over the loops at and below `loop` that carry them.
  Substitution axes, vars;
  Block::Parts start;
  start.name = unique_name(block.name + "_init");
  std::vector<Expr> values;
  std::vector<Ref<For>> inner;
  for (auto l = at; l != loops.end(); ++l)
    if (carries(*l, false)) {
      if (carries(*l, true))
        illegal(old->origin, "loop `{}` carries spatial and reduction axes of block `{}`",
                (*l)->loop_var->name, block.name);
      inner.push_back(*l);
      vars[(*l)->loop_var.get()] = var((*l)->loop_var->name + "_init", (*l)->loop_var->dtype);
    }
  // A sum that is taken again starts again each time.
  arith::Analyzer analyzer;
  for (auto l = loops.begin(); l != at; ++l) analyzer.bind((*l)->loop_var, (*l)->min, (*l)->extent);
  std::vector<arith::Iterator> below;
  for (auto l = at; l != loops.end(); ++l)
    below.push_back({(*l)->loop_var, (*l)->min, (*l)->extent});
  if (!proves_distinct(realize->iter_values, below, conjuncts(realize->predicate), analyzer))
    illegal(old->origin,
            "from loop `{}` on block `{}` is not known to run once at most at each point; it would "
            "start once only",
            loop.var->name, block.name);
  for (size_t a = 0; a < old->iter_vars.size(); ++a) {
    const IterVar& iter = old->iter_vars[a];
    if (iter.kind == IterKind::kReduce) continue;
    const Ref<Var> fresh = var(iter.var->name, iter.var->dtype);
    axes[iter.var.get()] = fresh;
    start.iter_vars.push_back({fresh, iter.domain, iter.kind});
    values.push_back(substitute(realize->iter_values[a], vars));
  }
  start.body = substitute(old->init, axes);
  start.annotations = old->annotations;
  // The start runs where the first step of the sum does: the loops that are not copied, over the
  // reduction or such as carry no axis at all, are at their first iteration.
  Substitution first = vars;
  Expr predicate = at_first_iteration({at, loops.end()}, first);
  // Where there is none, the start of what nobody else gives a value sets what nobody has set.
  if (owns_its_writes(*this, *old)) predicate = boolean(true);
  for (size_t a = 0; a < old->iter_vars.size(); ++a) {
    if (old->iter_vars[a].kind != IterKind::kReduce) continue;
    if (!analyzer.proves_equal(substitute(realize->iter_values[a], first),
                               old->iter_vars[a].domain.min))
      illegal(old->origin,
              "the first iteration of the loops from `{}` on is not known to be the first step of "
              "axis `{}`",
              loop.var->name, old->iter_vars[a].var->name);
  }
  for (const Expr& condition : conjuncts(realize->predicate))
    predicate = logical_and(predicate, substitute(condition, first));
  predicate = analyzer.simplify(predicate);
  Stmt nest = make<BlockRealize>(values, predicate,
                                 with_accesses(make<Block>(std::move(start), old->origin)),
                                 realize->origin);
  const std::string start_name = nest.as<BlockRealize>()->block->name;
  for (size_t i = inner.size(); i-- > 0;)
    nest = make<For>(downcast<Var>(vars.at(inner[i]->loop_var.get())), inner[i]->min,
                     substitute(inner[i]->extent, vars), inner[i]->kind, nest,
                     inner[i]->annotations, inner[i]->origin);
  Block::Parts parts = old->parts();
  parts.init = {};
  const Ref<Block> update = with_accesses(with_parts(old, std::move(parts)));
  Stmt body = replace(
      path, make<BlockRealize>(realize->iter_values, realize->predicate, update, realize->origin));
  commit(insert_before(find_loop(body, loop.var.get()), nest));
  record("decompose_reduction", {block, loop}, {}, {BlockRV{start_name}});
  return {start_name};
}

namespace {

/// What joins without effect to anything that started at `start`. Joining is idempotent for min and
/// max, so that the start itself is neutral.
Expr neutral_of(BinaryOp op, DType dtype, const Expr& start) {
  return op == BinaryOp::kMin || op == BinaryOp::kMax ? start : neutral_value(op, dtype);
}

}  // namespace

void Schedule::pad_reduction(const BlockRV& block, int64_t axis, int64_t factor) {
  const Path path = path_of(block);
  const Ref<Block> old = get(block);
  const BufferStore* store = only_store(*old);
  if (!is_reduction(*old) || !store || !old->init.as<BufferStore>() || !is_alone(path) ||
      !is_int(realize(block)->predicate, 1))
    illegal(old->origin, "block `{}` is no plain reduction alone in its loops", block.name);
  if (!runs_once_everywhere(path))
    illegal(old->origin, "block `{}` is not known to run once at each point of its domain",
            block.name);
  const auto combiner = combiner_of(*store);
  if (!combiner) illegal(old->origin, "block `{}` does not join by +, *, min or max", block.name);
  if (axis < 0 || static_cast<size_t>(axis) >= old->iter_vars.size() || factor < 1 ||
      old->iter_vars[static_cast<size_t>(axis)].kind != IterKind::kReduce)
    illegal(old->origin, "axis {} of block `{}` is no reduction axis", axis, block.name);
  Block::Parts parts = old->parts();
  IterVar& iter = parts.iter_vars[static_cast<size_t>(axis)];
  const Expr end = iter.domain.min + iter.domain.extent;
  iter.domain.extent = arith::simplify(ceildiv(iter.domain.extent, imm(iter.var->dtype, factor)) *
                                       imm(iter.var->dtype, factor));
  const Expr start = old->init.as<BufferStore>()->value;
  const Expr value = if_then_else(Expr(iter.var) < end, combiner->value,
                                  neutral_of(combiner->op, store->buffer->dtype, start));
  const Expr self = load(store->buffer, store->indices);
  parts.body = make<BufferStore>(store->buffer, joined(*combiner, self, value), store->indices,
                                 store->origin);
  // The regions stay: what is beyond the end is not read.
  const Ref<Block> next = with_parts(old, std::move(parts));
  commit(replace(nest_path(path), make_nest(next, domains_of(*next)).stmt));
  record("pad_reduction", {block}, {{"axis", axis}, {"factor", factor}});
}

namespace {

/// A reduction whose loop `factor` is to become an axis of partial results.
struct Factored {
  Ref<BlockRealize> realize;
  const BufferStore* store;
  Combiner combiner;
  Ref<For> factor;
  std::vector<Ref<For>> loops;  // all around the block

  const Block& block() const { return *realize->block; }
  /// The first axis of `kind` whose value uses the loop, or null.
  const IterVar* axis_over(const For& loop, IterKind kind) const {
    for (size_t a = 0; a < block().iter_vars.size(); ++a)
      if (block().iter_vars[a].kind == kind &&
          uses_var(realize->iter_values[a], loop.loop_var.get()))
        return &block().iter_vars[a];
    return nullptr;
  }
};

/// The plain reduction at the end of `path`, alone in its loops, `factor` among them.
Factored factored_at(const Path& path, const LoopRV& factor) {
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const Block& block = *realize->block;
  const BufferStore* store = only_store(block);
  if (!is_reduction(block) || !store || !is_alone(path) || !block.init.as<BufferStore>())
    illegal(block.origin, "block `{}` is no plain reduction alone in its loops", block.name);
  if (!is_int(realize->predicate, 1))
    illegal(block.origin, "block `{}` runs under a predicate; expected none", block.name);
  const auto combiner = combiner_of(*store);
  if (!combiner) illegal(block.origin, "block `{}` does not join by +, *, min or max", block.name);
  // The parts are joined over the whole domain.
  if (!runs_once_everywhere(path))
    illegal(block.origin, "block `{}` is not known to run once at each point of its domain",
            block.name);
  const std::vector<Ref<For>> loops = loops_of(path);
  const auto at = std::find_if(loops.begin(), loops.end(),
                               [&](const Ref<For>& l) { return l->loop_var.same_as(factor.var); });
  Factored out{realize, store, *combiner, *at, loops};
  if (const IterVar* axis = out.axis_over(**at, IterKind::kSpatial))
    illegal(block.origin, "loop `{}` carries spatial axis `{}`", factor.var->name, axis->var->name);
  for (const Ref<For>& l : loops) {
    const IterVar* axis = out.axis_over(*l, IterKind::kSpatial);
    // The first step of the sum for an element must be the first iteration of such a loop.
    if (axis && out.axis_over(*l, IterKind::kReduce))
      illegal(block.origin,
              "loop `{}` carries spatial axis `{}` and a reduction axis of block `{}`",
              l->loop_var->name, axis->var->name, block.name);
  }
  if (!out.axis_over(**at, IterKind::kReduce))
    illegal(block.origin, "loop `{}` does not run over the reduction of block `{}`",
            factor.var->name, block.name);
  return out;
}

/// The extents of spatial axes above 1 and that of the factored loop: the shape of the parts.
std::vector<Expr> shape_of_parts(const Factored& f) {
  std::vector<Expr> shape;
  for (const IterVar& iter : f.block().iter_vars)
    if (iter.kind == IterKind::kSpatial && !is_int(iter.domain.extent, 1))
      shape.push_back(iter.domain.extent);
  shape.push_back(f.factor->extent);
  return shape;
}

/// The place in the parts of a point of the spatial axes and of `lane`.
std::vector<Expr> place_of_part(const Factored& f, const Ref<Var>& lane) {
  std::vector<Expr> place;
  for (const IterVar& iter : f.block().iter_vars)
    if (iter.kind == IterKind::kSpatial && !is_int(iter.domain.extent, 1))
      place.push_back(Expr(iter.var) - iter.domain.min);
  place.push_back(lane);
  return place;
}

/// The block of partial results: an axis for each loop that carries a reduction, that of the
/// factored one spatial.
Ref<BlockRealize> part_of(const Factored& f, const Ref<Buffer>& partial, const std::string& name) {
  const Block& block = f.block();
  Block::Parts part;
  part.name = name;
  std::vector<Expr> values;
  Substitution axes, loop_axes;
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& iter = block.iter_vars[a];
    if (iter.kind != IterKind::kSpatial) continue;
    const Ref<Var> fresh = var(iter.var->name, iter.var->dtype);
    axes[iter.var.get()] = fresh;
    part.iter_vars.push_back({fresh, iter.domain, IterKind::kSpatial});
    values.push_back(f.realize->iter_values[a]);
  }
  Ref<Var> lane;
  for (const Ref<For>& l : f.loops) {
    if (!f.axis_over(*l, IterKind::kReduce)) continue;
    const bool is_factor = l.same_as(f.factor);
    const Ref<Var> axis = var("v" + l->loop_var->name, l->loop_var->dtype);
    loop_axes[l->loop_var.get()] = axis;
    part.iter_vars.push_back(
        {axis, {zero_of(axis), l->extent}, is_factor ? IterKind::kSpatial : IterKind::kReduce});
    values.push_back(l->loop_var);
    if (is_factor) lane = axis;
  }
  if (loop_axes.size() == 1) {
    // Nothing else is left to reduce: a reduction over one element keeps the form.
    part.iter_vars.push_back({var("v_one"), {zero(), int64(1)}, IterKind::kReduce});
    values.push_back(zero());
  }
  for (size_t a = 0; a < block.iter_vars.size(); ++a)
    if (block.iter_vars[a].kind == IterKind::kReduce)
      axes[block.iter_vars[a].var.get()] = substitute(f.realize->iter_values[a], loop_axes);
  std::vector<Expr> place = place_of_part(f, lane);
  for (Expr& index : place) index = substitute(index, axes);
  // Joining is idempotent for min and max, so that any start that the whole has suits the parts.
  const Expr start = neutral_of(f.combiner.op, partial->dtype, block.init.as<BufferStore>()->value);
  part.init = make<BufferStore>(partial, substitute(start, axes), place);
  part.body = make<BufferStore>(
      partial, joined(f.combiner, load(partial, place), substitute(f.combiner.value, axes)), place,
      f.store->origin);
  return make<BlockRealize>(values, boolean(true),
                            with_accesses(make<Block>(std::move(part), block.origin)),
                            f.realize->origin);
}

/// The block that joins the parts: the spatial axes as they were, reducing over the factored loop.
Ref<Block> whole_of(const Factored& f, const Ref<Buffer>& partial) {
  Block::Parts whole = f.block().parts();
  std::erase_if(whole.iter_vars, [](const IterVar& i) { return i.kind != IterKind::kSpatial; });
  const Ref<Var>& loop = f.factor->loop_var;
  const Ref<Var> axis = var("v" + loop->name, loop->dtype);
  whole.iter_vars.push_back({axis, {zero_of(axis), f.factor->extent}, IterKind::kReduce});
  whole.body = make<BufferStore>(f.store->buffer,
                                 joined(f.combiner, load(f.store->buffer, f.store->indices),
                                        load(partial, place_of_part(f, axis))),
                                 f.store->indices, f.store->origin);
  return with_accesses(make<Block>(std::move(whole), f.block().origin));
}

}  // namespace

BlockRV Schedule::rfactor(const LoopRV& loop) {
  const Path outer = path_of(loop);
  check_outermost(outer);
  const auto below = realizes_in(outer.target());
  if (below.size() != 1)
    illegal(outer.target()->origin, "loop `{}` is around {} blocks; expected one", loop.var->name,
            below.size());
  const std::string& name = below[0]->block->name;
  const Path path = path_of(BlockRV{name});
  const Factored factored = factored_at(path, loop);
  const Ref<Buffer>& result = factored.store->buffer;
  const Ref<Buffer> partial = make<Buffer>(unique_buffer_name(root(), *func_, result->name + "_rf"),
                                           result->dtype, shape_of_parts(factored), result->origin);
  const BlockRV part{unique_name(name + "_rf")};
  const Ref<Block> whole = whole_of(factored, partial);
  Stmt body = replace(path, part_of(factored, partial, part.name));
  body = insert_after(nest_path(find_block(body, part.name)),
                      make_nest(whole, domains_of(*whole)).stmt);
  commit(add_alloc(body, partial));
  record("rfactor", {loop}, {}, {part});
  return part;
}

void Schedule::prefetch(const BlockRV& block, int64_t read, const LoopRV& loop, const LoopRV& ahead,
                        int64_t distance, int64_t locality) {
  insert_prefetch(block, read, loop, ahead, distance, locality);
  record("prefetch", {block, loop, ahead},
         {{"read_buffer_index", read}, {"distance", distance}, {"locality", locality}});
}

void Schedule::prefetch_spread(const BlockRV& block, int64_t read, const LoopRV& loop,
                               const LoopRV& ahead, int64_t distance, const LoopRV& over,
                               int64_t elements, int64_t first, int64_t runs) {
  insert_prefetch(block, read, loop, ahead, distance, 2, SharedLines{over, elements, first, runs});
  record("prefetch_spread", {block, loop, ahead, over},
         {{"read_buffer_index", read},
          {"distance", distance},
          {"elements", elements},
          {"first", first},
          {"runs", runs}});
}

void Schedule::insert_prefetch(const BlockRV& block, int64_t read, const LoopRV& loop,
                               const LoopRV& ahead, int64_t distance, int64_t locality,
                               const std::optional<SharedLines>& shared) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const Ref<Block> old = realize->block;
  if (read < 0 || static_cast<size_t>(read) >= old->reads.size())
    illegal(old->origin, "block `{}` has {} reads; {} was asked for", block.name, old->reads.size(),
            read);
  const Ref<BufferRegion> region = old->reads[static_cast<size_t>(read)];
  // What was written before the loop is there for all of its iterations.
  if (writes_buffer(path_of(ahead).target(), region->buffer))
    illegal(old->origin, "`{}` is written by the function; its later values are not there yet",
            region->buffer->name);
  if (locality < 0 || locality > 3)
    illegal(old->origin, "a locality of {}; expected 0 to 3", locality);
  const std::vector<Ref<For>> loops = loops_of(path);
  bool inside = false, found_ahead = false;
  Expr run;  // of lines that `over` chooses
  Substitution axes, vars;
  for (size_t a = 0; a < old->iter_vars.size(); ++a)
    axes[old->iter_vars[a].var.get()] = realize->iter_values[a];
  std::vector<IterVar> iters;
  std::vector<Expr> values;
  for (const Ref<For>& l : loops) {
    if (inside) {
      vars[l->loop_var.get()] = zero_of(l->loop_var);
      continue;
    }
    const Ref<Var> axis = var("v" + l->loop_var->name, l->loop_var->dtype);
    iters.push_back({axis, {l->min, l->extent}, IterKind::kSpatial});
    values.push_back(l->loop_var);
    Expr value = axis;
    if (l->loop_var.same_as(ahead.var)) {
      value = value + distance;
      found_ahead = true;
    }
    if (shared && l->loop_var.same_as(shared->over.var))
      run = floormod(Expr(axis) + shared->first, shared->runs) * shared->elements;
    vars[l->loop_var.get()] = value;
    inside = l->loop_var.same_as(loop.var);
  }
  if (!inside || !found_ahead)
    illegal(old->origin, "loops `{}` and `{}` are not both around block `{}`", loop.var->name,
            ahead.var->name, block.name);
  const size_t ndim = region->region.size();
  for (const Range& range : region->region) {
    bool reads = false;
    walk<BufferLoad>(range.min, [&](const BufferLoad&) { reads = true; });
    if (reads)
      illegal(old->origin, "where block `{}` reads `{}` depends on data: {}", block.name,
              region->buffer->name, str(range.min));
  }
  const auto row = ndim > 0 ? as_int(region->buffer->shape[ndim - 1]) : std::nullopt;
  if (shared && (!run || ndim < 2 || !row || shared->elements < 1 || shared->runs < 1))
    illegal(old->origin, "runs of {} elements of `{}` do not follow loop `{}`", shared->elements,
            region->buffer->name, shared->over.var->name);
  arith::Analyzer analyzer;
  for (const IterVar& iter : iters) analyzer.bind(iter.var, iter.domain);
  std::vector<Expr> place;
  for (size_t d = 0; d < ndim; ++d) {
    Expr index = substitute(substitute(region->region[d].min, axes), vars);
    if (shared && d + 1 == ndim) index = index + floormod(run, *row);
    if (shared && d + 2 == ndim) index = index + floordiv(run, *row);
    index = analyzer.simplify(index);
    // The last iterations look no further than the end; what a condition keeps from reading in
    // front of the start looks at the start.
    const Expr& dim = region->buffer->shape[d];
    if (!analyzer.proves_less(index, dim)) index = analyzer.simplify(min(index, dim - 1));
    if (!analyzer.proves_nonnegative(index)) index = analyzer.simplify(max(index, zero_of(index)));
    place.push_back(index);
  }
  Block::Parts hint;
  hint.name = unique_name(block.name + "_prefetch");
  hint.iter_vars = std::move(iters);
  hint.reads.push_back(BufferRegion::point(region->buffer, place));
  hint.body = make<Evaluate>(
      call(IntrinsicId::kPrefetch, {load(region->buffer, place), int32(0), int32(locality)}));
  const Stmt stmt = make<BlockRealize>(values, boolean(true),
                                       make<Block>(std::move(hint), old->origin), old->origin);
  const Path at = path_of(loop);
  const auto* node = at.target().as<For>();
  check_no_pipeline(*node, "given a hint, which has no stage");
  commit(replace(at, with_child(at.target(), node->body, seq({stmt, node->body}))));
}

}  // namespace tenon::tir
