// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/schedule_in_stretches.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/tir/analysis/pipeline.h"
#include "tenon/tir/analysis/tree.h"
#include "tenon/tir/schedule/closed_blocks.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

// Calls and pipelines order what is around them: they stay where their author put them.
static bool is_ordered(const NodePtr& root) {
  bool found = false;
  walk_if(root, [&](const NodePtr& node) {
    if (const auto* loop = node.as<For>()) found |= loop->annotations.contains(kPipelineStage);
    if (const auto* call = node.as<Call>())
      found |= !call->op || call->is(IntrinsicId::kCallExtern) ||
               call->is(IntrinsicId::kCallPacked) || call->is(IntrinsicId::kCallCpacked);
    found |= node.as<CallTir>() != nullptr;
    return !found;
  });
  return found;
}
namespace {

/// Statements of a root block that nothing orders, one after the other: a function of its own.
class Run {
 public:
  /// \param rest  the other statements
  Run(const PrimFunc& function, const Block& root, std::vector<Stmt> stmts,
      const std::vector<Stmt>& rest)
      : stmts_(std::move(stmts)) {
    std::unordered_set<const Node*> outside;
    for (const Stmt& stmt : rest)
      walk(stmt, [&](const NodePtr& node) { outside.insert(node.get()); });
    std::unordered_set<const Node*> seen, defined;
    const auto see = [&](const Ref<Buffer>& buffer) {
      if (!seen.insert(buffer.get()).second) return;
      const bool is_own = !outside.count(buffer.get()) && !outside.count(buffer->data.get()) &&
                          std::any_of(root.alloc_buffers.begin(), root.alloc_buffers.end(),
                                      [&](const Ref<Buffer>& own) { return own.same_as(buffer); });
      (is_own ? own_ : given_).push_back(buffer);
    };
    for (const Ref<Buffer>& buffer : function.buffers)
      if (buffer) defined.insert(buffer.get());
    std::vector<Ref<Var>> free;
    for (const Stmt& stmt : stmts_)
      walk(stmt, [&](const NodePtr& node) {
        if (const auto* load = node.as<BufferLoad>()) see(load->buffer);
        if (const auto* store = node.as<BufferStore>()) see(store->buffer);
        if (const auto* region = node.as<BufferRegion>()) see(region->buffer);
        if (node.as<AllocBuffer>() || node.as<DeclBuffer>() || node.as<Bind>() || node.as<Let>())
          suits_ = false;  // definitions of other statements
        if (const auto* loop = node.as<For>()) defined.insert(loop->loop_var.get());
        if (const auto* block = node.as<Block>())
          for (const IterVar& iter : block->iter_vars) defined.insert(iter.var.get());
        if (const auto* var = node.as<Var>(); var && seen.insert(var).second)
          free.push_back(ref_to(var));
      });
    // What stands beside blocks is not seen by a schedule.
    for (const Stmt& stmt : stmts_)
      walk_if(stmt, [&](const NodePtr& node) {
        suits_ = suits_ && !node.as<BufferStore>() && !node.as<Evaluate>();
        return !node.as<BlockRealize>();
      });
    for (const Ref<Buffer>& buffer : given_) {
      params_.push_back(make<Var>(buffer->name + "_handle", kHandle));
      buffers_.push_back(buffer);
    }
    // Sizes that no shape defines, and scalars.
    std::unordered_set<const Node*> shaped;
    for (const Ref<Buffer>& buffer : given_)
      for (const std::vector<Expr>* exprs : {&buffer->shape, &buffer->strides})
        for (const Expr& expr : *exprs)
          if (expr.as<Var>()) shaped.insert(expr.get());
    for (const Ref<Var>& var : free) {
      if (defined.count(var.get()) || shaped.count(var.get())) continue;
      if (var->dtype.is_handle()) {
        suits_ &= std::none_of(given_.begin(), given_.end(), [&](const Ref<Buffer>& buffer) {
          return buffer->data.same_as(var);
        });
        continue;
      }
      params_.push_back(var);
      buffers_.emplace_back();
    }
  }

  /// Scheduled, in the place of what it was; its own buffers join `allocated`. As it was where it
  /// has no default schedule.
  std::vector<Stmt> scheduled(const Target& target, std::vector<Ref<Buffer>>& allocated,
                              NameSupply& names) const {
    if (suits_) {
      Block::Parts parts;
      parts.name = "root";
      parts.alloc_buffers = own_;
      parts.body = seq(stmts_);
      const Stmt body =
          make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(std::move(parts)));
      const auto alone = make<PrimFunc>(params_, buffers_, body);
      const Ref<PrimFunc> done =
          with_closed_blocks(alone) ? schedule_by_default(alone, target).func() : alone;
      const Block* root = root_block(*done);
      const bool same_parameters =
          std::equal(buffers_.begin(), buffers_.end(), done->buffers.begin(), done->buffers.end(),
                     [](const auto& a, const auto& b) { return a.same_as(b); });
      if (root && same_parameters && root->annotations.empty()) {
        allocated.insert(allocated.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
        return stmts_of(with_unique_block_names(root->body, names));
      }
    }
    allocated.insert(allocated.end(), own_.begin(), own_.end());
    return stmts_of(with_unique_block_names(seq(stmts_), names));
  }

 private:
  std::vector<Stmt> stmts_;
  std::vector<Ref<Buffer>> own_, given_;
  std::vector<Ref<Var>> params_;
  std::vector<Ref<Buffer>> buffers_;
  bool suits_ = true;
};

}  // namespace

// Blocks that are scheduled together: every primitive looks for its block among them all.
static constexpr size_t kMostTogether = 256;

bool has_stretches(const PrimFunc& function) {
  return is_ordered(function.body) || stmts_of(root_block(function)->body).size() > kMostTogether;
}

Ref<PrimFunc> schedule_in_stretches(const Ref<PrimFunc>& function, const Target& target) {
  const Block& root = *root_block(*function);
  const auto* realize = function->body.as<BlockRealize>();
  if (!realize || root.init || !root.match_buffers.empty()) return function;
  const std::vector<Stmt> all = stmts_of(root.body);
  std::vector<Stmt> out;
  std::vector<Ref<Buffer>> allocated;
  NameSupply names;
  names.reserve(root.name);
  const auto is_free = [&](const Stmt& stmt) {
    return (stmt.as<For>() || stmt.as<BlockRealize>()) && !is_ordered(stmt);
  };
  for (const Stmt& stmt : all)
    if (!is_free(stmt)) reserve_block_names(stmt, names);
  for (size_t i = 0; i < all.size();) {
    if (!is_free(all[i])) {
      out.push_back(all[i++]);
      continue;
    }
    size_t end = i;
    while (end < all.size() && end - i < kMostTogether && is_free(all[end])) ++end;
    std::vector<Stmt> stmts(all.begin() + static_cast<std::ptrdiff_t>(i),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<Stmt> rest(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i));
    rest.insert(rest.end(), all.begin() + static_cast<std::ptrdiff_t>(end), all.end());
    const Run run(*function, root, std::move(stmts), rest);
    for (const Stmt& stmt : run.scheduled(target, allocated, names)) out.push_back(stmt);
    i = end;
  }
  // What several stretches use, and what calls do, is the function's as before.
  std::unordered_set<const Node*> known;
  for (const Ref<Buffer>& buffer : allocated) known.insert(buffer.get());
  const Stmt body = seq(std::move(out));
  std::unordered_set<const Node*> used;
  walk(body, [&](const NodePtr& node) { used.insert(node.get()); });
  Block::Parts parts = root.parts();
  std::vector<Ref<Buffer>> buffers;
  for (const Ref<Buffer>& buffer : parts.alloc_buffers)
    if (known.count(buffer.get()) || used.count(buffer.get())) {
      buffers.push_back(buffer);
      known.erase(buffer.get());
    }
  for (const Ref<Buffer>& buffer : allocated)
    if (known.erase(buffer.get())) buffers.push_back(buffer);
  parts.alloc_buffers = std::move(buffers);
  parts.body = body;
  return function->with_body(make<BlockRealize>(realize->iter_values, realize->predicate,
                                                make<Block>(std::move(parts), root.origin),
                                                realize->origin));
}

}  // namespace tenon::tir
