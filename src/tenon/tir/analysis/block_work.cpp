// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/block_work.h"

#include <algorithm>

#include "tenon/arith/analyzer.h"

namespace tenon::tir {

static bool has_load(const Expr& expr) {
  bool found = false;
  walk<BufferLoad>(expr, [&](const BufferLoad&) { found = true; });
  return found;
}

static bool is_multiply_add(const BufferStore& store) {
  const auto* sum = store.value.as<Binary>();
  if (!sum || sum->op != BinaryOp::kAdd) return false;
  for (const auto& [own, other] : {std::pair(sum->lhs, sum->rhs), std::pair(sum->rhs, sum->lhs)}) {
    const auto* load = own.as<BufferLoad>();
    if (!load || !load->buffer.same_as(store.buffer)) continue;
    bool multiplies = false;
    walk<Binary>(other, [&](const Binary& product) {
      multiplies |= product.op == BinaryOp::kMul && has_load(product.lhs) && has_load(product.rhs);
    });
    if (multiplies) return true;
  }
  return false;
}

// A load, a constant, or a choice among such: padding.
static bool only_moves(const NodePtr& value) {
  if (value.as<BufferLoad>() || value.as<IntImm>() || value.as<FloatImm>()) return true;
  if (const auto* select = value.as<Select>())
    return only_moves(select->true_value) && only_moves(select->false_value);
  const auto* call = value.as<Call>();
  return call && call->is(IntrinsicId::kIfThenElse) && call->args.size() == 3 &&
         only_moves(call->args[1]) && only_moves(call->args[2]);
}

BlockWork work_of(const Block& block) {
  BlockWork work;
  work.points = 1;
  for (const IterVar& axis : block.iter_vars)
    if (const auto extent = as_int(arith::simplify(axis.domain.extent)))
      work.points *= static_cast<double>(*extent);
  walk(block.body, [&](const NodePtr& node) {
    if (const auto* store = node.as<BufferStore>()) {
      if (is_multiply_add(*store))
        work.kind = WorkKind::kContracts;
      else if (work.kind == WorkKind::kMoves && !only_moves(store->value))
        work.kind = WorkKind::kComputes;
    } else if (node.as<CallTir>() || node.as<Evaluate>()) {
      work.kind = std::max(work.kind, WorkKind::kComputes);
    }
  });
  return work;
}

std::vector<Ref<Block>> blocks_of(const PrimFunc& function) {
  std::vector<Ref<Block>> out;
  const Block* root = root_block(function);
  if (!root) return out;
  walk_if(root->body, [&](const NodePtr& node) {
    const auto* block = node.as<Block>();
    if (block) out.push_back(ref_to(block));
    return !block && !node.as<ExprNode>();
  });
  return out;
}

}  // namespace tenon::tir
