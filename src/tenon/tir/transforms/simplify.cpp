// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

// What is known depends on the place: loop bounds and conditions around it.
class Simplifier final : public Rewriter {
 public:
  Simplifier() { memoise_ = false; }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* expr = node.as<ExprNode>()) return simplified(ref_to(expr));
    if (node.as<StmtNode>()) memo_.clear();  // other loops and conditions
    if (const auto* loop = node.as<For>()) {
      const Expr min = simplified(loop->min), extent = simplified(loop->extent);
      if (const auto count = as_int(extent); count && *count <= 0) return nothing();
      const auto scope = analyzer_.enter();
      analyzer_.bind(loop->loop_var, min, extent);
      const Stmt body = (*this)(loop->body);
      if (min.same_as(loop->min) && extent.same_as(loop->extent) && body.same_as(loop->body))
        return node;
      return loop->with(min, extent, body);
    }
    if (const auto* branch = node.as<IfThenElse>()) {
      const Expr condition = simplified(branch->condition);
      if (const auto known = as_int(condition)) {
        const Stmt taken = *known ? branch->then_case : branch->else_case;
        return taken ? NodePtr((*this)(taken)) : nothing();
      }
      Stmt then_case, else_case;
      {
        const auto scope = assume(condition);
        then_case = (*this)(branch->then_case);
      }
      if (branch->else_case) {
        const auto scope = assume(logical_not(condition));
        else_case = (*this)(branch->else_case);
      }
      return make<IfThenElse>(condition, then_case, else_case, branch->origin);
    }
    if (const auto* realize = node.as<BlockRealize>()) {
      std::vector<Expr> values;
      for (const Expr& value : realize->iter_values) values.push_back(simplified(value));
      const Expr predicate = simplified(realize->predicate);
      const auto scope = assume(predicate);
      return make<BlockRealize>(std::move(values), predicate, (*this)(realize->block),
                                realize->origin);
    }
    if (const auto* block = node.as<Block>()) {
      const auto scope = analyzer_.enter();
      for (const IterVar& iter : block->iter_vars) analyzer_.bind(iter.var, iter.domain);
      return rewrite_members(node);
    }
    return rewrite_members(node);
  }
  NodePtr rewrite_definition(const NodePtr& node) override {
    NodePtr next = Rewriter::rewrite_definition(node);
    if (!next.same_as(node)) changed_.insert_or_assign(node.get(), next);
    return next;
  }

 private:
  // A condition on memory may cease to hold when the statements under it write.
  arith::Analyzer::Scope assume(const Expr& condition) {
    bool reads = false;
    walk<BufferLoad>(condition, [&](const BufferLoad&) { reads = true; });
    return reads ? analyzer_.enter() : analyzer_.enter(condition);
  }

  static NodePtr nothing() { return make<Seq>(std::vector<Stmt>{}); }

  // Integer and bool parts are brought to canonical form; floating-point arithmetic around them
  // stays as it is.
  Expr simplified(const Expr& expr) {
    if (expr->dtype.is_integer() || expr->dtype.is_bool())
      return analyzer_.simplify(
          changed_.empty() ? expr : downcast<ExprNode>(substitute(NodePtr(expr), changed_)));
    if (expr.as<Var>() || expr.as<FloatImm>()) return expr;
    const auto known = memo_.find(expr.get());
    if (known != memo_.end()) return known->second.second;
    const Expr next = downcast<ExprNode>(in_floats(expr));
    memo_.emplace(expr.get(), std::pair(expr, next));
    return next;
  }

  // What holds in one branch alone is forgotten at its end.
  Expr simplified_under(const Expr& condition, const Expr& expr) {
    const auto outside = memo_;
    memo_.clear();
    const auto scope = assume(condition);
    const Expr next = simplified(expr);
    memo_ = outside;
    return next;
  }

  NodePtr in_floats(const NodePtr& node) {
    if (const auto* call = node.as<Call>(); call && call->is(IntrinsicId::kIfThenElse)) {
      const Expr condition = simplified(call->arg(0));
      if (const auto known = as_int(condition); known && condition->dtype.is_scalar())
        return simplified(call->arg(*known ? 1 : 2));
      const Expr a = simplified_under(condition, call->arg(1));
      const Expr b = simplified_under(logical_not(condition), call->arg(2));
      return make<Call>(call->op, std::vector<NodePtr>{condition, a, b}, call->result,
                        call->origin);
    }
    return rewrite_members(node);
  }

  arith::Analyzer analyzer_;
  Substitution changed_;  // buffers whose dimensions became simpler; the analyzer follows no uses
  std::unordered_map<const Node*, std::pair<Expr, Expr>> memo_;  // of one statement
};

}  // namespace

Ref<PrimFunc> simplified(const Ref<PrimFunc>& function) {
  return function->with_body(Simplifier()(function->body));
}

IRModule simplify(IRModule module) { return map_prim_funcs(std::move(module), simplified); }

}  // namespace tenon::tir
