// SPDX-License-Identifier: Apache-2.0
// cache_read, cache_write and their scopes: stage accesses through a buffer of their own.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// A block over spatial axes: `to[to_indices] = value`.
Ref<Block> element_wise(const std::string& name, std::vector<IterVar> iters, const Ref<Buffer>& to,
                        const std::vector<Expr>& to_indices, const Expr& value,
                        const Origin& origin) {
  Block::Parts parts;
  parts.name = name;
  parts.iter_vars = std::move(iters);
  parts.body = make<BufferStore>(to, value, to_indices, origin);
  return with_accesses(make<Block>(std::move(parts), origin));
}
/// The same that copies: `to[to_indices] = from[from_indices]`.
Ref<Block> copy_block(const std::string& name, std::vector<IterVar> iters, const Ref<Buffer>& to,
                      const std::vector<Expr>& to_indices, const Ref<Buffer>& from,
                      const std::vector<Expr>& from_indices, const Origin& origin) {
  return element_wise(name, std::move(iters), to, to_indices, load(from, from_indices), origin);
}

/// What the root block's statements before `path`'s nest assert of sizes, outside of all loops.
void assume_assertions(const Path& path, arith::Analyzer& analyzer) {
  const Path nest = nest_path(path);
  const auto* sequence =
      nest.stmts.size() < 2 ? nullptr : nest.stmts[nest.stmts.size() - 2].as<Seq>();
  if (!sequence) return;
  for (const Stmt& stmt : sequence->stmts) {
    if (stmt.same_as(nest.target())) return;
    const auto* realize = stmt.as<BlockRealize>();
    if (realize && !is_int(realize->predicate, 1)) continue;
    for (const Stmt& inner : stmts_of(realize ? realize->block->body : stmt)) {
      const auto* claim = inner.as<Assert>();
      if (!claim) continue;
      bool reads = false;
      walk<BufferLoad>(claim->condition, [&](const BufferLoad&) { reads = true; });
      if (!reads) analyzer.assume(claim->condition);
    }
  }
}

/// Fresh axes that run as those given.
std::vector<IterVar> renewed(const std::vector<IterVar>& iters, Substitution& values) {
  std::vector<IterVar> out;
  for (const IterVar& iter : iters) {
    const Ref<Var> fresh = var(iter.var->name, iter.var->dtype);
    values[iter.var.get()] = fresh;
    out.push_back({fresh, iter.domain, IterKind::kSpatial});
  }
  return out;
}

const Ref<BufferRegion>& region_at(const std::vector<Ref<BufferRegion>>& list, int64_t index,
                                   const Block& block, std::string_view what) {
  if (index < 0 || static_cast<size_t>(index) >= list.size())
    illegal(block.origin, "block `{}` has {} {}; {} was asked for", block.name, list.size(), what,
            index);
  return list[static_cast<size_t>(index)];
}

/// `block` with accesses of `from` replaced by those of `to` at other indices.
Ref<Block> redirected(const Ref<Block>& block, const Ref<Buffer>& from, const Ref<Buffer>& to,
                      const std::function<std::vector<Expr>(const std::vector<Expr>&)>& indices) {
  const auto replacer = [&](const NodePtr& node) -> std::optional<NodePtr> {
    if (const auto* load = node.as<BufferLoad>(); load && load->buffer.same_as(from))
      return NodePtr(make<BufferLoad>(to, indices(load->indices), load->origin));
    if (const auto* store = node.as<BufferStore>(); store && store->buffer.same_as(from))
      return NodePtr(make<BufferStore>(to, store->value, indices(store->indices), store->origin));
    return std::nullopt;
  };
  Block::Parts parts = block->parts();
  parts.body = rewrite(parts.body, replacer);
  if (parts.init) parts.init = rewrite(parts.init, replacer);
  const Ref<Block> next = with_accesses(with_parts(block, std::move(parts)));
  if (reads_buffer(*next, from) || writes_buffer(*next, from))
    illegal(block->origin, "block `{}` uses `{}` in a way that cannot be replaced", block->name,
            from->name);
  return next;
}

Stmt with_block(const Path& path, const Ref<Block>& block) {
  const auto* realize = path.target().as<BlockRealize>();
  return replace(
      path, make<BlockRealize>(realize->iter_values, realize->predicate, block, realize->origin));
}

/// A copy of what a block reads stands before its nest: what the buffer holds then must be what the
/// block reads later.
void check_settled(const Path& path, const Ref<Buffer>& buffer) {
  const auto* realize = path.target().as<BlockRealize>();
  for (const auto& other : realizes_in(nest_path(path).target()))
    if (writes_buffer(*other->block, buffer))
      illegal(realize->origin,
              "block `{}` in the loops of block `{}` writes `{}`, which a copy before them would "
              "not have",
              other->block->name, realize->block->name, buffer->name);
}

bool has_branch(const Stmt& body) {
  bool found = false;
  walk(body, [&](const NodePtr& node) {
    const auto* call = node.as<Call>();
    found = found || node.as<IfThenElse>() || node.as<While>() ||
            (call && call->is(IntrinsicId::kIfThenElse));
  });
  return found;
}

/// The one place at which `block` uses `buffer`, for each point of its spatial axes another.
std::vector<Expr> place_of(const Block& block, const Ref<Buffer>& buffer) {
  std::vector<Expr> place;
  bool same = true;
  const auto see = [&](const std::vector<Expr>& indices) {
    if (place.empty()) place = indices;
    for (size_t i = 0; i < indices.size(); ++i)
      same = same && structural_equal(indices[i], place[i]);
  };
  for (const Stmt& stmt : {block.body, block.init}) {
    if (!stmt) continue;
    walk(stmt, [&](const NodePtr& node) {
      if (const auto* s = node.as<BufferStore>(); s && s->buffer.same_as(buffer)) see(s->indices);
      if (const auto* l = node.as<BufferLoad>(); l && l->buffer.same_as(buffer)) see(l->indices);
    });
  }
  if (!same)
    illegal(block.origin, "block `{}` uses `{}` at several places; expected one", block.name,
            buffer->name);
  std::vector<IterVar> spatial;
  for (const IterVar& iter : block.iter_vars) {
    const bool is_used = std::any_of(place.begin(), place.end(), [&](const Expr& index) {
      return uses_var(index, iter.var.get());
    });
    if (iter.kind == IterKind::kSpatial) {
      spatial.push_back(iter);
    } else if (is_used) {
      illegal(block.origin, "the place in `{}` depends on reduction axis `{}`", buffer->name,
              iter.var->name);
    }
  }
  // Otherwise copying back would not be the same.
  arith::Analyzer points;
  if (!places_differ(place, spatial, points))
    illegal(block.origin, "block `{}` is not known to write each place of `{}` at one point only",
            block.name, buffer->name);
  return place;
}

/// Others of the nest around the block at the end of `path` must not look at `buffer`, which it
/// writes, before it is copied back.
void check_copied_in_time(const Path& path, const Ref<Buffer>& buffer) {
  const auto* realize = path.target().as<BlockRealize>();
  const Block& block = *realize->block;
  const auto others = realizes_in(nest_path(path).target());
  for (const auto& other : others)
    if (other->block.get() != &block && reads_buffer(*other->block, buffer))
      illegal(block.origin, "block `{}` of the same loops reads `{}`", other->block->name,
              buffer->name);
  arith::Analyzer analyzer;
  for (const auto& other : others)
    if (other->block.get() != &block && writes_buffer(*other->block, buffer) &&
        !write_apart(*realize, *other, buffer, analyzer))
      illegal(block.origin, "block `{}` of the same loops writes `{}` as well", other->block->name,
              buffer->name);
}

}  // namespace

BlockRV Schedule::cache_write(const BlockRV& block, int64_t write, const std::string& scope) {
  const Path path = path_of(block);
  check_outermost(path);
  const auto* realize = path.target().as<BlockRealize>();
  const Ref<Block> old = realize->block;
  const Ref<Buffer> buffer = region_at(old->writes, write, *old, "writes")->buffer;
  const BufferStore* accumulating = accumulating_store(*old);
  if (!is_spatial(*old) && !is_reduction(*old) && !accumulating)
    illegal(old->origin, "block `{}` is neither element-wise nor a reduction", block.name);
  if (!is_int(realize->predicate, 1))
    illegal(old->origin, "block `{}` runs under a predicate; expected none", block.name);
  if (!runs_whole_domain(path))
    illegal(old->origin, "the loops of block `{}` are not known to run all of its domain",
            block.name);
  if (!old->init && !accumulating && reads_buffer(*old, buffer))
    illegal(old->origin, "block `{}` reads what it writes to `{}`; the new buffer does not hold it",
            block.name, buffer->name);
  const std::vector<Expr> place = place_of(*old, buffer);
  std::vector<IterVar> spatial;
  std::vector<Expr> shape, here;
  for (const IterVar& iter : old->iter_vars) {
    if (iter.kind != IterKind::kSpatial) continue;
    spatial.push_back(iter);
    if (is_int(iter.domain.extent, 1)) continue;
    shape.push_back(iter.domain.extent);
    here.push_back(Expr(iter.var) - iter.domain.min);
  }
  if (shape.empty()) {
    shape.push_back(int64(1));
    here.push_back(zero());
  }
  const Ref<Buffer> cache =
      make<Buffer>(unique_buffer_name(root(), *func_, buffer->name + "_" + scope), buffer->dtype,
                   shape, Buffer::Options{.scope = scope}, buffer->origin);
  Ref<Block> next = redirected(old, buffer, cache, [&](const std::vector<Expr>&) { return here; });
  std::optional<Combiner> combiner;
  if (accumulating) {
    combiner = combiner_of(*accumulating);
    Block::Parts parts = next->parts();
    parts.init = make<BufferStore>(cache, neutral_value(combiner->op, buffer->dtype), here);
    next = with_accesses(with_parts(next, std::move(parts)));
  }
  Substitution values;
  const std::vector<IterVar> axes = renewed(spatial, values);
  std::vector<Expr> to, from;
  for (const Expr& index : place) to.push_back(substitute(index, values));
  for (const Expr& index : here) from.push_back(substitute(index, values));
  const std::string name = unique_name(cache->name);
  const Expr value = load(cache, from);
  const Ref<Block> copy =
      element_wise(name, axes, buffer, to,
                   combiner ? joined(*combiner, load(buffer, to), value) : value, old->origin);
  check_copied_in_time(path, buffer);
  Stmt body = with_block(path, next);
  body = insert_after(nest_path(find_block(body, block.name)),
                      make_nest(copy, domains_of(*copy)).stmt);
  commit(add_alloc(body, cache));
  record("cache_write", {block}, {{"write_buffer_index", write}, {"storage_scope", scope}},
         {BlockRV{name}});
  return {name};
}

BlockRV Schedule::cache_read(const BlockRV& block, int64_t read, const std::string& scope) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<Block> old = path.target().as<BlockRealize>()->block;
  const Ref<Buffer> buffer = region_at(old->reads, read, *old, "reads")->buffer;
  check_settled(path, buffer);
  if (is_intermediate(buffer) && !is_filled(root(), buffer))
    illegal(old->origin, "`{}` is not known to be written as a whole, which a copy of it reads",
            buffer->name);
  const Ref<Buffer> cache =
      make<Buffer>(unique_buffer_name(root(), *func_, buffer->name + "_" + scope), buffer->dtype,
                   buffer->shape, Buffer::Options{.scope = scope}, buffer->origin);
  std::vector<IterVar> axes;
  std::vector<Expr> indices;
  for (size_t d = 0; d < buffer->ndim(); ++d) {
    const Ref<Var> axis = var(fmt::format("v{}", d), buffer->shape[d]->dtype);
    axes.push_back({axis, {zero_of(axis), buffer->shape[d]}, IterKind::kSpatial});
    indices.push_back(axis);
  }
  const std::string name = unique_name(cache->name);
  const Ref<Block> copy = copy_block(name, axes, cache, indices, buffer, indices, old->origin);
  const Ref<Block> next =
      redirected(old, buffer, cache, [](const std::vector<Expr>& same) { return same; });
  Stmt body = with_block(path, next);
  body = insert_before(nest_path(find_block(body, block.name)),
                       make_nest(copy, domains_of(*copy)).stmt);
  commit(add_alloc(body, cache));
  record("cache_read", {block}, {{"read_buffer_index", read}, {"storage_scope", scope}},
         {BlockRV{name}});
  return {name};
}

BlockRV Schedule::reindex_cache_read(const BlockRV& block, int64_t read, const std::string& scope,
                                     const std::vector<int64_t>& axes) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<Block> old = path.target().as<BlockRealize>()->block;
  const Ref<BufferRegion> region = region_at(old->reads, read, *old, "reads");
  const Ref<Buffer> buffer = region->buffer;
  check_settled(path, buffer);
  std::vector<IterVar> chosen;
  std::vector<Expr> shape, here;
  for (const int64_t a : axes) {
    if (a < 0 || static_cast<size_t>(a) >= old->iter_vars.size())
      illegal(old->origin, "block `{}` has {} axes; {} was asked for", block.name,
              old->iter_vars.size(), a);
    const IterVar& iter = old->iter_vars[static_cast<size_t>(a)];
    chosen.push_back(iter);
    shape.push_back(iter.domain.extent);
    here.push_back(Expr(iter.var) - iter.domain.min);
  }
  std::vector<Expr> place;
  bool same = true;
  const auto see = [&](const BufferLoad& l) {
    if (!l.buffer.same_as(buffer)) return;
    if (place.empty()) place = l.indices;
    for (size_t i = 0; i < place.size(); ++i)
      same = same && structural_equal(place[i], l.indices[i]);
  };
  walk<BufferLoad>(old->body, see);
  if (old->init) walk<BufferLoad>(old->init, see);
  if (place.empty() || !same)
    illegal(old->origin, "block `{}` reads `{}` at several places; expected one", block.name,
            buffer->name);
  for (const IterVar& iter : old->iter_vars) {
    const bool in = std::any_of(chosen.begin(), chosen.end(),
                                [&](const IterVar& c) { return c.var.same_as(iter.var); });
    for (const Expr& index : place)
      if (!in && !is_int(iter.domain.extent, 1) && uses_var(index, iter.var.get()))
        illegal(old->origin, "`{}` is read at {}, which depends on axis `{}` too", buffer->name,
                str(index), iter.var->name);
  }
  // The copy reads for every point of the axes, under no condition that the block may have.
  arith::Analyzer domains;
  for (const IterVar& iter : old->iter_vars) domains.bind(iter.var, iter.domain);
  assume_assertions(path, domains);
  for (size_t d = 0; d < place.size(); ++d)
    if (!domains.proves_nonnegative(place[d]) || !domains.proves_less(place[d], buffer->shape[d]))
      illegal(
          old->origin,
          "`{}` is read at {}, which is not known to lie inside of its extent {} for all points "
          "of the axes of block `{}`",
          buffer->name, str(place[d]), str(buffer->shape[d]), block.name);
  if (is_intermediate(buffer) && !is_filled(root(), buffer) &&
      (has_branch(old->body) || !runs_whole_domain(path)))
    illegal(
        old->origin,
        "block `{}` is not known to read `{}` at all points of its axes, nor that to be written "
        "as a whole; a copy would read what nobody has written",
        block.name, buffer->name);
  const Ref<Buffer> cache =
      make<Buffer>(unique_buffer_name(root(), *func_, buffer->name + "_packed"), buffer->dtype,
                   shape, Buffer::Options{.scope = scope}, buffer->origin);
  Substitution values;
  const std::vector<IterVar> fresh = renewed(chosen, values);
  for (const IterVar& iter : old->iter_vars)
    if (!values.count(iter.var.get())) values[iter.var.get()] = iter.domain.min;
  std::vector<Expr> to, from;
  for (const Expr& index : here) to.push_back(substitute(index, values));
  for (const Expr& index : place) from.push_back(substitute(index, values));
  const std::string name = unique_name(cache->name);
  const Ref<Block> copy = copy_block(name, fresh, cache, to, buffer, from, old->origin);
  const Ref<Block> next =
      redirected(old, buffer, cache, [&](const std::vector<Expr>&) { return here; });
  Stmt body = with_block(path, next);
  body = insert_before(nest_path(find_block(body, block.name)),
                       make_nest(copy, domains_of(*copy)).stmt);
  commit(add_alloc(body, cache));
  record("reindex_cache_read", {block},
         {{"read_buffer_index", read}, {"storage_scope", scope}, {"axes", AttrValue(axes)}},
         {BlockRV{name}});
  return {name};
}

static void replace_alloc(Stmt& body, const Ref<Buffer>& old, const Ref<Buffer>& next) {
  body = substitute(body, {{old.get(), next}, {old->data.get(), next->data}});
  const auto* realize = body.as<BlockRealize>();
  Block::Parts parts = realize->block->parts();
  for (Ref<Buffer>& buffer : parts.alloc_buffers)
    if (buffer.same_as(old)) buffer = next;
  body = make<BlockRealize>(realize->iter_values, realize->predicate,
                            with_parts(realize->block, std::move(parts)), realize->origin);
}

void Schedule::set_scope(const BlockRV& block, int64_t write, const std::string& scope) {
  const Ref<Block> old = get(block);
  const Ref<Buffer> buffer = region_at(old->writes, write, *old, "writes")->buffer;
  if (!is_intermediate(buffer))
    illegal(old->origin, "`{}` is a parameter; its scope cannot change", buffer->name);
  const Ref<Buffer> next = make<Buffer>(buffer->name, buffer->dtype, buffer->shape,
                                        Buffer::Options{.strides = buffer->strides,
                                                        .elem_offset = buffer->elem_offset,
                                                        .scope = scope,
                                                        .alignment = buffer->alignment,
                                                        .offset_factor = buffer->offset_factor},
                                        buffer->origin);
  Stmt body = root();
  replace_alloc(body, buffer, next);
  commit(body);
  record("set_scope", {block}, {{"buffer_index", write}, {"storage_scope", scope}});
}

void Schedule::storage_align(const BlockRV& block, int64_t write, int64_t axis, int64_t factor,
                             int64_t offset) {
  const Ref<Block> old = get(block);
  const Ref<Buffer> buffer = region_at(old->writes, write, *old, "writes")->buffer;
  const auto ndim = static_cast<int64_t>(buffer->ndim());
  if (!is_intermediate(buffer))
    illegal(old->origin, "`{}` is a parameter; its strides cannot change", buffer->name);
  if (axis < 0) axis += ndim;
  if (axis < 0 || axis >= ndim || factor < 1)
    illegal(old->origin, "axis {} and factor {} do not suit `{}` with {} dimensions", axis, factor,
            buffer->name, ndim);
  // The annotation is what CompactBufferAllocation honours: [buffer, axis, factor, offset].
  AttrList entry{AttrValue(write), AttrValue(axis), AttrValue(factor), AttrValue(offset)};
  AttrList list;
  if (const auto known = old->annotations.get<AttrList>("buffer_dim_align")) list = *known;
  list.push_back(AttrValue(entry));
  const Path path = path_of(block);
  Block::Parts parts = old->parts();
  parts.annotations.set("buffer_dim_align", AttrValue(list));
  commit(with_block(path, with_parts(old, std::move(parts))));
  record("storage_align", {block},
         {{"buffer_index", write}, {"axis", axis}, {"factor", factor}, {"offset", offset}});
}

}  // namespace tenon::tir
