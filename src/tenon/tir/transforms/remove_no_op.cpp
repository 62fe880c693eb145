// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/transforms.h"

namespace tenon::tir {

static bool is_empty(const Stmt& stmt) {
  if (!stmt) return true;
  const auto* sequence = stmt.as<Seq>();
  return sequence && sequence->stmts.empty();
}

static bool is_pure(const Expr& expr) {
  bool pure = true;
  walk<Call>(expr, [&](const Call& call) {
    pure = pure && call.op && call.op->effect != Effect::kOpaque;
  });
  return pure;
}

namespace {

// Of statements alone: expressions, which are most of a kernel, hold none.
class Remover final : public Rewriter {
 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (node.as<ExprNode>()) return node;
    NodePtr now = rewrite_members(node);
    return shortened(now).value_or(now);
  }

 private:
  static std::optional<NodePtr> shortened(const NodePtr& node) {
    static const Stmt kNothing = make<Seq>(std::vector<Stmt>{});
    if (const auto* loop = node.as<For>()) {
      const auto extent = as_int(loop->extent);
      if (is_empty(loop->body) || (extent && *extent <= 0)) return kNothing;
    }
    if (const auto* branch = node.as<IfThenElse>()) {
      if (const auto known = as_int(branch->condition))
        return *known ? branch->then_case : branch->else_case ? branch->else_case : kNothing;
      if (is_empty(branch->then_case) && is_empty(branch->else_case)) return kNothing;
    }
    // What is left of a sequence of which the rest went.
    if (const auto* sequence = node.as<Seq>(); sequence && sequence->stmts.size() == 1)
      return sequence->stmts[0];
    if (const auto* attr = node.as<AttrStmt>(); attr && is_empty(attr->body)) return kNothing;
    if (const auto* evaluate = node.as<Evaluate>(); evaluate && is_pure(evaluate->value))
      return kNothing;
    return std::nullopt;
  }
};

}  // namespace

Ref<PrimFunc> without_no_ops(const Ref<PrimFunc>& function) { return Remover()(function); }

IRModule remove_no_op(IRModule module) { return map_kernels(std::move(module), without_no_ops); }

}  // namespace tenon::tir
