// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

class Lowerer final : public Rewriter {
 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* realize = node.as<BlockRealize>()) return lowered(*realize);
    const auto* loop = node.as<For>();
    if (loop && is_int(loop->extent, 1) && loop->kind != ForKind::kThreadBinding) {
      replace(loop->loop_var, (*this)(loop->min));
      return (*this)(loop->body);
    }
    return rewrite_members(node);
  }

 private:
  NodePtr lowered(const BlockRealize& realize) {
    const Block& block = *realize.block;
    if (!block.iter_vars.empty() || block.init || !block.match_buffers.empty())
      throw CompileError(kWrongForm, block.origin,
                         "block `{}` has axes, an init or views; passes that remove them run first",
                         block.name);
    std::vector<Stmt> stmts;
    for (const Ref<Buffer>& buffer : block.alloc_buffers)
      stmts.push_back(
          downcast<StmtNode>((*this)(NodePtr(make<AllocBuffer>(buffer, Attrs{}, buffer->origin)))));
    stmts.push_back((*this)(block.body));
    const Stmt body = seq(std::move(stmts));
    const Expr predicate = (*this)(realize.predicate);
    if (is_int(predicate, 1)) return body;
    return make<IfThenElse>(predicate, body, Stmt(), realize.origin);
  }
};

}  // namespace

IRModule lower_opaque_block(IRModule module) {
  return map_kernels(std::move(module),
                     [](const Ref<PrimFunc>& function) { return Lowerer()(function); });
}

}  // namespace tenon::tir
