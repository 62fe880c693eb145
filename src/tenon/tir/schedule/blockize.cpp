// SPDX-License-Identifier: Apache-2.0
// blockize: makes a block of the statements inside a loop.
#include <algorithm>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

bool uses_any(const NodePtr& node, const std::vector<Ref<For>>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const Ref<For>& l) { return uses_var(node, l->loop_var.get()); });
}

/// Divides the axes of one block between the loops outside of a new block and those inside of it.
class Division {
 public:
  Division(const Path& at, std::vector<Ref<For>> outer, std::vector<Ref<For>> inner,
           const BlockRealize& realize)
      : outer_(std::move(outer)), inner_(std::move(inner)), realize_(realize) {
    bind_path(at, analyzer_);
    for (const Ref<For>& l : inner_) {
      analyzer_.bind(l->loop_var, l->min, l->extent);
      inner_vars_.push_back(l->loop_var);
    }
    running_ = ranges_of(inner_);
    for (size_t a = 0; a < realize.iter_values.size(); ++a) axis(a);
    for (const Expr& condition : conjuncts(realize.predicate)) predicate(condition);
  }

  std::vector<IterVar> axes;     // of the new block
  std::vector<Expr> values;      // bound to them, in terms of the loops outside
  std::vector<Expr> bindings;    // of the old block's axes, in terms of `axes` and the loops inside
  Expr outside = boolean(true);  // what of the predicate is known outside
  std::vector<Expr> inside;      // the rest of it

 private:
  void axis(size_t a) {
    const IterVar& iter = realize_.block->iter_vars[a];
    const Expr& value = realize_.iter_values[a];
    const bool in = uses_any(value, inner_), out = uses_any(value, outer_);
    if (!out) {
      bindings.push_back(value);
      return;
    }
    const Ref<Var> fresh = var(iter.var->name + "_o", iter.var->dtype);
    if (!in) {
      axes.push_back({fresh, iter.domain, iter.kind});
      values.push_back(value);
      bindings.push_back(fresh);
      return;
    }
    // value == domain.min + size * quotient(outside) + part(inside), 0 <= part < size.
    const auto refuse = [&]() {
      illegal(realize_.origin,
              "axis `{}` of block `{}` is bound to {}; expected a multiple from outside the new "
              "block plus a smaller part from inside",
              iter.var->name, realize_.block->name, str(value));
    };
    const auto form = analyzer_.linear(value, inner_vars_);
    if (!form) refuse();
    Expr part = zero_of(value);
    for (size_t i = 0; i < inner_vars_.size(); ++i) {
      if (uses_any(form->coefficients[i], outer_)) refuse();
      part = part + form->coefficients[i] * Expr(inner_vars_[i]);
    }
    const auto range = value_range(part, running_, analyzer_);
    if (!range || !analyzer_.proves_equal(range->min, 0)) refuse();
    const Expr size = analyzer_.simplify(range->max + 1);
    const Expr rest = analyzer_.simplify(form->rest - iter.domain.min);
    if (!analyzer_.proves_divisible(rest, size)) refuse();
    const Expr quotient = analyzer_.simplify(floordiv(rest, size));
    const Expr count = analyzer_.simplify(ceildiv(iter.domain.extent, size));
    if (!analyzer_.proves_nonnegative(quotient) || !analyzer_.proves_less(quotient, count))
      refuse();
    axes.push_back({fresh, {zero_of(fresh), count}, iter.kind});
    values.push_back(quotient);
    bindings.push_back(analyzer_.simplify(iter.domain.min + Expr(fresh) * size + part));
  }

  // A condition that looks at both sides must look at an axis' value, which both sides can name.
  void predicate(const Expr& condition) {
    if (is_int(condition, 1)) return;
    if (!uses_any(condition, inner_)) {
      outside = logical_and(outside, condition);
      return;
    }
    const auto named = [&](const Expr& side) -> Expr {
      for (size_t a = 0; a < bindings.size(); ++a)
        if (side->dtype == bindings[a]->dtype &&
            analyzer_.proves_equal(side, realize_.iter_values[a]))
          return bindings[a];
      return side;
    };
    Expr next = condition;
    if (const auto* op = condition.as<Binary>(); op && is_comparison(op->op))
      next = make<Binary>(op->op, named(op->lhs), named(op->rhs));
    if (uses_any(next, outer_))
      illegal(realize_.origin, "predicate {} of block `{}` cannot be told inside of the new block",
              str(condition), realize_.block->name);
    inside.push_back(next);
  }

  std::vector<Ref<For>> outer_, inner_;
  const BlockRealize& realize_;
  std::vector<Ref<Var>> inner_vars_;
  VarRanges running_;
  arith::Analyzer analyzer_;
};

/// The start of the reduction for all that the loops inside visit.
///
/// \param is_owner  see owns_its_writes: the start may run where the loops have no iteration.
Stmt start_nest(const Block& old, const std::string& name, const Division& division,
                const std::vector<Ref<For>>& inner, bool is_owner, const Origin& origin) {
  const auto carries = [&](const Ref<For>& l, bool reduce) {
    for (size_t a = 0; a < old.iter_vars.size(); ++a)
      if ((old.iter_vars[a].kind == IterKind::kReduce) == reduce &&
          uses_var(division.bindings[a], l->loop_var.get()))
        return true;
    return false;
  };
  std::vector<Ref<For>> kept;
  Substitution vars, axes;
  for (const Ref<For>& l : inner) {
    if (!carries(l, false)) continue;
    if (carries(l, true))
      illegal(old.origin, "loop `{}` carries spatial and reduction axes of block `{}`",
              l->loop_var->name, old.name);
    kept.push_back(l);
    vars[l->loop_var.get()] = var(l->loop_var->name + "_init", l->loop_var->dtype);
  }
  Block::Parts start;
  start.name = name;
  std::vector<Expr> values;
  for (size_t a = 0; a < old.iter_vars.size(); ++a) {
    const IterVar& iter = old.iter_vars[a];
    if (iter.kind == IterKind::kReduce) continue;
    const Ref<Var> fresh = var(iter.var->name, iter.var->dtype);
    axes[iter.var.get()] = fresh;
    start.iter_vars.push_back({fresh, iter.domain, iter.kind});
    values.push_back(substitute(division.bindings[a], vars));
  }
  start.body = substitute(old.init, axes);
  // The start runs where the first step of the sum does: what carries it, and what carries no axis
  // at all, is at its first iteration.
  Expr predicate = at_first_iteration(inner, vars);
  if (is_owner) predicate = boolean(true);
  for (const IterVar& axis : division.axes)
    if (axis.kind == IterKind::kReduce) vars[axis.var.get()] = axis.domain.min;
  arith::Analyzer analyzer;
  for (size_t a = 0; a < old.iter_vars.size(); ++a)
    if (old.iter_vars[a].kind == IterKind::kReduce &&
        !analyzer.proves_equal(substitute(division.bindings[a], vars), old.iter_vars[a].domain.min))
      illegal(old.origin, "the first iteration is not known to be the first step of axis `{}`",
              old.iter_vars[a].var->name);
  for (const Expr& condition : division.inside)
    predicate = logical_and(predicate, substitute(condition, vars));
  predicate = analyzer.simplify(predicate);
  Stmt nest = make<BlockRealize>(std::move(values), predicate,
                                 with_accesses(make<Block>(std::move(start), old.origin)), origin);
  for (size_t i = kept.size(); i-- > 0;)
    nest = make<For>(downcast<Var>(vars.at(kept[i]->loop_var.get())), kept[i]->min,
                     substitute(kept[i]->extent, vars), kept[i]->kind, nest, kept[i]->annotations,
                     kept[i]->origin);
  return nest;
}

}  // namespace

BlockRV Schedule::blockize(const LoopRV& loop) {
  const Path at = path_of(loop);
  std::vector<Ref<For>> outer = loops_of(at), inner;
  outer.pop_back();  // `loop` itself
  Stmt stmt = at.target();
  while (const auto* node = stmt.as<For>()) {
    inner.push_back(ref_to(node));
    if (uses_any(node->min, outer) || uses_any(node->extent, outer))
      illegal(node->origin, "the range of loop `{}` depends on loops outside of the new block",
              node->loop_var->name);
    stmt = node->body;
  }
  const auto* realize = stmt.as<BlockRealize>();
  if (!realize)
    illegal(at.target()->origin, "loop `{}` holds {} blocks; expected loops around one",
            loop.var->name, realizes_in(at.target()).size());
  const Ref<Block> old = realize->block;
  Division division(at, outer, inner, *realize);
  Block::Parts parts, rest = old->parts();
  parts.name = unique_name(old->name + "_o");
  parts.iter_vars = division.axes;
  // The start moves out where part of the reduction is outside.
  const bool reduces_outside =
      std::any_of(division.axes.begin(), division.axes.end(),
                  [](const IterVar& iter) { return iter.kind == IterKind::kReduce; });
  if (old->init && reduces_outside) {
    parts.init = start_nest(*old, unique_name(old->name + "_init"), division, inner,
                            owns_its_writes(*this, *old), realize->origin);
    rest.init = {};
  }
  const Ref<Block> update =
      rest.init || !old->init ? old : with_accesses(with_parts(old, std::move(rest)));
  Expr predicate = boolean(true);
  for (const Expr& condition : division.inside) predicate = logical_and(predicate, condition);
  parts.body = make<BlockRealize>(division.bindings, predicate, update, realize->origin);
  for (size_t i = inner.size(); i-- > 0;)
    parts.body = inner[i]->with(inner[i]->min, inner[i]->extent, parts.body);
  const BlockRV made{parts.name};
  const Ref<Block> block = with_accesses(make<Block>(std::move(parts), old->origin));
  commit(
      replace(at, make<BlockRealize>(division.values, division.outside, block, realize->origin)));
  record("blockize", {loop}, {}, {made});
  return made;
}

}  // namespace tenon::tir
