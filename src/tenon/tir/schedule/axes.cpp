// SPDX-License-Identifier: Apache-2.0
// Primitives on a block's axes: fuse, split, drop, reorder. The nest is rebuilt each time.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

bool must_run_in_order(const IterVar& iter) {
  return iter.kind != IterKind::kSpatial && iter.kind != IterKind::kReduce;
}

/// The block must run over its whole domain, alone in its loops, under no predicate.
void check_free(const Path& path) {
  const auto* realize = path.target().as<BlockRealize>();
  if (!is_int(realize->predicate, 1) || !is_alone(path))
    illegal(realize->origin, "block `{}` shares its loops or runs under a predicate",
            realize->block->name);
  check_runs_whole_domain(path);
  const std::vector<Ref<For>> loops = loops_of(path);
  // What must run in order does so in that of its axes afterwards.
  const auto& iters = realize->block->iter_vars;
  if (std::any_of(iters.begin(), iters.end(), must_run_in_order)) {
    size_t next = 0;
    for (size_t a = 0; a < iters.size(); ++a) {
      if (is_int(iters[a].domain.extent, 1)) continue;
      if (next == loops.size() || !uses_var(realize->iter_values[a], loops[next]->loop_var.get()))
        illegal(realize->origin, "axes of block `{}` must run in order, and loops are in another",
                realize->block->name);
      ++next;
    }
  }
  for (const Ref<For>& loop : loops)
    if (loop->kind != ForKind::kSerial)
      illegal(loop->origin, "loop `{}` is not serial; its nest cannot be made afresh",
              loop->loop_var->name);
}

}  // namespace

/// The block over new axes; `values` says what stands for the old ones.
void Schedule::rebuild_nest(const BlockRV& block, std::vector<IterVar> iters,
                            const std::unordered_map<const Node*, NodePtr>& values) {
  const Path path = path_of(block);
  const Ref<Block> old = path.target().as<BlockRealize>()->block;
  arith::Analyzer analyzer;
  for (const IterVar& iter : iters) analyzer.bind(iter.var, iter.domain);
  Block::Parts parts = old->parts();
  parts.iter_vars = std::move(iters);
  const auto indices_simplified = [&](const Stmt& stmt) {
    if (!stmt) return stmt;
    return rewrite(substitute(stmt, values), [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto simplified = [&](const std::vector<Expr>& list) {
        std::vector<Expr> out;
        for (const Expr& e : list) out.push_back(analyzer.simplify(e));
        return out;
      };
      if (const auto* load = node.as<BufferLoad>())
        return NodePtr(make<BufferLoad>(load->buffer, simplified(load->indices), load->origin));
      if (const auto* store = node.as<BufferStore>())
        return NodePtr(make<BufferStore>(store->buffer, store->value, simplified(store->indices),
                                         store->origin));
      return std::nullopt;
    });
  };
  parts.init = indices_simplified(parts.init);
  parts.body = indices_simplified(parts.body);
  for (MatchBuffer& match : parts.match_buffers) match.source = substitute(match.source, values);
  const Ref<Block> next = with_accesses(with_parts(old, std::move(parts)));
  const Nest nest = make_nest(next, domains_of(*next));
  commit(replace(nest_path(path), nest.stmt));
}

void Schedule::simplify_block_iters(const BlockRV& block) {
  const Path path = path_of(block);
  check_free(path);
  const Ref<Block> old = get(block);
  std::vector<IterVar> iters;
  Substitution values;
  bool reduces = false;
  for (const IterVar& iter : old->iter_vars)
    reduces = reduces || (iter.kind != IterKind::kSpatial && !is_int(iter.domain.extent, 1));
  bool kept_reduce = false;
  for (const IterVar& iter : old->iter_vars) {
    const bool unit = is_int(iter.domain.extent, 1);
    // A reduction keeps one of its axes, so that it stays one.
    const bool keep = iter.kind != IterKind::kSpatial && !reduces && !kept_reduce;
    if (keep) kept_reduce = true;
    if (unit && !keep) {
      values[iter.var.get()] = iter.domain.min;
    } else {
      iters.push_back(iter);
    }
  }
  rebuild_nest(block, std::move(iters), values);
  record("simplify_block_iters", {block});
}

void Schedule::reorder_block_iters(const BlockRV& block, const std::vector<int64_t>& order) {
  check_free(path_of(block));
  const Ref<Block> old = get(block);
  std::vector<IterVar> iters;
  std::vector<bool> used(old->iter_vars.size(), false);
  for (const int64_t i : order) {
    if (i < 0 || static_cast<size_t>(i) >= used.size() || used[static_cast<size_t>(i)])
      illegal(old->origin, "order {} does not permute the {} axes of block `{}`",
              AttrValue(order).str(), used.size(), block.name);
    used[static_cast<size_t>(i)] = true;
    iters.push_back(old->iter_vars[static_cast<size_t>(i)]);
  }
  if (std::any_of(iters.begin(), iters.end(), must_run_in_order) &&
      !std::is_sorted(order.begin(), order.end()))
    illegal(old->origin, "axes of block `{}` must run in order", block.name);
  if (iters.size() != old->iter_vars.size())
    illegal(old->origin, "order {} does not permute the {} axes of block `{}`",
            AttrValue(order).str(), used.size(), block.name);
  rebuild_nest(block, std::move(iters), {});
  record("reorder_block_iters", {block}, {{"order", AttrValue(order)}});
}

void Schedule::fuse_block_iters(const BlockRV& block, int64_t first, int64_t count) {
  check_free(path_of(block));
  const Ref<Block> old = get(block);
  const auto size = static_cast<int64_t>(old->iter_vars.size());
  if (first < 0 || count < 1 || first + count > size)
    illegal(old->origin, "axes {} to {} of block `{}`; it has {}", first, first + count - 1,
            block.name, size);
  std::vector<IterVar> iters;
  Substitution values;
  std::string name;
  Expr total = int64(1);
  for (int64_t i = first; i < first + count; ++i) {
    const IterVar& iter = old->iter_vars[static_cast<size_t>(i)];
    if (iter.kind != old->iter_vars[static_cast<size_t>(first)].kind)
      illegal(old->origin, "axis `{}` of block `{}` is of another kind", iter.var->name,
              block.name);
    name += (name.empty() ? "" : "_") + iter.var->name;
    total = total * iter.domain.extent;
  }
  const Ref<Var> fused = var(name, old->iter_vars[static_cast<size_t>(first)].var->dtype);
  Expr rest = fused;
  for (int64_t i = first + count; i-- > first && count > 1;) {
    const IterVar& iter = old->iter_vars[static_cast<size_t>(i)];
    values[iter.var.get()] =
        cast(iter.var->dtype, i == first ? rest : floormod(rest, iter.domain.extent)) +
        iter.domain.min;
    rest = floordiv(rest, iter.domain.extent);
  }
  for (int64_t i = 0; i < size; ++i) {
    const IterVar& iter = old->iter_vars[static_cast<size_t>(i)];
    if (count == 1 || i < first || i >= first + count) {
      iters.push_back(iter);
    } else if (i == first) {
      iters.push_back({fused, {zero(), arith::simplify(total)}, iter.kind});
    }
  }
  rebuild_nest(block, std::move(iters), values);
  record("fuse_block_iters", {block}, {{"first", first}, {"count", count}});
}

namespace {

/// The store of the block at the end of `path` whose buffer may grow along axis `iter`: an
/// intermediate that the block alone writes, of which nobody reads more.
const BufferStore& growing_store(const Schedule& schedule, const Path& path, const IterVar& iter,
                                 int64_t factor) {
  const Block& block = *path.target().as<BlockRealize>()->block;
  const BufferStore* store = only_store(block);
  if (iter.kind != IterKind::kSpatial || !is_zero(iter.domain.min) || !store ||
      !schedule.is_intermediate(store->buffer) || schedule.consumers({block.name}).empty())
    illegal(block.origin,
            "{} does not divide axis `{}` of extent {}; only a block that writes an intermediate "
            "can run over more",
            factor, iter.var->name, str(iter.domain.extent));
  check_outermost(path);
  const Buffer& buffer = *store->buffer;
  if (!buffer.strides.empty())
    illegal(block.origin, "`{}` has strides; it cannot grow", buffer.name);
  for (const BlockRV& other : schedule.blocks())
    if (other.name != block.name && writes_buffer(*schedule.get(other), store->buffer))
      illegal(block.origin, "block `{}` writes `{}` as well", other.name, buffer.name);
  return *store;
}

/// The buffer of `store` with `extent` where axis `iter` of `block` is the index.
Ref<Buffer> grown_buffer(const Block& block, const BufferStore& store, const IterVar& iter,
                         const Expr& extent) {
  const Buffer& narrow = *store.buffer;
  std::vector<Expr> shape = narrow.shape;
  bool pinned = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (store.indices[d].same_as(iter.var)) {
      shape[d] = arith::simplify(extent);
      pinned = true;
    } else if (uses_var(store.indices[d], iter.var.get())) {
      illegal(block.origin, "index {} of `{}` is not axis `{}` itself; it cannot grow",
              str(store.indices[d]), narrow.name, iter.var->name);
    }
  }
  if (!pinned) illegal(block.origin, "axis `{}` does not index `{}`", iter.var->name, narrow.name);
  return make<Buffer>(narrow.name, narrow.dtype, shape,
                      Buffer::Options{.scope = narrow.scope, .alignment = narrow.alignment},
                      narrow.origin);
}

/// What nobody reads afterwards is computed all the same as axis `iter` runs up to `extent`: it
/// must neither read beyond a buffer, nor what nobody has written, nor divide by 0.
void check_computes_beyond(const PrimFunc& function, const Path& path, const IterVar& iter,
                           const Expr& extent) {
  const auto* realize = path.target().as<BlockRealize>();
  const Block& block = *realize->block;
  arith::Analyzer wide;
  for (const IterVar& other : block.iter_vars) wide.bind(other.var, other.domain);
  wide.bind(iter.var, imm(iter.var->dtype, int64_t{0}), extent);
  const std::string end = str(arith::simplify(extent));
  const auto moves = [&](const NodePtr& node) { return uses_var(node, iter.var.get()); };
  const auto see = [&](const BufferLoad& load) {
    if (load.buffer.same_as(only_store(block)->buffer)) return;
    for (size_t d = 0; d < load.indices.size(); ++d)
      if (moves(load.indices[d]) && (!wide.proves_nonnegative(load.indices[d]) ||
                                     !wide.proves_less(load.indices[d], load.buffer->shape[d])))
        illegal(block.origin,
                "with axis `{}` up to {} block `{}` would read `{}` at {}; its extent is {}",
                iter.var->name, end, block.name, load.buffer->name, str(load.indices[d]),
                str(load.buffer->shape[d]));
    const bool is_given = std::any_of(function.buffers.begin(), function.buffers.end(),
                                      [&](const auto& b) { return b.same_as(load.buffer); });
    if (!is_given && std::any_of(load.indices.begin(), load.indices.end(), moves) &&
        !is_filled(function.body, load.buffer, realize))
      illegal(block.origin,
              "with axis `{}` up to {} block `{}` would read more of `{}`, which is not known to "
              "be written as a whole",
              iter.var->name, end, block.name, load.buffer->name);
  };
  walk<Binary>(block.body, [&](const Binary& op) {
    const bool divides = op.op >= BinaryOp::kDiv && op.op <= BinaryOp::kFloorMod;
    if (!divides || op.dtype.is_float() || wide.proves_positive(op.rhs)) return;
    bool reads = false;
    walk<BufferLoad>(op.rhs, [&](const BufferLoad&) { reads = true; });
    if (reads || moves(op.rhs))
      illegal(block.origin, "with axis `{}` up to {} block `{}` would divide by {}, which may be 0",
              iter.var->name, end, block.name, str(op.rhs));
  });
  walk<BufferLoad>(block.body, see);
  if (block.init) walk<BufferLoad>(block.init, see);
}

/// `root` with `grown` in the place of `narrow`, which it allocates.
Stmt with_buffer(const Stmt& root, const Ref<Buffer>& narrow, const Ref<Buffer>& grown) {
  const Stmt body = substitute(root, {{narrow.get(), grown}, {narrow->data.get(), grown->data}});
  // The definition itself is not a use.
  const Ref<Block> block = body.as<BlockRealize>()->block;
  Block::Parts parts = block->parts();
  std::replace_if(
      parts.alloc_buffers.begin(), parts.alloc_buffers.end(),
      [&](const Ref<Buffer>& buffer) { return buffer.same_as(narrow); }, grown);
  return make<BlockRealize>(std::vector<Expr>{}, boolean(true), with_parts(block, std::move(parts)),
                            body->origin);
}

}  // namespace

void Schedule::split_block_iter(const BlockRV& block, int64_t axis, int64_t factor) {
  const Path path = path_of(block);
  check_free(path);
  const Ref<Block> old = get(block);
  if (axis < 0 || static_cast<size_t>(axis) >= old->iter_vars.size() || factor < 1)
    illegal(old->origin, "axis {} of block `{}` cannot be cut by {}; it has {} axes", axis,
            block.name, factor, old->iter_vars.size());
  const IterVar iter = old->iter_vars[static_cast<size_t>(axis)];
  arith::Analyzer analyzer;
  const DType dtype = iter.var->dtype;
  const Expr f = imm(dtype, factor);
  const Expr outer_extent = analyzer.simplify(ceildiv(iter.domain.extent, f));
  const IterVar outer{
      var(iter.var->name + "_0", dtype), {imm(dtype, int64_t{0}), outer_extent}, iter.kind};
  const IterVar inner{var(iter.var->name + "_1", dtype), {imm(dtype, int64_t{0}), f}, iter.kind};
  Ref<Buffer> grown, narrow;
  if (!analyzer.proves_divisible(iter.domain.extent, factor)) {
    // The domain grows: more of an intermediate is written, which nobody reads.
    const BufferStore& store = growing_store(*this, path, iter, factor);
    narrow = store.buffer;
    grown = grown_buffer(*old, store, iter, outer_extent * f);
    check_computes_beyond(*func_, path, iter, outer_extent * f);
  }
  std::vector<IterVar> iters = old->iter_vars;
  iters[static_cast<size_t>(axis)] = outer;
  iters.insert(iters.begin() + axis + 1, inner);
  rebuild_nest(block, std::move(iters),
               {{iter.var.get(), Expr(outer.var) * f + Expr(inner.var) + iter.domain.min}});
  if (grown) commit(with_buffer(root(), narrow, grown));
  record("split_block_iter", {block}, {{"axis", axis}, {"factor", factor}});
}

}  // namespace tenon::tir
