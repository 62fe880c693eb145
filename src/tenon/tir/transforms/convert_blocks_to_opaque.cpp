// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

class Converter final : public Rewriter {
 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* realize = node.as<BlockRealize>();
    if (!realize || realize->block->iter_vars.empty()) return rewrite_members(node);
    // A block that stands at two places has other values there: its axes become new ones.
    if (!seen_.insert(realize->block.get()).second)
      return (*this)(make<BlockRealize>(realize->iter_values, realize->predicate,
                                        renew_definitions(realize->block), realize->origin));
    const Block& block = *realize->block;
    if (block.init)
      throw CompileError(kWrongForm, block.origin,
                         "block `{}` has an init; LowerInitBlock runs first", block.name);
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const Ref<Var>& axis = block.iter_vars[i].var;
      replace(axis, tenon::cast(axis->dtype, (*this)(realize->iter_values[i])));
    }
    Block::Parts parts = block.parts();
    parts.iter_vars.clear();
    const auto next = (*this)(make<Block>(std::move(parts), block.origin));
    return make<BlockRealize>(std::vector<Expr>{}, (*this)(realize->predicate), next,
                              node.as<BlockRealize>()->origin);
  }

 private:
  std::unordered_set<const Node*> seen_;
};

}  // namespace

IRModule convert_blocks_to_opaque(IRModule module) {
  return map_kernels(std::move(module),
                     [](const Ref<PrimFunc>& function) { return Converter()(function); });
}

}  // namespace tenon::tir
