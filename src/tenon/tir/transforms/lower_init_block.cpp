// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/reduction_start.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

static Stmt with_guarded_init(const Block& block) {
  const Expr first = first_iteration(block);
  const Stmt init = is_int(first, 1)
                        ? block.init
                        : Stmt(make<IfThenElse>(first, block.init, Stmt(), block.init->origin));
  return seq({init, block.body});
}

IRModule lower_init_block(IRModule module) {
  return map_kernels(std::move(module), [](const Ref<PrimFunc>& function) {
    // First while inits are still there: what a loop that may be empty would leave unwritten.
    const Ref<PrimFunc> started =
        rewrite(function, [](const NodePtr& node) -> std::optional<NodePtr> {
          const auto* loop = node.as<For>();
          const Stmt start = loop ? start_where_empty(*loop) : Stmt();
          if (!start) return std::nullopt;
          return NodePtr(seq({start, ref_to(loop)}));
        });
    return rewrite(started, [](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* block = node.as<Block>();
      if (!block || !block->init) return std::nullopt;
      Block::Parts parts = block->parts();
      parts.body = with_guarded_init(*block);
      parts.init = {};
      return make<Block>(std::move(parts), block->origin);
    });
  });
}

}  // namespace tenon::tir
