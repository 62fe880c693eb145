// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/closed_blocks.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/arith/int_set.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

// Goes through what stands below the root block.
class Closer {
 public:
  bool failed = false;

  Stmt visit(const Stmt& stmt) {
    if (const auto* realize = stmt.as<BlockRealize>()) return block(*realize);
    if (const auto* bind = stmt.as<Bind>()) bound_.insert(bind->var.get());
    const auto* loop = stmt.as<For>();
    if (loop) loops_.push_back(loop);
    Stmt out = stmt;
    for (const Stmt& child : children_of(stmt)) {
      const Stmt next = visit(child);
      if (!next.same_as(child)) out = with_child(out, child, next);
    }
    if (loop) loops_.pop_back();
    return out;
  }

 private:
  Stmt block(const BlockRealize& realize) {
    Block::Parts parts = realize.block->parts();
    std::vector<Expr> values = realize.iter_values;
    bool changed = false;
    for (IterVar& iter : parts.iter_vars) {
      if (!names_loop(iter.domain.min) && !names_loop(iter.domain.extent)) continue;
      // Where a sum begins and ends follows from its domain.
      if (iter.kind == IterKind::kReduce) failed = true;
      iter.domain = relaxed(iter.domain);
      changed = true;
    }
    Substitution renamed;
    for (const For* loop : loops_) {
      if (!is_named(*loop->loop_var, parts)) continue;
      const auto axis = make<Var>(loop->loop_var->name, loop->loop_var->dtype, loop->origin);
      renamed[loop->loop_var.get()] = Expr(axis);
      parts.iter_vars.push_back({axis, relaxed({loop->min, loop->extent}), IterKind::kOpaque});
      values.emplace_back(loop->loop_var);
      changed = true;
    }
    if (!renamed.empty()) {
      if (parts.init) parts.init = substitute(parts.init, renamed);
      parts.body = substitute(parts.body, renamed);
      for (auto* regions : {&parts.reads, &parts.writes})
        for (Ref<BufferRegion>& region : *regions) region = substitute(region, renamed);
      for (MatchBuffer& match : parts.match_buffers)
        match.source = substitute(match.source, renamed);
    }
    walk<Var>(realize.block, [&](const Var& var) { failed = failed || bound_.count(&var); });
    if (!changed) return ref_to(&realize);
    return make<BlockRealize>(std::move(values), realize.predicate,
                              make<Block>(std::move(parts), realize.block->origin), realize.origin);
  }

  static bool is_named(const Var& var, const Block::Parts& parts) {
    const auto names = [&](const NodePtr& node) { return node && uses_var(node, &var); };
    return names(parts.init) || names(parts.body) ||
           std::any_of(parts.reads.begin(), parts.reads.end(), names) ||
           std::any_of(parts.writes.begin(), parts.writes.end(), names) ||
           std::any_of(parts.match_buffers.begin(), parts.match_buffers.end(),
                       [&](const MatchBuffer& match) { return names(match.source); });
  }

  bool names_loop(const Expr& expr) const {
    return std::any_of(loops_.begin(), loops_.end(),
                       [&](const For* loop) { return uses_var(expr, loop->loop_var.get()); });
  }

  // What holds the range in every iteration of the loops around.
  Range relaxed(const Range& range) {
    if (!names_loop(range.min) && !names_loop(range.extent)) return range;
    arith::Analyzer analyzer;
    arith::Domain domain;
    for (const For* loop : loops_)
      domain[loop->loop_var.get()] = arith::Interval::of(loop->min, loop->extent);
    const arith::Interval low = arith::evaluate(analyzer, range.min, domain);
    const arith::Interval high = arith::evaluate(analyzer, range.min + range.extent - 1, domain);
    if (!low.min || !high.max || names_loop(low.min) || names_loop(high.max)) {
      failed = true;
      return range;
    }
    const arith::Range whole = arith::to_range(analyzer, {low.min, high.max});
    return {whole.min, whole.extent};
  }

  std::vector<const For*> loops_;
  std::unordered_set<const Node*> bound_;
};

}  // namespace

Ref<PrimFunc> with_closed_blocks(const Ref<PrimFunc>& function) {
  const Block* root = root_block(*function);
  if (!root) return function;
  Closer closer;
  const Stmt body = closer.visit(root->body);
  if (closer.failed) return {};
  if (body.same_as(root->body)) return function;
  const auto* realize = function->body.as<BlockRealize>();
  Block::Parts parts = root->parts();
  parts.body = body;
  return function->with_body(make<BlockRealize>(realize->iter_values, realize->predicate,
                                                make<Block>(std::move(parts), root->origin),
                                                realize->origin));
}

}  // namespace tenon::tir
