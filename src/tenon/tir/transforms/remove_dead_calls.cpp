// RemoveDeadCalls: a call that writes only what nobody reads afterwards goes, with the buffers that
// nobody uses then.

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
class Reads {
 public:
  Reads(const PrimFunc& function, CallEffects& effects) : effects_(effects) {
    walk(function.body, [&](const NodePtr& node) {
      if (const auto* block = node.as<Block>()) {
        for (const Ref<Buffer>& buffer : block->alloc_buffers)
          data_[buffer->data.get()] = buffer.get();
      } else if (const auto* alloc = node.as<AllocBuffer>()) {
        data_[alloc->buffer->data.get()] = alloc->buffer.get();
      }
    });
    visit(function.body);
  }
  Buffers found;

 private:
  void visit(const NodePtr& node) {
    if (!node) return;
    if (const auto* block = node.as<Block>()) {  // its lists follow from the body
      for (const MatchBuffer& match : block->match_buffers)
        found.insert(match.source->buffer.get());
      visit(block->init);
      return visit(block->body);
    }
    const auto call = [&](const GlobalVar& callee, const std::vector<NodePtr>& args) {
      for (size_t i = 0; i < args.size(); ++i) {
        const auto* region = args[i].as<BufferRegion>();
        if (!region) {
          visit(args[i]);
          continue;
        }
        if (effects_.of(callee.name, i).reads) found.insert(region->buffer.get());
        for (const Range& range : region->region) {
          visit(range.min);
          visit(range.extent);
        }
      }
    };
    if (const auto* c = node.as<CallTir>()) return call(*c->callee, c->args);
    if (const auto* c = node.as<Call>(); c && c->callee) return call(*c->callee, c->args);
    if (const auto* store = node.as<BufferStore>()) {
      visit(store->value);
      for (const Expr& index : store->indices) visit(index);
      return;
    }
    if (const auto* load = node.as<BufferLoad>()) found.insert(load->buffer.get());
    if (const auto* region = node.as<BufferRegion>()) found.insert(region->buffer.get());
    if (const auto* buffer = node.as<Buffer>()) {
      found.insert(buffer);
      return;
    }
    if (const auto it = data_.find(node.get()); it != data_.end()) found.insert(it->second);
    each_member(node, [&](const NodePtr& member, FieldRole role) {
      if (role == FieldRole::kUse) visit(member);
    });
  }

  CallEffects& effects_;
  std::unordered_map<const Node*, const Node*> data_;  // of pointers to their buffers
};

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
    const Buffers read = Reads(*function, effects).found;
    const Stmt body = downcast<StmtNode>(
        rewrite(NodePtr(function->body), [&](const NodePtr& node) -> std::optional<NodePtr> {
          const auto* call = node.as<CallTir>();
          if (!call || !effects.is_pure(call->callee->name)) return std::nullopt;
          for (size_t i = 0; i < call->args.size(); ++i) {
            const auto* region = call->args[i].as<BufferRegion>();
            if (!region || !effects.of(call->callee->name, i).writes) continue;
            if (!own.count(region->buffer.get()) || read.count(region->buffer.get()))
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
