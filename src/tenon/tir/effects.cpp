// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/effects.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::tir {

ParamEffect unknown_callee(const std::string&, size_t, const Buffer&) {
  return {.reads = true, .writes = true};
}

const BufferLoad* place_given_to(const Call& call) {
  const bool takes_place = call.is(IntrinsicId::kAddressOf) || call.is(IntrinsicId::kPrefetch) ||
                           call.is(IntrinsicId::kMaskedLoad) || call.is(IntrinsicId::kMaskedStore);
  return takes_place && !call.args.empty() ? call.args[0].as<BufferLoad>() : nullptr;
}

namespace {

using Kind = StmtEffect::Kind;

constexpr ParamEffect kReads{.reads = true}, kWrites{.writes = true},
    kBoth{.reads = true, .writes = true};

// Whether the init of the block stores to the place that is read: a reduction reads its own sum.
bool accumulates(const Block& block, const BufferLoad& load) {
  bool starts = false;
  walk<BufferStore>(block.init, [&](const BufferStore& store) {
    if (!store.buffer.same_as(load.buffer)) return;
    bool same = true;
    for (size_t i = 0; i < store.indices.size() && same; ++i)
      same = structural_equal(store.indices[i], load.indices[i]);
    starts |= same;
  });
  return starts;
}

class EffectWalk {
 public:
  EffectWalk(const CalleeEffects& callees, const std::function<void(const StmtEffect&)>& see)
      : callees_(callees), see_(see) {}

  void visit(const NodePtr& node) {
    if (!node || node.as<IntImm>() || node.as<FloatImm>()) return;
    if (const auto* var = node.as<Var>()) {
      if (var->dtype.is_handle()) touch(Kind::kOpaque, node, node, kBoth);
      return;
    }
    if (node.as<Buffer>()) return touch(Kind::kOpaque, node, node, kBoth);
    if (!seen_.insert(node.get()).second) return;
    if (const auto* load = node.as<BufferLoad>()) {
      const bool is_own = block_ && block_->init && accumulates(*block_, *load);
      touch(is_own ? Kind::kAccumulate : Kind::kRead, node, load->buffer, kReads);
      return visit_all(load->indices);
    }
    if (const auto* stmt = node.as<StmtNode>()) return statement(*stmt, node);
    if (const auto* region = node.as<BufferRegion>()) {
      touch(Kind::kOpaque, node, region->buffer, kBoth);
      return ranges(*region);
    }
    if (const auto* call = node.as<Call>()) return this->call(*call, node);
    if (const auto* op = node.as<Binary>(); op && op->op >= BinaryOp::kDiv &&
                                            op->op <= BinaryOp::kFloorMod &&
                                            op->lhs->dtype.is_integer() && !as_int(op->rhs))
      other(Kind::kDivide, node);
    members(node);
  }

 private:
  /// Exhaustive: a new kind of statement does not compile until it has an answer here.
  void statement(const StmtNode& stmt, const NodePtr& node) {
    switch (kind_of(stmt)) {
      case StmtKind::kBufferStore: {
        const auto* store = node.as<BufferStore>();
        visit(store->value);
        visit_all(store->indices);
        return touch(Kind::kWrite, node, store->buffer, kWrites);
      }
      case StmtKind::kBlock: return block(*node.as<Block>());
      case StmtKind::kCallTir:
        other(Kind::kCall, node);
        return arguments(node.as<CallTir>()->callee->name, node.as<CallTir>()->args);
      case StmtKind::kAttrStmt: {
        const auto* attr = node.as<AttrStmt>();
        // A pointer that the attribute is about is not used by it.
        if (!attr->subject.as<Var>() && !attr->subject.as<Buffer>()) visit(attr->subject);
        return visit(attr->body);
      }
      case StmtKind::kDeclBuffer:
        if (const auto* view = node.as<DeclBuffer>(); view->data.as<Var>())
          return touch(Kind::kView, node, view->data, kBoth);
        return members(node);
      case StmtKind::kAssert: other(Kind::kCheck, node); return members(node);
      case StmtKind::kWhile: other(Kind::kLoop, node); return members(node);
      case StmtKind::kEvaluate:
      case StmtKind::kBind:
      case StmtKind::kAllocBuffer:
      case StmtKind::kAllocConst:
      case StmtKind::kSeq:
      case StmtKind::kFor:
      case StmtKind::kIfThenElse:
      case StmtKind::kBlockRealize: return members(node);  // what they hold
    }
  }

  void members(const NodePtr& node) {
    each_member(node, [&](const NodePtr& member, FieldRole role) {
      if (role == FieldRole::kUse) visit(member);
    });
  }

  void touch(Kind kind, const NodePtr& node, NodePtr memory, ParamEffect use) {
    see_({.kind = kind, .node = node, .memory = std::move(memory), .use = use, .block = block_});
  }
  void other(Kind kind, const NodePtr& node) {
    see_({.kind = kind, .node = node, .block = block_});
  }

  template <typename T>
  void visit_all(const std::vector<T>& nodes) {
    for (const T& node : nodes) visit(node);
  }
  void ranges(const BufferRegion& region) {
    for (const Range& range : region.region) {
      visit(range.min);
      visit(range.extent);
    }
  }

  void block(const Block& block) {
    const Block* around = block_;
    std::unordered_set<const Node*> seen;
    seen.swap(seen_);  // a load may be another kind of access in another block
    block_ = &block;
    for (const MatchBuffer& match : block.match_buffers) {
      touch(Kind::kView, match.source, match.source->buffer, kBoth);
      ranges(*match.source);
    }
    visit(block.init);
    visit(block.body);
    block_ = around;
    seen.swap(seen_);
  }

  void arguments(const std::string& callee, const std::vector<NodePtr>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* region = args[i].as<BufferRegion>();
      if (!region) {
        visit(args[i]);
        continue;
      }
      touch(Kind::kArgument, args[i], region->buffer, callees_(callee, i, *region->buffer));
      ranges(*region);
    }
  }

  void call(const Call& call, const NodePtr& node) {
    if (call.callee) {
      other(Kind::kCall, node);
      return arguments(call.callee->name, call.args);
    }
    if (const BufferLoad* element = place_given_to(call)) {
      if (call.is(IntrinsicId::kMaskedLoad))
        touch(Kind::kRead, call.args[0], element->buffer, kReads);
      if (call.is(IntrinsicId::kAddressOf)) touch(Kind::kOpaque, node, element->buffer, kBoth);
      visit_all(element->indices);
      for (size_t i = 1; i < call.args.size(); ++i) visit(call.args[i]);
      if (call.is(IntrinsicId::kMaskedStore))
        touch(Kind::kWrite, call.args[0], element->buffer, kWrites);
      return;
    }
    const bool is_claim = call.is(IntrinsicId::kCheckIndex) || call.is(IntrinsicId::kAssume);
    if (is_claim) other(Kind::kCheck, node);
    if (call.op->effect == Effect::kOpaque && !is_claim && !call.is(IntrinsicId::kRet)) {
      other(Kind::kForeign, node);
      for (const NodePtr& arg : call.args)
        walk(arg, [&](const NodePtr& inner) {
          const auto* var = inner.as<Var>();
          if (inner.as<Buffer>() || (var && var->dtype.is_handle()))
            touch(Kind::kOpaque, node, inner, kBoth);
        });
    }
    visit_all(call.args);
  }

  const CalleeEffects& callees_;
  const std::function<void(const StmtEffect&)>& see_;
  const Block* block_ = nullptr;
  std::unordered_set<const Node*> seen_;
};

bool meet(const std::set<const Node*>& a, const std::set<const Node*>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Node* node) { return b.count(node) != 0; });
}

}  // namespace

void each_effect(const NodePtr& root, const CalleeEffects& callees,
                 const std::function<void(const StmtEffect&)>& see) {
  EffectWalk(callees, see).visit(root);
}

void Effects::add(const Effects& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
  has_others |= other.has_others;
}

bool Effects::overwrites(const Effects& earlier) const {
  return meet(writes, earlier.writes) || meet(writes, earlier.reads) ||
         (has_others && earlier.has_others);
}

bool Effects::conflicts(const Effects& other) const {
  return overwrites(other) || meet(reads, other.writes);
}

Effects effects_of(const NodePtr& root, const CalleeEffects& callees) {
  Effects out;
  each_effect(root, callees, [&](const StmtEffect& effect) {
    if (!effect.memory) {
      out.has_others |= effect.kind != Kind::kDivide && !effect.node.as<CallTir>();
      return;
    }
    const auto* buffer = effect.memory.as<Buffer>();
    const Node* pointer = buffer ? buffer->data.get() : effect.memory.get();
    for (const Node* memory : {effect.memory.get(), pointer}) {
      if (effect.reads()) out.reads.insert(memory);
      if (effect.writes()) out.writes.insert(memory);
    }
  });
  return out;
}

}  // namespace tenon::tir
