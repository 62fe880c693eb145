// SPDX-License-Identifier: Apache-2.0
// pad_einsum and decompose_padding: add padding beyond an extent, and split it off.
#include <algorithm>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// The axis that each index is, for an access whose indices are axes or constants; nothing where
/// one is something else.
std::optional<std::vector<std::optional<size_t>>> axes_of(const std::vector<Expr>& indices,
                                                          const std::vector<IterVar>& iters) {
  std::vector<std::optional<size_t>> out;
  for (const Expr& index : indices) {
    std::optional<size_t> axis;
    for (size_t a = 0; a < iters.size(); ++a)
      if (iters[a].var.get() == index.get()) axis = a;
    if (!axis && !as_int(index)) return std::nullopt;
    out.push_back(axis);
  }
  return out;
}

/// Loads that `value` multiplies; nothing where it is no product of loads, constants and
/// conversions of them.
bool collect_factors(const Expr& value, std::vector<const BufferLoad*>& loads) {
  if (const auto* load = value.as<BufferLoad>()) {
    loads.push_back(load);
    return true;
  }
  if (const auto* conversion = value.as<Cast>()) return collect_factors(conversion->value, loads);
  const auto* op = value.as<Binary>();
  return op && op->op == BinaryOp::kMul && collect_factors(op->lhs, loads) &&
         collect_factors(op->rhs, loads);
}

/// A buffer of the block with its padded counterpart, indexed alike.
struct Padded {
  Ref<Buffer> buffer, padded;
  std::vector<std::optional<size_t>> axes;  // of the block, by dimension
  bool grows;                               // in some dimension; otherwise it stays
};

/// A nest that copies between a buffer and its padded counterpart.
Stmt copy_nest(const Padded& p, bool into_padded, const std::string& name, const Origin& origin) {
  const Buffer& over = into_padded ? *p.padded : *p.buffer;
  Block::Parts parts;
  parts.name = name;
  std::vector<Expr> place;
  Expr inside = boolean(true);
  for (size_t d = 0; d < over.ndim(); ++d) {
    const Ref<Var> axis = var(fmt::format("v{}", d), over.shape[d]->dtype);
    parts.iter_vars.push_back({axis, {zero_of(axis), over.shape[d]}, IterKind::kSpatial});
    place.push_back(axis);
    if (!p.padded->shape[d].same_as(p.buffer->shape[d]))
      inside = logical_and(inside, Expr(axis) < p.buffer->shape[d]);
  }
  const Expr value =
      into_padded ? if_then_else(inside, load(p.buffer, place), cast(p.buffer->dtype, int64(0)))
                  : load(p.padded, place);
  parts.body = make<BufferStore>(into_padded ? p.padded : p.buffer, value, place, origin);
  Ref<Block> block = with_accesses(make<Block>(std::move(parts), origin));
  if (into_padded) {
    // No more is read than there is.
    Block::Parts clipped = block->parts();
    clipped.reads = {BufferRegion::whole(p.buffer)};
    block = with_parts(block, std::move(clipped));
  }
  return make_nest(block, domains_of(*block)).stmt;
}

/// A sum of products, the axes that it is to have, and its buffers.
struct Einsum {
  Ref<Block> block;
  const BufferStore* store;
  std::vector<const BufferLoad*> factors;
  std::vector<IterVar> iters;  // with padded extents
  std::vector<bool> grows;     // by axis
  std::vector<Padded> padded;  // the output first
};

/// The sum of products that starts at 0, alone in its loops, at the end of `path`.
Einsum einsum_at(const Path& path) {
  const auto* realize = path.target().as<BlockRealize>();
  const Ref<Block> block = realize->block;
  const BufferStore* store = only_store(*block);
  const auto* start = block->init.as<BufferStore>();
  if (!is_reduction(*block) || !store || !start || !is_alone(path) ||
      !is_int(realize->predicate, 1))
    illegal(block->origin, "block `{}` is no plain reduction alone in its loops", block->name);
  if (!runs_once_everywhere(path))
    illegal(block->origin, "block `{}` is not known to run once at each point of its domain",
            block->name);
  const auto combiner = combiner_of(*store);
  const bool starts_at_zero =
      start->value.as<FloatImm>() ? start->value.as<FloatImm>()->value == 0 : is_zero(start->value);
  std::vector<const BufferLoad*> factors;
  if (!combiner || combiner->op != BinaryOp::kAdd || !starts_at_zero ||
      !collect_factors(combiner->value, factors) || factors.empty())
    illegal(block->origin, "block `{}` is no sum of products that starts at 0", block->name);
  return {block, store, std::move(factors), block->iter_vars, {}, {}};
}

/// Rounds the axes up to the next multiples of `padding`.
void pad_axes(Einsum& einsum, const std::vector<int64_t>& padding) {
  const Block& block = *einsum.block;
  if (padding.size() != block.iter_vars.size())
    illegal(block.origin, "{} padding factors for the {} axes of block `{}`", padding.size(),
            block.iter_vars.size(), block.name);
  for (size_t a = 0; a < padding.size(); ++a) {
    IterVar& iter = einsum.iters[a];
    if (padding[a] < 1)
      illegal(block.origin,
              "axis `{}` of block `{}` is padded to a multiple of {}; expected 1 or "
              "more",
              iter.var->name, block.name, padding[a]);
    if (!is_zero(iter.domain.min))
      illegal(block.origin, "axis `{}` of block `{}` starts at {}; expected 0", iter.var->name,
              block.name, str(iter.domain.min));
    Expr& extent = iter.domain.extent;
    arith::Analyzer analyzer;
    einsum.grows.push_back(!analyzer.proves_divisible(extent, padding[a]));
    const Expr factor = imm(extent->dtype, padding[a]);
    if (einsum.grows[a]) extent = analyzer.simplify(ceildiv(extent, factor) * factor);
  }
}

/// Gives `buffer`, which the block uses at `indices`, a counterpart with the axes' padded extents.
void add_padded(Einsum& einsum, const PrimFunc& function, const Ref<Buffer>& buffer,
                const std::vector<Expr>& indices) {
  const Block& block = *einsum.block;
  const auto axes = axes_of(indices, block.iter_vars);
  if (!axes)
    illegal(block.origin, "block `{}` uses `{}` at {}; expected axes alone", block.name,
            buffer->name, str(indices));
  for (const Padded& other : einsum.padded) {
    if (!other.buffer.same_as(buffer)) continue;
    if (other.axes != *axes)
      illegal(block.origin, "block `{}` uses `{}` at several places; expected one", block.name,
              buffer->name);
    return;
  }
  std::vector<Expr> shape = buffer->shape;
  arith::Analyzer analyzer;
  const bool is_output = einsum.padded.empty();
  bool grows = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto& axis = (*axes)[d];
    // The result is copied out as a whole, so all of it must have been computed.
    const bool repeated = axis && std::count(axes->begin(), axes->end(), axis) > 1;
    if (is_output && (axis ? repeated : !is_int(shape[d], 1)))
      illegal(block.origin, "block `{}` writes `{}` at {}, which is not all of shape {}",
              block.name, buffer->name, str(indices), str(shape));
    if (!axis || !(is_output || einsum.grows[*axis])) continue;
    const IterVar& iter = block.iter_vars[*axis];
    if (!analyzer.proves_equal(shape[d], iter.domain.extent))
      illegal(block.origin, "dimension {} of `{}` has extent {}; axis `{}` runs over {}", d,
              buffer->name, str(shape[d]), iter.var->name, str(iter.domain.extent));
    if (einsum.grows[*axis]) shape[d] = einsum.iters[*axis].domain.extent;
    grows = grows || einsum.grows[*axis];
  }
  einsum.padded.push_back(
      {buffer,
       make<Buffer>(unique_buffer_name(function.body, function, buffer->name + "_pad"),
                    buffer->dtype, shape, buffer->origin),
       *axes, grows});
}

/// Gives the output and the factors counterparts, and checks that what padding adds to the sums is
/// 0 and what it adds to the result is computed once.
void pad_buffers(Einsum& einsum, const PrimFunc& function) {
  const Block& block = *einsum.block;
  const auto holds = [](const std::vector<std::optional<size_t>>& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), std::optional(axis)) != axes.end();
  };
  add_padded(einsum, function, einsum.store->buffer, einsum.store->indices);
  for (size_t a = 0; a < einsum.iters.size(); ++a)
    if (einsum.grows[a] && einsum.iters[a].kind == IterKind::kSpatial &&
        !holds(einsum.padded[0].axes, a))
      illegal(block.origin,
              "axis `{}` of block `{}` does not index `{}`, which would be computed once for each "
              "of its points",
              einsum.iters[a].var->name, block.name, einsum.store->buffer->name);
  for (const BufferLoad* factor : einsum.factors) {
    add_padded(einsum, function, factor->buffer, factor->indices);
    // Beyond a reduction's end every factor is 0, so that none can make it NaN.
    const auto axes = *axes_of(factor->indices, block.iter_vars);
    for (size_t a = 0; a < einsum.iters.size(); ++a)
      if (einsum.grows[a] && einsum.iters[a].kind == IterKind::kReduce && !holds(axes, a))
        illegal(block.origin,
                "`{}` does not depend on reduction axis `{}`, so that 0 times it need not be 0",
                factor->buffer->name, einsum.iters[a].var->name);
  }
}

/// The block over the padded axes and buffers.
Ref<Block> padded_block(const Einsum& einsum) {
  const auto redirect = [&](const NodePtr& node) -> std::optional<NodePtr> {
    for (const Padded& p : einsum.padded) {
      if (!p.grows) continue;
      if (const auto* l = node.as<BufferLoad>(); l && l->buffer.same_as(p.buffer))
        return NodePtr(make<BufferLoad>(p.padded, l->indices, l->origin));
      if (const auto* s = node.as<BufferStore>(); s && s->buffer.same_as(p.buffer))
        return NodePtr(make<BufferStore>(p.padded, s->value, s->indices, s->origin));
    }
    return std::nullopt;
  };
  Block::Parts parts = einsum.block->parts();
  parts.iter_vars = einsum.iters;
  parts.body = rewrite(parts.body, redirect);
  parts.init = rewrite(parts.init, redirect);
  return with_accesses(with_parts(einsum.block, std::move(parts)));
}

}  // namespace

void Schedule::pad_einsum(const BlockRV& block, const std::vector<int64_t>& padding) {
  const Path path = path_of(block);
  check_outermost(path);
  Einsum einsum = einsum_at(path);
  pad_axes(einsum, padding);
  pad_buffers(einsum, *func_);
  const Ref<Block> next = padded_block(einsum);
  std::vector<Stmt> stmts{make_nest(next, domains_of(*next)).stmt};
  for (size_t i = einsum.padded.size(); i-- > 0;) {
    const Padded& p = einsum.padded[i];
    if (!p.grows) continue;
    const bool is_output = i == 0;
    const Stmt copy = copy_nest(p, !is_output, unique_name(p.padded->name), einsum.block->origin);
    stmts.insert(is_output ? stmts.end() : stmts.begin(), copy);
  }
  Stmt body = replace(nest_path(path), seq(std::move(stmts)));
  for (const Padded& p : einsum.padded)
    if (p.grows) body = add_alloc(body, p.padded);
  commit(body);
  record("pad_einsum", {block}, {{"padding", AttrValue(padding)}});
}

namespace {

/// `axis` lies in [low, high) where the conditions hold that were given to `cut`.
struct Bounds {
  Expr low, high;
};

/// Cuts `bounds` where `condition` says no more than on which side of something constant `axis`
/// lies.
bool cut(Bounds& bounds, const Expr& condition, const Ref<Var>& axis, arith::Analyzer& analyzer) {
  const auto* op = condition.as<Binary>();
  if (!op || !is_comparison(op->op) || !op->lhs->dtype.is_int()) return false;
  Expr less = op->lhs, more = op->rhs;  // less < more, or less <= more
  if (op->op == BinaryOp::kGT || op->op == BinaryOp::kGE) std::swap(less, more);
  const bool strict = op->op == BinaryOp::kLT || op->op == BinaryOp::kGT;
  if (!strict && op->op != BinaryOp::kLE && op->op != BinaryOp::kGE) return false;
  const std::vector<Ref<Var>> vars{axis};
  const auto form = analyzer.linear(more - less - (strict ? 1 : 0), vars);  // >= 0
  if (!form) return false;
  if (form->is_constant(0, 1)) {
    bounds.low = analyzer.simplify(max(bounds.low, zero_of(axis) - form->rest));
    return true;
  }
  if (!form->is_constant(0, -1)) return false;
  bounds.high = analyzer.simplify(min(bounds.high, form->rest + 1));
  return true;
}

/// A block that stores `T.if_then_else(inside, value, constant)`, and the loops to cut it in.
struct PaddedStore {
  Ref<BlockRealize> realize;
  const BufferStore* store;
  const Call* choice;
  std::vector<Ref<For>> loops;                 // the one to cut below, and those inside it
  std::vector<std::optional<size_t>> axis_of;  // the axis that each of them is

  const Block& block() const { return *realize->block; }
  bool is_inner(size_t axis) const {
    return std::find(axis_of.begin(), axis_of.end(), std::optional(axis)) != axis_of.end();
  }
};

/// The axis that `loop` is, none where it is no axis' loop.
std::optional<size_t> axis_of_loop(const For& loop, const BlockRealize& realize) {
  const Block& block = *realize.block;
  std::optional<size_t> axis;
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& iter = block.iter_vars[a];
    if (!uses_var(realize.iter_values[a], loop.loop_var.get())) continue;
    arith::Analyzer analyzer;
    if (axis || !is_zero(loop.min) ||
        !analyzer.proves_equal(realize.iter_values[a], iter.domain.min + Expr(loop.loop_var)) ||
        !analyzer.proves_equal(loop.extent, iter.domain.extent))
      illegal(loop.origin, "loop `{}` is not axis `{}` of block `{}` itself", loop.loop_var->name,
              iter.var->name, block.name);
    axis = a;
  }
  return axis;
}

/// The padding at the end of `path`, which is alone in its loops, `outer` among them.
PaddedStore padded_store_at(const Path& path, const LoopRV& outer) {
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const Block& block = *realize->block;
  const BufferStore* store = only_store(block);
  const auto* choice = store ? store->value.as<Call>() : nullptr;
  if (!is_spatial(block) || !choice || !choice->is(IntrinsicId::kIfThenElse) || !is_alone(path) ||
      !is_int(realize->predicate, 1))
    illegal(block.origin,
            "block `{}` is no padding alone in its loops: expected one store of "
            "`T.if_then_else(inside, value, constant)`",
            block.name);
  if (reads_buffer(block, store->buffer))
    illegal(block.origin, "block `{}` reads what it writes to `{}`", block.name,
            store->buffer->name);
  const Expr fill = choice->arg(2);
  if (!fill.as<IntImm>() && !fill.as<FloatImm>())
    illegal(block.origin, "block `{}` pads with {}; expected a constant", block.name, str(fill));
  std::vector<Ref<For>> loops = loops_of(path);
  const auto at = std::find_if(loops.begin(), loops.end(),
                               [&](const Ref<For>& l) { return l->loop_var.same_as(outer.var); });
  if (at == loops.end())
    illegal(block.origin, "loop `{}` is not around block `{}`", outer.var->name, block.name);
  loops.erase(loops.begin(), at);
  std::vector<std::optional<size_t>> axis_of;
  axis_of.reserve(loops.size());
  for (const Ref<For>& l : loops) axis_of.push_back(axis_of_loop(*l, *realize));
  return {realize, store, choice, std::move(loops), std::move(axis_of)};
}

/// The block where the value is stored: what the condition says about the inner axes becomes their
/// domains, the rest stays a condition. `analyzer` knows the loops around.
Block::Parts inside_of(const PaddedStore& padded, arith::Analyzer& analyzer) {
  const Block& block = padded.block();
  const BufferStore& store = *padded.store;
  std::vector<Bounds> bounds;
  for (const IterVar& iter : block.iter_vars)
    bounds.push_back({iter.domain.min, iter.domain.min + iter.domain.extent});
  Expr rest = boolean(true);
  for (const Expr& condition : conjuncts(padded.choice->arg(0))) {
    std::optional<size_t> axis;
    size_t used = 0;
    for (size_t a = 0; a < block.iter_vars.size(); ++a)
      if (uses_var(condition, block.iter_vars[a].var.get())) {
        ++used;
        if (padded.is_inner(a)) axis = a;
      }
    if (!axis) {
      rest = logical_and(rest, condition);
    } else if (used != 1 || !cut(bounds[*axis], condition, block.iter_vars[*axis].var, analyzer)) {
      illegal(block.origin, "condition {} of block `{}` does not bound one axis", str(condition),
              block.name);
    }
  }
  Block::Parts inside = block.parts();
  for (size_t a = 0; a < inside.iter_vars.size(); ++a) {
    if (!padded.is_inner(a)) continue;
    const Expr extent = analyzer.simplify(bounds[a].high - bounds[a].low);
    if (!analyzer.proves_nonnegative(extent))
      illegal(block.origin, "axis `{}` of block `{}` has {} places inside, which may be negative",
              inside.iter_vars[a].var->name, block.name, str(extent));
    inside.iter_vars[a].domain = {analyzer.simplify(bounds[a].low), extent};
  }
  const Expr value = padded.choice->arg(1);
  inside.body = make<BufferStore>(
      store.buffer, is_int(rest, 1) ? value : if_then_else(rest, value, padded.choice->arg(2)),
      store.indices, store.origin);
  return inside;
}

/// Loops and a block `name` that store the constant over all of the region.
Stmt constant_nest(const PaddedStore& padded, const std::string& name) {
  Substitution axes, vars;
  Block::Parts constant;
  constant.name = name;
  for (const Ref<For>& l : padded.loops)
    vars[l->loop_var.get()] = var(l->loop_var->name, l->loop_var->dtype);
  std::vector<Expr> values;
  for (size_t a = 0; a < padded.block().iter_vars.size(); ++a) {
    const IterVar& iter = padded.block().iter_vars[a];
    const Ref<Var> fresh = var(iter.var->name, iter.var->dtype);
    axes[iter.var.get()] = fresh;
    constant.iter_vars.push_back({fresh, iter.domain, iter.kind});
    values.push_back(substitute(padded.realize->iter_values[a], vars));
  }
  std::vector<Expr> place;
  place.reserve(padded.store->indices.size());
  for (const Expr& index : padded.store->indices) place.push_back(substitute(index, axes));
  constant.body =
      make<BufferStore>(padded.store->buffer, padded.choice->arg(2), place, padded.store->origin);
  const Ref<Block> block = with_accesses(make<Block>(std::move(constant), padded.block().origin));
  Stmt nest = make<BlockRealize>(values, boolean(true), block, padded.realize->origin);
  for (size_t i = padded.loops.size(); i-- > 0;) {
    const For& l = *padded.loops[i];
    nest = make<For>(downcast<Var>(vars.at(l.loop_var.get())), l.min, l.extent, l.kind, nest,
                     l.annotations, l.origin);
  }
  return nest;
}

/// The loops around the block `inside`, as long as its axes.
Stmt inside_nest(const PaddedStore& padded, const Block::Parts& inside) {
  std::vector<Expr> values = padded.realize->iter_values;
  for (size_t i = 0; i < padded.loops.size(); ++i)
    if (const auto& axis = padded.axis_of[i])
      values[*axis] = inside.iter_vars[*axis].domain.min + Expr(padded.loops[i]->loop_var);
  const Ref<Block> block = with_accesses(make<Block>(inside, padded.block().origin));
  Stmt nest = make<BlockRealize>(values, boolean(true), block, padded.realize->origin);
  for (size_t i = padded.loops.size(); i-- > 0;) {
    const For& l = *padded.loops[i];
    const auto& axis = padded.axis_of[i];
    nest = l.with(l.min, axis ? inside.iter_vars[*axis].domain.extent : l.extent, nest);
  }
  return nest;
}

}  // namespace

BlockRV Schedule::decompose_padding(const BlockRV& block, const LoopRV& loop) {
  const Path path = path_of(block);
  const PaddedStore padded = padded_store_at(path, loop);
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  const Block::Parts inside = inside_of(padded, analyzer);
  const BlockRV made{unique_name(block.name + "_pad_const")};
  const Path at = path_of(loop);
  const auto* around = at.stmts.size() > 1 ? at.stmts[at.stmts.size() - 2].as<For>() : nullptr;
  if (around) check_no_pipeline(*around, "given another statement, which has no stage");
  commit(replace(at, seq({constant_nest(padded, made.name), inside_nest(padded, inside)})));
  record("decompose_padding", {block, loop}, {}, {made});
  return made;
}

}  // namespace tenon::tir
