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

void Schedule::split_block_iter(const BlockRV& block, int64_t axis, int64_t factor) {
  const Path path = path_of(block);
  check_free(path);
  Ref<Block> old = get(block);
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
  const bool fits = analyzer.proves_divisible(iter.domain.extent, factor);
  Ref<Buffer> grown, narrow;
  if (!fits) {
    // The domain grows: more of an intermediate is written, which nobody reads.
    const BufferStore* store = only_store(*old);
    if (iter.kind != IterKind::kSpatial || !is_zero(iter.domain.min) || !store ||
        !is_intermediate(store->buffer) || consumers(block).empty())
      illegal(old->origin,
              "{} does not divide axis `{}` of extent {}; only a block that writes an intermediate "
              "can run over more",
              factor, iter.var->name, str(iter.domain.extent));
    check_outermost(path);
    narrow = store->buffer;
    if (!narrow->strides.empty())
      illegal(old->origin, "`{}` has strides; it cannot grow", narrow->name);
    for (const BlockRV& other : blocks())
      if (!(other == block) && writes_buffer(*get(other), narrow))
        illegal(old->origin, "block `{}` writes `{}` as well", other.name, narrow->name);
    arith::Analyzer wide;
    for (const IterVar& other : old->iter_vars) wide.bind(other.var, other.domain);
    wide.bind(iter.var, imm(dtype, int64_t{0}), outer_extent * f);
    std::vector<Expr> shape = narrow->shape;
    bool pinned = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (store->indices[d].same_as(iter.var)) {
        shape[d] = analyzer.simplify(outer_extent * f);
        pinned = true;
      } else if (uses_var(store->indices[d], iter.var.get())) {
        illegal(old->origin, "index {} of `{}` is not axis `{}` itself; it cannot grow",
                str(store->indices[d]), narrow->name, iter.var->name);
      }
    }
    if (!pinned)
      illegal(old->origin, "axis `{}` does not index `{}`", iter.var->name, narrow->name);
    // What nobody reads afterwards is computed all the same: it must neither read beyond a buffer,
    // nor what nobody has written, nor divide by 0.
    const auto moves = [&](const NodePtr& node) { return uses_var(node, iter.var.get()); };
    const auto see = [&](const BufferLoad& load) {
      if (load.buffer.same_as(narrow)) return;
      for (size_t d = 0; d < load.indices.size(); ++d)
        if (moves(load.indices[d]) && (!wide.proves_nonnegative(load.indices[d]) ||
                                       !wide.proves_less(load.indices[d], load.buffer->shape[d])))
          illegal(old->origin,
                  "with axis `{}` up to {} block `{}` would read `{}` at {}; its extent is {}",
                  iter.var->name, str(analyzer.simplify(outer_extent * f)), block.name,
                  load.buffer->name, str(load.indices[d]), str(load.buffer->shape[d]));
      const bool is_given = std::any_of(func_->buffers.begin(), func_->buffers.end(),
                                        [&](const auto& b) { return b.same_as(load.buffer); });
      if (!is_given && std::any_of(load.indices.begin(), load.indices.end(), moves) &&
          !is_filled(root(), load.buffer, path.target().as<BlockRealize>()))
        illegal(old->origin,
                "with axis `{}` up to {} block `{}` would read more of `{}`, which is not known to "
                "be written as a whole",
                iter.var->name, str(analyzer.simplify(outer_extent * f)), block.name,
                load.buffer->name);
    };
    walk<Binary>(old->body, [&](const Binary& op) {
      const bool divides = op.op >= BinaryOp::kDiv && op.op <= BinaryOp::kFloorMod;
      if (!divides || op.dtype.is_float() || wide.proves_positive(op.rhs)) return;
      bool reads = false;
      walk<BufferLoad>(op.rhs, [&](const BufferLoad&) { reads = true; });
      if (reads || moves(op.rhs))
        illegal(old->origin,
                "with axis `{}` up to {} block `{}` would divide by {}, which may be 0",
                iter.var->name, str(analyzer.simplify(outer_extent * f)), block.name, str(op.rhs));
    });
    walk<BufferLoad>(old->body, see);
    if (old->init) walk<BufferLoad>(old->init, see);
    grown = make<Buffer>(narrow->name, narrow->dtype, shape,
                         Buffer::Options{.scope = narrow->scope, .alignment = narrow->alignment},
                         narrow->origin);
  }
  std::vector<IterVar> iters;
  for (size_t i = 0; i < old->iter_vars.size(); ++i) {
    if (i != static_cast<size_t>(axis)) {
      iters.push_back(old->iter_vars[i]);
      continue;
    }
    iters.push_back(outer);
    iters.push_back(inner);
  }
  rebuild_nest(block, std::move(iters),
               {{iter.var.get(), Expr(outer.var) * f + Expr(inner.var) + iter.domain.min}});
  if (grown) {
    const Stmt body =
        substitute(root(), {{narrow.get(), grown}, {narrow->data.get(), grown->data}});
    // The definition itself is not a use.
    Block::Parts parts = body.as<BlockRealize>()->block->parts();
    for (Ref<Buffer>& buffer : parts.alloc_buffers)
      if (buffer.same_as(narrow)) buffer = grown;
    commit(make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                              with_parts(body.as<BlockRealize>()->block, std::move(parts)),
                              body->origin));
  }
  record("split_block_iter", {block}, {{"axis", axis}, {"factor", factor}});
}

}  // namespace tenon::tir
