// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/tir/transforms.h"
#include "tenon/tir/transforms/carried_values.h"

namespace tenon::tir {

namespace {

// Statements that can hold an allocation (loops, blocks, branches), numbered in the order of a
// walk; a shared node is another one at each place.
using Path = std::vector<int>;

struct Uses {
  bool any = false;
  Path common;  // scopes around all uses, outermost first

  void add(const Path& path) {
    if (!any) {
      common = path;
      any = true;
      return;
    }
    size_t n = 0;
    while (n < common.size() && n < path.size() && common[n] == path[n]) ++n;
    common.resize(n);
  }
};

// First walk: where each allocated buffer is used, and which loops it must stay outside of.
class Finder {
 public:
  Finder(const std::vector<Ref<Buffer>>& buffers, CallEffects& effects)
      : carried_(buffers, effects) {}

  void visit(const Stmt& stmt) {
    if (!stmt) return;
    switch (kind_of(stmt)) {
      case StmtKind::kSeq:
        for (const Stmt& inner : stmt.to<Seq>().stmts) visit(inner);
        break;
      case StmtKind::kFor: {
        const auto& loop = stmt.to<For>();
        use_value(loop.min);
        use_value(loop.extent);
        // Lanes share what is allocated: it stays outside a vector loop.
        const size_t outer_limit = limit_;
        if (loop.kind == ForKind::kVectorized) limit_ = std::min(limit_, path_.size());
        // Iterations that may run at once hand nothing on.
        if (loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled)
          ordered_.insert(next_);
        Scope scope(*this, loop);
        visit(loop.body);
        limit_ = outer_limit;
        break;
      }
      case StmtKind::kBlockRealize: {
        const auto& realize = stmt.to<BlockRealize>();
        for (const Expr& value : realize.iter_values) use_value(value);
        use_value(realize.predicate);
        block(realize);
        break;
      }
      case StmtKind::kIfThenElse: {
        const auto& branch = stmt.to<IfThenElse>();
        use_value(branch.condition);
        {
          Scope scope(*this, branch.condition);
          visit(branch.then_case);
        }
        Scope scope(*this, Expr());
        visit(branch.else_case);
        break;
      }
      case StmtKind::kWhile: {
        const auto& loop = stmt.to<While>();
        // State is carried from one iteration to the next: nothing moves inside.
        use_value(loop.condition);
        use(loop.body);
        carried_.opaque(loop.body);
        skip(loop.body);
        break;
      }
      case StmtKind::kAttrStmt: visit(stmt.to<AttrStmt>().body); break;
      case StmtKind::kBufferStore:
      case StmtKind::kEvaluate:
      case StmtKind::kBind:
      case StmtKind::kAllocBuffer:
      case StmtKind::kAllocConst:
      case StmtKind::kDeclBuffer:
      case StmtKind::kAssert:
      case StmtKind::kBlock:
      case StmtKind::kCallTir:
        use(stmt);
        carried_.statement(stmt);
        break;
    }
  }

  /// The innermost scope that memory for `buffer` may be allocated in; -1: none but the function.
  int scope_of(const Buffer& buffer, const Uses& uses) const {
    int scope = -1;
    for (const int inner : uses.common) {
      if (ordered_.count(inner) && carried_.carries(buffer, inner)) break;
      scope = inner;
    }
    return scope;
  }

  std::unordered_map<const Node*, Uses> uses;

 private:
  struct Scope {
    /// `what` is the loop, the block or the condition.
    Scope(Finder& finder, const auto& what) : finder(finder) {
      finder.carried_.enter(finder.next_, what);
      finder.path_.push_back(finder.next_++);
    }
    ~Scope() {
      finder.carried_.leave();
      finder.path_.pop_back();
    }
    Finder& finder;
  };

  void skip(const Stmt& body) {  // what a While holds keeps its blocks' buffers at the blocks
    walk(body, [&](const NodePtr& node) {
      if (const auto* block = node.as<Block>())
        for (const Ref<Buffer>& buffer : block->alloc_buffers) fixed_.insert(buffer.get());
    });
  }

  void block(const BlockRealize& realize) {
    const Block& block = *realize.block;
    for (const MatchBuffer& match : block.match_buffers) use(match.source);
    Scope scope(*this, realize);
    visit(block.body);
  }

  void use_value(const Expr& value) {
    use(value);
    carried_.value(value);
  }

  void use(const NodePtr& node) {
    const Path here(path_.begin(),
                    path_.begin() + static_cast<std::ptrdiff_t>(std::min(limit_, path_.size())));
    walk(node, [&](const NodePtr& inner) {
      if (inner.as<Buffer>()) uses[inner.get()].add(here);
      if (const auto* var = inner.as<Var>(); var && var->dtype.is_handle())
        data_uses_[var].add(here);
    });
  }

  friend class AllocationPlacer;
  CarriedValues carried_;
  std::unordered_set<int> ordered_;  // scopes that are loops whose iterations run in order
  Path path_;
  size_t limit_ = SIZE_MAX;  // scopes that an allocation may be in
  int next_ = 0;
  std::unordered_set<const Node*> fixed_;
  std::unordered_map<const Node*, Uses> data_uses_;  // by the pointer alone
};

// Second walk, in the same order: allocations leave their blocks and appear where they belong.
class AllocationPlacer {
 public:
  AllocationPlacer(Finder& finder, const std::vector<Ref<Buffer>>& buffers) : finder_(finder) {
    for (const Ref<Buffer>& buffer : buffers) {
      if (finder.fixed_.count(buffer.get())) continue;
      Uses uses = finder.uses[buffer.get()];
      const auto data = finder.data_uses_.find(buffer->data.get());
      if (data != finder.data_uses_.end()) uses.add(data->second.common);
      if (!uses.any) continue;
      placed_[finder.scope_of(*buffer, uses)].push_back(buffer);
    }
  }

  Stmt place(const Stmt& stmt) {
    Stmt next = visit(stmt);
    return with_allocations(-1, next);
  }

 private:
  Stmt with_allocations(int scope, const Stmt& body) {
    const auto it = placed_.find(scope);
    if (it == placed_.end()) return body;
    std::vector<Stmt> stmts;
    for (const Ref<Buffer>& buffer : it->second) {
      stmts.push_back(make<AllocBuffer>(buffer, Attrs{}, buffer->origin));
      placed_so_far_.insert(buffer.get());
    }
    stmts.push_back(body);
    return seq(std::move(stmts));
  }

  Stmt visit(const Stmt& stmt) {
    if (!stmt) return stmt;
    switch (kind_of(stmt)) {
      case StmtKind::kSeq: {
        std::vector<Stmt> stmts;
        for (const Stmt& inner : stmt.to<Seq>().stmts) stmts.push_back(visit(inner));
        return make<Seq>(std::move(stmts), stmt->origin);
      }
      case StmtKind::kFor: {
        const auto& loop = stmt.to<For>();
        const int scope = next_++;
        Stmt body = with_allocations(scope, visit(loop.body));
        return loop.with(loop.min, loop.extent, body);
      }
      case StmtKind::kBlockRealize: {
        const auto& realize = stmt.to<BlockRealize>();
        const int scope = next_++;
        Block::Parts parts = realize.block->parts();
        const size_t first_moved = moved_.size();
        std::erase_if(parts.alloc_buffers, [&](const Ref<Buffer>& buffer) {
          if (finder_.fixed_.count(buffer.get())) return false;
          moved_.push_back(buffer);
          return true;
        });
        parts.body = with_allocations(scope, visit(parts.body));
        // Nobody outside sees what is allocated inside now. Outer scopes place theirs later.
        for (auto* regions : {&parts.reads, &parts.writes})
          std::erase_if(*regions, [&](const Ref<BufferRegion>& region) {
            return placed_so_far_.count(region->buffer.get()) > 0;
          });
        // What this block or one inside allocated, and is placed further out, it uses like others'.
        if (!parts.iter_vars.empty() || !parts.reads.empty() || !parts.writes.empty())
          for (size_t i = first_moved; i < moved_.size(); ++i) {
            const bool is_used = finder_.uses[moved_[i].get()].any;
            if (!is_used || placed_so_far_.count(moved_[i].get())) continue;
            parts.reads.push_back(BufferRegion::whole(moved_[i]));
            parts.writes.push_back(BufferRegion::whole(moved_[i]));
          }
        return make<BlockRealize>(realize.iter_values, realize.predicate,
                                  make<Block>(std::move(parts), realize.block->origin),
                                  stmt->origin);
      }
      case StmtKind::kIfThenElse: {
        const auto& branch = stmt.to<IfThenElse>();
        const int yes = next_++;
        Stmt then_case = with_allocations(yes, visit(branch.then_case));
        const int no = next_++;
        Stmt else_case = visit(branch.else_case);
        if (else_case) else_case = with_allocations(no, else_case);
        return make<IfThenElse>(branch.condition, then_case, else_case, stmt->origin);
      }
      case StmtKind::kAttrStmt: {
        const auto& attr = stmt.to<AttrStmt>();
        return make<AttrStmt>(attr.subject, attr.key, attr.value, visit(attr.body), stmt->origin);
      }
      case StmtKind::kBufferStore:
      case StmtKind::kEvaluate:
      case StmtKind::kBind:
      case StmtKind::kAllocBuffer:
      case StmtKind::kAllocConst:
      case StmtKind::kDeclBuffer:
      case StmtKind::kWhile:
      case StmtKind::kAssert:
      case StmtKind::kBlock:
      case StmtKind::kCallTir: break;
    }
    return stmt;
  }

  Finder& finder_;
  int next_ = 0;
  std::map<int, std::vector<Ref<Buffer>>> placed_;
  std::unordered_set<const Node*> placed_so_far_;
  std::vector<Ref<Buffer>> moved_;  // out of the blocks that allocated them
};

}  // namespace

IRModule plan_and_update_buffer_allocation_location(IRModule module) {
  CallEffects effects(module);
  return map_kernels(module, [&](const Ref<PrimFunc>& function) {
    std::vector<Ref<Buffer>> buffers;
    walk<Block>(function->body, [&](const Block& block) {
      if (block.init)
        throw CompileError(kWrongForm, block.origin,
                           "block `{}` has an init; LowerInitBlock runs first", block.name);
      buffers.insert(buffers.end(), block.alloc_buffers.begin(), block.alloc_buffers.end());
    });
    if (buffers.empty()) return function;
    Finder finder(buffers, effects);
    finder.visit(function->body);
    return function->with_body(AllocationPlacer(finder, buffers).place(function->body));
  });
}

}  // namespace tenon::tir
