// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/reduction_start.h"

#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::tir {

Expr first_iteration(const Block& block) {
  Expr first;
  for (const IterVar& axis : block.iter_vars) {
    if (axis.kind != IterKind::kReduce) continue;
    const Expr begins = eq(axis.var, cast(axis.var->dtype, axis.domain.min));
    first = first ? logical_and(first, begins) : begins;
  }
  return first ? first : boolean(true);
}

namespace {

enum class Carried : uint8_t { kReduction, kOtherAxes };

bool carries(const For& loop, const BlockRealize& realize, Carried what) {
  const auto& iters = realize.block->iter_vars;
  for (size_t i = 0; i < iters.size(); ++i)
    if ((iters[i].kind == IterKind::kReduce) == (what == Carried::kReduction) &&
        uses_var(realize.iter_values[i], loop.loop_var.get()))
      return true;
  return false;
}

bool is_plain(const Stmt& init) {
  if (const auto* list = init.as<Seq>())
    return std::all_of(list->stmts.begin(), list->stmts.end(), is_plain);
  return init.as<BufferStore>() != nullptr;
}

/// `inside`: the loops between the empty one and the block.
Stmt start_of(const For& empty, const std::vector<const For*>& inside,
              const BlockRealize& realize) {
  const Block& block = *realize.block;
  if (!block.init || !is_plain(block.init) || !carries(empty, realize, Carried::kReduction) ||
      carries(empty, realize, Carried::kOtherAxes))
    return {};
  Substitution values{{empty.loop_var.get(), empty.min}};
  std::vector<const Var*> left_out{empty.loop_var.get()};
  std::vector<const For*> kept;
  for (const For* loop : inside) {
    if (carries(*loop, realize, Carried::kOtherAxes)) {
      kept.push_back(loop);
      values[loop->loop_var.get()] = var(loop->loop_var->name, loop->loop_var->dtype);
    } else {
      left_out.push_back(loop->loop_var.get());
      values[loop->loop_var.get()] = substitute(loop->min, values);
    }
  }
  std::vector<Expr> conditions = conjuncts(realize.predicate);
  // A condition on a loop that does not run is one on the steps of the reduction.
  std::erase_if(conditions, [&](const Expr& condition) {
    return std::any_of(left_out.begin(), left_out.end(),
                       [&](const Var* loop) { return uses_var(condition, loop); });
  });
  Block::Parts parts;
  parts.name = block.name + "_init";
  Substitution axes;
  std::vector<Expr> others;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iter = block.iter_vars[i];
    if (iter.kind == IterKind::kReduce) {
      // Another loop over the reduction, further out, may be past its first step.
      conditions.push_back(
          eq(realize.iter_values[i], cast(realize.iter_values[i]->dtype, iter.domain.min)));
      continue;
    }
    const Ref<Var> axis = var(iter.var->name, iter.var->dtype);
    axes[iter.var.get()] = axis;
    parts.iter_vars.push_back({axis, iter.domain, iter.kind});
    others.push_back(substitute(realize.iter_values[i], values));
  }
  parts.body = substitute(block.init, axes);
  Expr predicate = boolean(true);
  for (const Expr& condition : conditions)
    predicate = logical_and(predicate, arith::simplify(substitute(condition, values)));
  Stmt nest = make<BlockRealize>(others, predicate,
                                 with_accesses(make<Block>(std::move(parts), block.origin)),
                                 realize.origin);
  for (size_t i = kept.size(); i-- > 0;)
    nest = make<For>(downcast<Var>(values.at(kept[i]->loop_var.get())),
                     substitute(kept[i]->min, values), substitute(kept[i]->extent, values),
                     ForKind::kSerial, nest, Attrs(), kept[i]->origin);
  return nest;
}

void collect(const For& empty, std::vector<const For*>& inside, const Stmt& stmt,
             std::vector<Stmt>& out) {
  if (const auto* list = stmt.as<Seq>()) {
    for (const Stmt& item : list->stmts) collect(empty, inside, item, out);
  } else if (const auto* loop = stmt.as<For>()) {
    inside.push_back(loop);
    collect(empty, inside, loop->body, out);
    inside.pop_back();
  } else if (const auto* realize = stmt.as<BlockRealize>()) {
    if (Stmt start = start_of(empty, inside, *realize)) out.push_back(start);
  }
}

}  // namespace

Stmt start_where_empty(const For& loop) {
  if (const auto extent = as_int(loop.extent); extent && *extent > 0) return {};
  std::vector<Stmt> starts;
  std::vector<const For*> inside;
  collect(loop, inside, loop.body, starts);
  if (starts.empty()) return {};
  return make<IfThenElse>(loop.extent <= imm(loop.extent->dtype, int64_t{0}),
                          seq(std::move(starts)), Stmt(), loop.origin);
}

}  // namespace tenon::tir
