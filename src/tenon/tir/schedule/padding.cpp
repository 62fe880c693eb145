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

}  // namespace

void Schedule::pad_einsum(const BlockRV& block, const std::vector<int64_t>& padding) {
  const Path path = path_of(block);
  check_outermost(path);
  const auto* realize = path.target().as<BlockRealize>();
  const Ref<Block> old = realize->block;
  const BufferStore* store = only_store(*old);
  const auto* start = old->init.as<BufferStore>();
  if (!is_reduction(*old) || !store || !start || !is_alone(path) || !is_int(realize->predicate, 1))
    illegal(old->origin, "block `{}` is no plain reduction alone in its loops", block.name);
  if (!runs_once_everywhere(path))
    illegal(old->origin, "block `{}` is not known to run once at each point of its domain",
            block.name);
  const auto combiner = combiner_of(*store);
  const bool starts_at_zero =
      start->value.as<FloatImm>() ? start->value.as<FloatImm>()->value == 0 : is_zero(start->value);
  std::vector<const BufferLoad*> factors;
  if (!combiner || combiner->op != BinaryOp::kAdd || !starts_at_zero ||
      !collect_factors(combiner->value, factors) || factors.empty())
    illegal(old->origin, "block `{}` is no sum of products that starts at 0", block.name);
  if (padding.size() != old->iter_vars.size())
    illegal(old->origin, "{} padding factors for the {} axes of block `{}`", padding.size(),
            old->iter_vars.size(), block.name);
  // The axes up to the next multiples.
  std::vector<IterVar> iters = old->iter_vars;
  std::vector<bool> grows(iters.size(), false);
  for (size_t a = 0; a < iters.size(); ++a) {
    if (padding[a] < 1)
      illegal(old->origin,
              "axis `{}` of block `{}` is padded to a multiple of {}; expected 1 or "
              "more",
              iters[a].var->name, block.name, padding[a]);
    if (!is_zero(iters[a].domain.min))
      illegal(old->origin, "axis `{}` of block `{}` starts at {}; expected 0", iters[a].var->name,
              block.name, str(iters[a].domain.min));
    const Expr extent = iters[a].domain.extent;
    arith::Analyzer analyzer;
    if (analyzer.proves_divisible(extent, padding[a])) continue;
    grows[a] = true;
    const Expr factor = imm(extent->dtype, padding[a]);
    iters[a].domain.extent = analyzer.simplify(ceildiv(extent, factor) * factor);
  }
  // Each buffer whose dimensions are axes that grow gets a counterpart.
  std::vector<Padded> padded;  // the output first
  std::string taken = "_pad";
  const auto add = [&](const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    const auto axes = axes_of(indices, old->iter_vars);
    if (!axes)
      illegal(old->origin, "block `{}` uses `{}` at {}; expected axes alone", block.name,
              buffer->name, str(indices));
    for (const Padded& other : padded) {
      if (!other.buffer.same_as(buffer)) continue;
      if (other.axes != *axes)
        illegal(old->origin, "block `{}` uses `{}` at several places; expected one", block.name,
                buffer->name);
      return;
    }
    std::vector<Expr> shape = buffer->shape;
    arith::Analyzer analyzer;
    const bool is_output = padded.empty();
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto& axis = (*axes)[d];
      // The result is copied out as a whole, so all of it must have been computed.
      const bool repeated = axis && std::count(axes->begin(), axes->end(), axis) > 1;
      if (is_output && (axis ? repeated : !is_int(shape[d], 1)))
        illegal(old->origin, "block `{}` writes `{}` at {}, which is not all of shape {}",
                block.name, buffer->name, str(indices), str(shape));
      if (!axis || !(is_output || grows[*axis])) continue;
      if (!analyzer.proves_equal(shape[d], old->iter_vars[*axis].domain.extent))
        illegal(old->origin, "dimension {} of `{}` has extent {}; axis `{}` runs over {}", d,
                buffer->name, str(shape[d]), old->iter_vars[*axis].var->name,
                str(old->iter_vars[*axis].domain.extent));
      if (grows[*axis]) shape[d] = iters[*axis].domain.extent;
    }
    padded.push_back({buffer,
                      make<Buffer>(unique_buffer_name(root(), *func_, buffer->name + taken),
                                   buffer->dtype, shape, buffer->origin),
                      *axes});
  };
  add(store->buffer, store->indices);
  for (size_t a = 0; a < iters.size(); ++a)
    if (grows[a] && iters[a].kind == IterKind::kSpatial &&
        std::find(padded[0].axes.begin(), padded[0].axes.end(), std::optional(a)) ==
            padded[0].axes.end())
      illegal(old->origin,
              "axis `{}` of block `{}` does not index `{}`, which would be computed once for each "
              "of its points",
              iters[a].var->name, block.name, store->buffer->name);
  for (const BufferLoad* factor : factors) {
    add(factor->buffer, factor->indices);
    // Beyond a reduction's end every factor is 0, so that none can make it NaN.
    for (size_t a = 0; a < iters.size(); ++a) {
      if (!grows[a] || iters[a].kind != IterKind::kReduce) continue;
      const auto axes = *axes_of(factor->indices, old->iter_vars);
      if (std::find(axes.begin(), axes.end(), std::optional(a)) == axes.end())
        illegal(old->origin,
                "`{}` does not depend on reduction axis `{}`, so that 0 times it need not be 0",
                factor->buffer->name, iters[a].var->name);
    }
  }
  const auto grown = [&](const Padded& p) {
    for (const auto& axis : p.axes)
      if (axis && grows[*axis]) return true;
    return false;
  };
  Block::Parts parts = old->parts();
  parts.iter_vars = iters;
  const auto redirect = [&](const NodePtr& node) -> std::optional<NodePtr> {
    for (const Padded& p : padded) {
      if (!grown(p)) continue;
      if (const auto* l = node.as<BufferLoad>(); l && l->buffer.same_as(p.buffer))
        return NodePtr(make<BufferLoad>(p.padded, l->indices, l->origin));
      if (const auto* s = node.as<BufferStore>(); s && s->buffer.same_as(p.buffer))
        return NodePtr(make<BufferStore>(p.padded, s->value, s->indices, s->origin));
    }
    return std::nullopt;
  };
  parts.body = rewrite(parts.body, redirect);
  parts.init = rewrite(parts.init, redirect);
  const Ref<Block> next = with_accesses(with_parts(old, std::move(parts)));
  std::vector<Stmt> stmts{make_nest(next, domains_of(*next)).stmt};
  for (size_t i = padded.size(); i-- > 0;) {
    const Padded& p = padded[i];
    if (!grown(p)) continue;
    const bool is_output = i == 0;
    const Stmt copy = copy_nest(p, !is_output, unique_name(p.padded->name), old->origin);
    stmts.insert(is_output ? stmts.end() : stmts.begin(), copy);
  }
  Stmt body = replace(nest_path(path), seq(std::move(stmts)));
  for (const Padded& p : padded)
    if (grown(p)) body = add_alloc(body, p.padded);
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

}  // namespace

BlockRV Schedule::decompose_padding(const BlockRV& block, const LoopRV& loop) {
  const Path path = path_of(block);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const Ref<Block> old = realize->block;
  const BufferStore* store = only_store(*old);
  const auto* choice = store ? store->value.as<Call>() : nullptr;
  if (!is_spatial(*old) || !choice || !choice->is(IntrinsicId::kIfThenElse) || !is_alone(path) ||
      !is_int(realize->predicate, 1))
    illegal(old->origin,
            "block `{}` is no padding alone in its loops: expected one store of "
            "`T.if_then_else(inside, value, constant)`",
            block.name);
  if (reads_buffer(*old, store->buffer))
    illegal(old->origin, "block `{}` reads what it writes to `{}`", block.name,
            store->buffer->name);
  const Expr fill = choice->arg(2);
  if (!fill.as<IntImm>() && !fill.as<FloatImm>())
    illegal(old->origin, "block `{}` pads with {}; expected a constant", block.name, str(fill));
  const std::vector<Ref<For>> loops = loops_of(path);
  const auto at = std::find_if(loops.begin(), loops.end(),
                               [&](const Ref<For>& l) { return l->loop_var.same_as(loop.var); });
  if (at == loops.end())
    illegal(old->origin, "loop `{}` is not around block `{}`", loop.var->name, block.name);
  // Each loop at and below `loop` is an axis.
  std::vector<std::optional<size_t>> axis_of;
  std::vector<bool> is_inner(old->iter_vars.size(), false);
  for (auto l = at; l != loops.end(); ++l) {
    std::optional<size_t> axis;
    for (size_t a = 0; a < old->iter_vars.size(); ++a) {
      const IterVar& iter = old->iter_vars[a];
      if (!uses_var(realize->iter_values[a], (*l)->loop_var.get())) continue;
      arith::Analyzer analyzer;
      if (axis || !is_zero((*l)->min) ||
          !analyzer.proves_equal(realize->iter_values[a], iter.domain.min + Expr((*l)->loop_var)) ||
          !analyzer.proves_equal((*l)->extent, iter.domain.extent))
        illegal((*l)->origin, "loop `{}` is not axis `{}` of block `{}` itself",
                (*l)->loop_var->name, iter.var->name, block.name);
      axis = a;
      is_inner[a] = true;
    }
    axis_of.push_back(axis);
  }
  // What the condition says about those axes becomes their domains, the rest stays.
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  std::vector<Bounds> bounds;
  for (const IterVar& iter : old->iter_vars)
    bounds.push_back({iter.domain.min, iter.domain.min + iter.domain.extent});
  Expr rest = boolean(true);
  for (const Expr& condition : conjuncts(choice->arg(0))) {
    std::optional<size_t> axis;
    size_t used = 0;
    for (size_t a = 0; a < old->iter_vars.size(); ++a)
      if (uses_var(condition, old->iter_vars[a].var.get())) {
        ++used;
        if (is_inner[a]) axis = a;
      }
    if (!axis) {
      rest = logical_and(rest, condition);
    } else if (used != 1 || !cut(bounds[*axis], condition, old->iter_vars[*axis].var, analyzer)) {
      illegal(old->origin, "condition {} of block `{}` does not bound one axis", str(condition),
              block.name);
    }
  }
  Block::Parts inside = old->parts();
  for (size_t a = 0; a < inside.iter_vars.size(); ++a) {
    if (!is_inner[a]) continue;
    Range& domain = inside.iter_vars[a].domain;
    const Expr extent = analyzer.simplify(bounds[a].high - bounds[a].low);
    if (!analyzer.proves_nonnegative(extent))
      illegal(old->origin, "axis `{}` of block `{}` has {} places inside, which may be negative",
              inside.iter_vars[a].var->name, block.name, str(extent));
    domain = {analyzer.simplify(bounds[a].low), extent};
  }
  const Expr value = is_int(rest, 1) ? choice->arg(1) : if_then_else(rest, choice->arg(1), fill);
  inside.body = make<BufferStore>(store->buffer, value, store->indices, store->origin);
  // The constant, over all of the region.
  Substitution axes, vars;
  Block::Parts constant;
  constant.name = unique_name(block.name + "_pad_const");
  for (auto l = at; l != loops.end(); ++l)
    vars[(*l)->loop_var.get()] = var((*l)->loop_var->name, (*l)->loop_var->dtype);
  std::vector<Expr> constant_values, values;
  for (size_t a = 0; a < old->iter_vars.size(); ++a) {
    const IterVar& iter = old->iter_vars[a];
    const Ref<Var> fresh = var(iter.var->name, iter.var->dtype);
    axes[iter.var.get()] = fresh;
    constant.iter_vars.push_back({fresh, iter.domain, iter.kind});
    constant_values.push_back(substitute(realize->iter_values[a], vars));
    values.push_back(realize->iter_values[a]);
  }
  std::vector<Expr> place;
  for (const Expr& index : store->indices) place.push_back(substitute(index, axes));
  constant.body = make<BufferStore>(store->buffer, fill, place, store->origin);
  const BlockRV made{constant.name};
  Stmt first = make<BlockRealize>(constant_values, boolean(true),
                                  with_accesses(make<Block>(std::move(constant), old->origin)),
                                  realize->origin);
  for (size_t i = axis_of.size(); i-- > 0;) {
    const For& l = **(at + static_cast<std::ptrdiff_t>(i));
    first = make<For>(downcast<Var>(vars.at(l.loop_var.get())), l.min, l.extent, l.kind, first,
                      l.annotations, l.origin);
  }
  for (size_t i = 0; i < axis_of.size(); ++i)
    if (axis_of[i]) {
      const size_t a = *axis_of[i];
      values[a] =
          inside.iter_vars[a].domain.min + Expr((*(at + static_cast<std::ptrdiff_t>(i)))->loop_var);
    }
  const Ref<Block> inner = with_accesses(make<Block>(inside, old->origin));
  Stmt second = make<BlockRealize>(values, boolean(true), inner, realize->origin);
  for (size_t i = axis_of.size(); i-- > 0;) {
    const For& l = **(at + static_cast<std::ptrdiff_t>(i));
    const Expr extent = axis_of[i] ? inside.iter_vars[*axis_of[i]].domain.extent : l.extent;
    second = l.with(l.min, extent, second);
  }
  commit(replace(path_of(loop), seq({first, second})));
  record("decompose_padding", {block, loop}, {}, {made});
  return made;
}

}  // namespace tenon::tir
