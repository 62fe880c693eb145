// SPDX-License-Identifier: Apache-2.0
// RemoveDeadCalls: removes calls whose outputs nobody reads afterwards, with the buffers that are
// then unused.

#include <unordered_set>

#include "tenon/support/remarks.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_transforms.h"

namespace tenon::tir {

namespace {

using Buffers = std::unordered_set<const Node*>;

// Buffers that the function allocates itself.
Buffers allocated_in(const PrimFunc& function) {
  Buffers out;
  walk(function.body, [&](const NodePtr& node) {
    if (const auto* block = node.as<Block>())
      for (const Ref<Buffer>& buffer : block->alloc_buffers) out.insert(buffer.get());
    if (const auto* alloc = node.as<AllocBuffer>()) out.insert(alloc->buffer.get());
  });
  return out;
}

// Buffers of which something is read, or which something else can see.
Buffers read_in(const PrimFunc& function, CallEffects& effects) {
  Buffers found;
  each_effect(function.body, effects.callees(), [&](const StmtEffect& effect) {
    if (effect.memory && effect.reads()) found.insert(effect.memory.get());
  });
  return found;
}

bool is_empty(const Stmt& stmt) {
  const auto* list = stmt.as<Seq>();
  return !stmt || (list && list->stmts.empty());
}

// Blocks state no more than they still do, and those that do nothing go.
Stmt tidied(const Stmt& body) {
  return downcast<StmtNode>(
      rewrite(NodePtr(body), [](const NodePtr& node) -> std::optional<NodePtr> {
        if (const auto* block = node.as<Block>()) {
          Buffers used;
          for (const NodePtr& part : {NodePtr(block->init), NodePtr(block->body)})
            if (part)
              walk(part, [&](const NodePtr& inner) {
                if (inner.as<Buffer>()) used.insert(inner.get());
                if (inner.as<Var>()) used.insert(inner.get());
              });
          for (const MatchBuffer& match : block->match_buffers)
            used.insert(match.source->buffer.get());
          Block::Parts parts = block->parts();
          const size_t before =
              parts.reads.size() + parts.writes.size() + parts.alloc_buffers.size();
          const auto stale = [&](const Ref<BufferRegion>& region) {
            return !used.count(region->buffer.get());
          };
          std::erase_if(parts.reads, stale);
          std::erase_if(parts.writes, stale);
          std::erase_if(parts.alloc_buffers, [&](const Ref<Buffer>& buffer) {
            return !used.count(buffer.get()) && !used.count(buffer->data.get());
          });
          if (parts.reads.size() + parts.writes.size() + parts.alloc_buffers.size() == before)
            return std::nullopt;
          return make<Block>(std::move(parts), block->origin);
        }
        static const Stmt kNothing = make<Seq>(std::vector<Stmt>{});
        if (const auto* realize = node.as<BlockRealize>())
          if (is_empty(realize->block->body) && !realize->block->init &&
              realize->block->name != "root")
            return kNothing;
        if (const auto* loop = node.as<For>())
          if (is_empty(loop->body)) return kNothing;
        if (const auto* sequence = node.as<Seq>(); sequence && sequence->stmts.size() == 1)
          return sequence->stmts[0];
        return std::nullopt;
      }));
}

Ref<PrimFunc> cleaned(const std::string& name, Ref<PrimFunc> function, CallEffects& effects) {
  const Buffers own = allocated_in(*function);
  if (own.empty()) return function;
  for (bool changed = true; changed;) {
    changed = false;
    const Buffers read = read_in(*function, effects);
    const Stmt body = downcast<StmtNode>(
        rewrite(NodePtr(function->body), [&](const NodePtr& node) -> std::optional<NodePtr> {
          const auto* call = node.as<CallTir>();
          if (!call || !effects.is_pure(call->callee->name)) return std::nullopt;
          for (size_t i = 0; i < call->args.size(); ++i) {
            const auto* region = call->args[i].as<BufferRegion>();
            if (!region || !effects.of(call->callee->name, i).writes) continue;
            const Buffer& buffer = *region->buffer;
            if (!own.count(&buffer) || read.count(&buffer) || read.count(buffer.data.get()))
              return std::nullopt;
          }
          changed = true;
          record({"RemoveDeadCalls",
                  name,
                  "removed",
                  "outputs-unused",
                  {},
                  call->callee->name,
                  call->origin});
          return make<Seq>(std::vector<Stmt>{});
        }));
    if (changed) function = function->with_body(tidied(body));
  }
  return function;
}

}  // namespace

IRModule remove_dead_calls(IRModule module) {
  CallEffects effects(module);
  IRModule out = module;
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<PrimFunc>(base);
    if (!function) continue;
    const Ref<PrimFunc> next = cleaned(name, function, effects);
    if (!next.same_as(function)) out.set(name, next);
  }
  return out;
}

}  // namespace tenon::tir
