// SPDX-License-Identifier: Apache-2.0
// EliminateCommonCalls: removes a call that repeats an earlier one whose inputs have not changed
// since.

#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_transforms.h"

namespace tenon::tir {

namespace {

using Buffers = std::unordered_set<const Node*>;

// A call whose result stands in its outputs.
struct Made {
  const CallTir* call;
  Buffers touched;  // what it reads and writes
};

const CallTir* call_in(const Stmt& stmt) {
  if (const auto* call = stmt.as<CallTir>()) return call;
  const auto* realize = stmt.as<BlockRealize>();
  if (!realize || !realize->block->iter_vars.empty() || !is_int(realize->predicate, 1) ||
      !realize->block->alloc_buffers.empty() || !realize->block->match_buffers.empty() ||
      realize->block->init)
    return nullptr;
  return realize->block->body.as<CallTir>();
}

class Eliminator {
 public:
  Eliminator(const std::string& name, const PrimFunc& function, CallEffects& effects)
      : name_(name), effects_(effects) {
    walk(function.body, [&](const NodePtr& node) {
      if (const auto* list = node.as<Seq>())
        for (const Stmt& stmt : list->stmts)
          if (const auto* alloc = stmt.as<AllocBuffer>()) home_[alloc->buffer.get()] = list;
      if (const auto* block = node.as<Block>()) {
        for (const Ref<Buffer>& buffer : block->alloc_buffers) home_[buffer.get()] = block;
      }
    });
    each_effect(function.body, effects_.callees(), [&](const StmtEffect& effect) {
      if (effect.memory && effect.writes()) ++writers_[effect.memory.get()];
      // Views and addresses: anything may happen to what they show.
      const auto* call = effect.node.as<Call>();
      if (effect.node.as<DeclBuffer>() || (effect.memory && effect.memory.as<Var>()) ||
          (call && call->is(IntrinsicId::kAddressOf)))
        has_pointers_ = true;
    });
  }

  Stmt run(const Stmt& body) {
    if (has_pointers_) return body;
    const Stmt next = downcast<StmtNode>(
        rewrite(NodePtr(body), [&](const NodePtr& node) -> std::optional<NodePtr> {
          if (const auto* list = node.as<Seq>()) return sequence(*list);
          return std::nullopt;
        }));
    if (renamed_.empty()) return next;
    // The second buffer is the first one: its definition goes, its uses are renamed.
    const Stmt undefined = downcast<StmtNode>(
        rewrite(NodePtr(next), [&](const NodePtr& node) -> std::optional<NodePtr> {
          if (const auto* block = node.as<Block>()) {
            Block::Parts parts = block->parts();
            std::erase_if(parts.alloc_buffers, [&](const Ref<Buffer>& buffer) {
              return renamed_.count(buffer.get()) != 0;
            });
            if (parts.alloc_buffers.size() == block->alloc_buffers.size()) return std::nullopt;
            return make<Block>(std::move(parts), block->origin);
          }
          if (const auto* alloc = node.as<AllocBuffer>();
              alloc && renamed_.count(alloc->buffer.get()))
            return make<Seq>(std::vector<Stmt>{});
          return std::nullopt;
        }));
    return substitute(undefined, renamed_);
  }

 private:
  std::optional<NodePtr> sequence(const Seq& list) {
    std::vector<Made> available;
    std::vector<Stmt> kept;
    for (const Stmt& stmt : list.stmts) {
      const CallTir* call = call_in(stmt);
      const bool is_candidate = call && suits(*call);
      if (is_candidate && repeats(*call, available)) {
        record({"EliminateCommonCalls",
                name_,
                "removed",
                "made-before",
                {},
                call->callee->name,
                call->origin});
        continue;
      }
      const Buffers written = written_by(stmt);
      std::erase_if(available, [&](const Made& made) {
        for (const Node* buffer : written)
          if (made.touched.count(buffer)) return true;
        return false;
      });
      kept.push_back(stmt);
      if (!is_candidate) continue;
      Made made{call, {}};
      walk(stmt, [&](const NodePtr& node) {
        if (node.as<Buffer>()) made.touched.insert(node.get());
      });
      available.push_back(std::move(made));
    }
    if (kept.size() == list.stmts.size()) return std::nullopt;
    return NodePtr(make<Seq>(std::move(kept), list.origin));
  }

  // Made twice it does the same twice.
  bool suits(const CallTir& call) {
    if (!effects_.is_pure(call.callee->name)) return false;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!call.args[i].as<BufferRegion>()) continue;
      const ParamEffect effect = effects_.of(call.callee->name, i);
      if (effect.reads && effect.writes) return false;
    }
    return true;
  }

  Buffers written_by(const Stmt& stmt) {
    Buffers out;
    each_effect(stmt, effects_.callees(), [&](const StmtEffect& effect) {
      if (effect.memory && effect.writes()) out.insert(effect.memory.get());
    });
    return out;
  }

  static bool is_whole(const BufferRegion& region) {
    return structural_equal(ref_to(&region), BufferRegion::whole(region.buffer));
  }

  bool repeats(const CallTir& call, const std::vector<Made>& available) {
    for (const Made& made : available) {
      if (made.call->callee->name != call.callee->name ||
          made.call->args.size() != call.args.size())
        continue;
      Substitution outputs;
      bool same = true;
      for (size_t i = 0; i < call.args.size() && same; ++i) {
        const NodePtr &first = made.call->args[i], &second = call.args[i];
        if (structural_equal(first, second)) continue;
        const auto *a = first.as<BufferRegion>(), *b = second.as<BufferRegion>();
        same = a && b && effects_.of(call.callee->name, i).is_out() && may_be_one(*a, *b);
        if (same) outputs.emplace(b->buffer.get(), a->buffer);
      }
      if (!same) continue;
      for (const auto& [from, to] : outputs) renamed_.emplace(from, to);
      return true;
    }
    return false;
  }

  // Both are the function's own, as a whole, and nobody else writes either.
  bool may_be_one(const BufferRegion& a, const BufferRegion& b) const {
    const auto sole = [&](const Ref<Buffer>& buffer) {
      const auto count = writers_.find(buffer.get());
      return home_.count(buffer.get()) && !renamed_.count(buffer.get()) &&
             count != writers_.end() && count->second == 1;
    };
    if (!sole(a.buffer) || !sole(b.buffer)) return false;
    if (home_.at(a.buffer.get()) != home_.at(b.buffer.get())) return false;
    return is_whole(a) && is_whole(b) && a.buffer->dtype == b.buffer->dtype &&
           a.buffer->scope == b.buffer->scope && a.buffer->is_compact() && b.buffer->is_compact() &&
           arith::proves_equal(a.buffer->shape, b.buffer->shape);
  }

  const std::string& name_;
  CallEffects& effects_;
  std::unordered_map<const Node*, const Node*> home_;  // of own buffers: where they are defined
  std::unordered_map<const Node*, int> writers_;
  bool has_pointers_ = false;
  Substitution renamed_;
};

}  // namespace

IRModule eliminate_common_calls(IRModule module) {
  CallEffects effects(module);
  IRModule out = module;
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<PrimFunc>(base);
    if (!function) continue;
    const Stmt body = Eliminator(name, *function, effects).run(function->body);
    if (!body.same_as(function->body)) out.set(name, function->with_body(body));
  }
  return out;
}

}  // namespace tenon::tir
