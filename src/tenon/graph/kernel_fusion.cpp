// SPDX-License-Identifier: Apache-2.0
// What the structure of a kernel says about schedules and fusion.
#include <algorithm>
#include <unordered_set>

#include "tenon/graph/kernels.h"

namespace tenon::graph {

namespace {

using tir::Block;
using tir::BlockRealize;
using tir::BufferLoad;
using tir::BufferStore;
using tir::IterKind;

struct Structure {
  bool scheduled = false;   // something that a definition does not have
  bool only_blocks = true;  // every store stands in a block
  std::vector<const Block*> blocks;
};

void look(const tir::Stmt& stmt, bool in_block, Structure& out) {
  if (!stmt) return;
  if (const auto* sequence = stmt.as<tir::Seq>()) {
    for (const tir::Stmt& item : sequence->stmts) look(item, in_block, out);
  } else if (const auto* loop = stmt.as<tir::For>()) {
    out.scheduled |= loop->kind != tir::ForKind::kSerial || !loop->annotations.empty();
    look(loop->body, in_block, out);
  } else if (const auto* realize = stmt.as<BlockRealize>()) {
    const Block& block = *realize->block;
    for (const Expr& value : realize->iter_values)
      out.scheduled |= !value.as<tenon::Var>() && !value.as<IntImm>();
    out.scheduled |= !is_int(realize->predicate, 1) || !block.annotations.empty();
    const bool is_root = block.iter_vars.empty() && block.name == "root" && !in_block;
    if (!is_root) out.blocks.push_back(&block);
    look(block.init, true, out);
    look(block.body, !is_root, out);
  } else if (const auto* branch = stmt.as<tir::IfThenElse>()) {
    look(branch->then_case, in_block, out);
    look(branch->else_case, in_block, out);
  } else if (const auto* loop = stmt.as<tir::While>()) {
    look(loop->body, in_block, out);
    out.only_blocks &= in_block;
  } else if (const auto* attr = stmt.as<tir::AttrStmt>()) {
    out.scheduled = true;
    look(attr->body, in_block, out);
  } else {
    out.only_blocks &= in_block;
    if (const auto* store = stmt.as<BufferStore>())
      out.scheduled |= store->value->dtype.is_vector() && !store->buffer->dtype.is_vector();
  }
}

// One block by its accesses: how the place that it reads follows from the place that it writes.
FusionKind kind_of(const Block& block) {
  const auto* store = block.body.as<BufferStore>();
  if (!store) return FusionKind::kOpaque;
  bool reduces = false;
  for (const tir::IterVar& iter : block.iter_vars) {
    if (iter.kind == IterKind::kOpaque || iter.kind == IterKind::kScan) return FusionKind::kOpaque;
    reduces |= iter.kind == IterKind::kReduce;
  }
  std::unordered_set<const Node*> written;
  for (const Expr& index : store->indices) {
    if (index.as<IntImm>()) continue;
    if (!index.as<tenon::Var>() || !written.insert(index.get()).second) return FusionKind::kOpaque;
  }
  FusionKind kind = FusionKind::kElementwise;
  int loads = 0;
  walk<BufferLoad>(store->value, [&](const BufferLoad& load) {
    if (load.buffer.same_as(store->buffer)) return;
    ++loads;
    bool same = load.indices.size() == store->indices.size(), subset = true;
    size_t last = 0;
    for (size_t i = 0; i < load.indices.size(); ++i) {
      same = same && load.indices[i].same_as(store->indices[i]);
      if (load.indices[i].as<IntImm>()) continue;
      const auto at = std::find_if(store->indices.begin(), store->indices.end(),
                                   [&](const Expr& e) { return e.same_as(load.indices[i]); });
      const size_t position = static_cast<size_t>(at - store->indices.begin()) + 1;
      subset = subset && at != store->indices.end() && position > last;
      last = position;
    }
    if (same) return;
    kind = std::max(kind, subset ? FusionKind::kBroadcast : FusionKind::kInjective);
  });
  if (reduces) return loads >= 2 ? FusionKind::kContraction : FusionKind::kReduction;
  return kind;
}

Structure structure_of(const tir::PrimFunc& function) {
  Structure out;
  out.scheduled = function.attrs.flag("tir.is_scheduled");
  look(function.body, false, out);
  return out;
}

}  // namespace

bool is_scheduled(const tir::PrimFunc& function) { return structure_of(function).scheduled; }

FusionKind fusion_of(const tir::PrimFunc& function, const OpDef* op) {
  const Structure structure = structure_of(function);
  if (structure.scheduled || !structure.only_blocks || !tir::root_block(function))
    return FusionKind::kOpaque;
  if (op) return op->fusion;
  return structure.blocks.size() == 1 ? kind_of(*structure.blocks[0]) : FusionKind::kOpaque;
}

}  // namespace tenon::graph
