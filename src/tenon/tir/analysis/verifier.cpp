// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/verifier.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/ir/division.h"
#include "tenon/support/parallel.h"
#include "tenon/tir/analysis/access_bounds.h"
#include "tenon/tir/analysis/parallel_races.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_graph.h"
#include "tenon/tir/call_verifier.h"
#include "tenon/tir/callee.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

namespace {

class Verifier {
 public:
  Verifier(const IRModule& module, CallEffects& effects, Diagnostics& diagnostics, bool accesses)
      : module_(module),
        effects_(effects),
        diagnostics_(diagnostics),
        calls_(module, effects, diagnostics),
        accesses_(accesses) {}

  void function(const std::string& name, const PrimFunc& f) {
    in_ = name;
    const size_t faults = diagnostics_.size();
    for (size_t i = 0; i < f.params.size(); ++i) {
      define(f.params[i].get(), f.params[i]->name, f.params[i]->origin);
      if (f.buffers[i]) define_buffer(f.buffers[i]);
    }
    for (const Ref<Var>& var : symbolic_vars(f)) visible_.insert(var.get());
    for (const Ref<Buffer>& buffer : f.buffers)
      if (buffer) shape(*buffer);
    stmt(f.body);
    if (accesses_) bounds(f);
    if (accesses_ && diagnostics_.size() == faults)
      find_races(f, module_, effects_, [&](const Race& race) {
        if (race.fails) report(race, diagnostics_);
      });
  }

 private:
  // Accesses that lie outside in an iteration that happens.
  void bounds(const PrimFunc& f) {
    std::set<std::pair<const Node*, size_t>> reported;
    find_unproved(f, [&](const AccessCheck& check) {
      if (!check.fails || !reported.insert({check.node.get(), check.dim}).second) return;
      report(check, in_, diagnostics_);
    });
  }

  // ---- definitions

  void define(const Node* node, const std::string& name, const Origin& origin) {
    if (!visible_.insert(node).second) {
      diagnostics_.error(kRedefined, origin, "`{}` of `{}` is defined again inside of its scope",
                         name, in_);
      return;
    }
    scope_.push_back(node);
  }
  void define_buffer(const Ref<Buffer>& buffer) {
    define(buffer.get(), buffer->name, buffer->origin);
    // A view may share the pointer of the buffer that it looks at.
    if (visible_.insert(buffer->data.get()).second) scope_.push_back(buffer->data.get());
    by_data_.emplace(buffer->data.get(), buffer);
  }
  // The place that a declaration shows; null where it depends on what is not known.
  Ref<BufferRegion> place_of(const DeclBuffer& decl) const {
    if (const auto it = by_data_.find(decl.data.get()); it != by_data_.end())
      return it->second.same_as(decl.buffer) ? nullptr : BufferRegion::whole(it->second);
    const auto* call = decl.data.as<Call>();
    const auto* at = call && call->is(IntrinsicId::kAddressOf) && !call->args.empty()
                         ? call->args[0].as<BufferLoad>()
                         : nullptr;
    if (!at || !as_ints(at->indices)) return nullptr;
    return BufferRegion::point(at->buffer, at->indices);
  }
  void close(size_t size) {
    while (scope_.size() > size) {
      visible_.erase(scope_.back());
      scope_.pop_back();
    }
  }
  template <typename F>
  void scoped(const F& body) {
    const size_t outer = scope_.size();
    body();
    close(outer);
  }
  void shape(const Buffer& buffer) {
    for (const Expr& dim : buffer.shape) {
      expr(dim, buffer.origin);
      walk(dim, [&](const NodePtr& node) {
        if (divides_by_zero(node) && reported_.insert(node.get()).second)
          diagnostics_.error(kDivisionByZero, buffer.origin,
                             "`{}` in the shape of `{}` in `{}` divides by zero",
                             str(downcast<ExprNode>(node)), buffer.name, in_);
      });
    }
    for (const Expr& stride : buffer.strides) expr(stride, buffer.origin);
    if (buffer.elem_offset) {
      // A view's offset may be a variable that the view defines.
      if (buffer.elem_offset.as<Var>() && visible_.insert(buffer.elem_offset.get()).second)
        scope_.push_back(buffer.elem_offset.get());
      expr(buffer.elem_offset, buffer.origin);
    }
  }

  // ---- expressions

  void undefined(const Node* node, const std::string& name, std::string_view what,
                 const Origin& origin) {
    if (visible_.count(node) || !reported_.insert(node).second) return;
    diagnostics_.error(kUndefined, origin, "{} `{}` is used in `{}`, where it is not defined", what,
                       name, in_);
  }

  void expr(const NodePtr& node, const Origin& origin) {
    if (!node) return;
    if (const auto* var = node.as<Var>()) {
      undefined(var, var->name, "variable", origin);
      return;
    }
    if (const auto* buffer = node.as<Buffer>()) {
      undefined(buffer, buffer->name, "buffer", origin);
      return;
    }
    if (const auto* load = node.as<BufferLoad>()) {
      access(load->buffer, load->indices, load->origin ? load->origin : origin, Use::kRead);
      return;
    }
    if (const auto* let = node.as<Let>()) {
      expr(let->value, origin);
      scoped([&] {
        define(let->var.get(), let->var->name, origin);
        expr(let->body, origin);
      });
      return;
    }
    const auto* call = node.as<Call>();
    if (call && call->callee)
      return this->call(*call->callee, call->args, call->origin ? call->origin : origin, true,
                        call->result);
    each_member(node, [&](const NodePtr& member, FieldRole) { expr(member, origin); });
  }

  enum class Use : uint8_t { kRead, kWrite };

  void access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Origin& origin,
              Use use) {
    undefined(buffer.get(), buffer->name, "buffer", origin);
    for (const Expr& index : indices) expr(index, origin);
    if (indices.size() != buffer->ndim()) {
      diagnostics_.error(kIndexRank, origin, "buffer `{}` of shape {} has {} indices in `{}`",
                         buffer->name, str(buffer->shape), indices.size(), in_);
      return;
    }
    if (!blocks_.empty()) listed(buffer, origin, use);
  }

  // ---- blocks

  struct Open {
    const Block* block;
    std::unordered_set<const Node*> reads, writes, own;
  };

  // The buffers of an access must be among the reads and writes of the blocks around it that have
  // any, up to the one that allocates it.
  void listed(const Ref<Buffer>& buffer, const Origin& origin, Use use) {
    for (size_t i = blocks_.size(); i-- > 0;) {
      const Open& open = blocks_[i];
      if (open.own.count(buffer.get())) return;
      const Block& block = *open.block;
      if (block.iter_vars.empty() && block.reads.empty() && block.writes.empty()) continue;
      const bool accumulates = use == Use::kRead && open.writes.count(buffer.get());
      if (accumulates || (use == Use::kRead ? open.reads : open.writes).count(buffer.get()))
        continue;
      if (!faulty_.insert({&block, buffer.get()}).second) continue;
      diagnostics_.error(kBadBlock, origin ? origin : block.origin,
                         "block `{}` {} buffer `{}`, which is not among its {}", block.name,
                         use == Use::kRead ? "reads" : "writes", buffer->name,
                         use == Use::kRead ? "reads" : "writes");
    }
  }

  void region(const BufferRegion& r, const Origin& origin) {
    undefined(r.buffer.get(), r.buffer->name, "buffer", origin);
    for (const Range& range : r.region) {
      expr(range.min, origin);
      expr(range.extent, origin);
    }
  }

  void realize(const BlockRealize& r) {
    const Block& block = *r.block;
    const Origin& origin = block.origin;
    for (const Expr& value : r.iter_values) expr(value, origin);
    expr(r.predicate, origin);
    scoped([&] {
      for (size_t i = 0; i < block.iter_vars.size(); ++i) {
        const IterVar& iter = block.iter_vars[i];
        expr(iter.domain.min, origin);
        expr(iter.domain.extent, origin);
        if (iter.var->dtype != r.iter_values[i]->dtype)
          diagnostics_.error(kBadBlock, origin,
                             "axis `{}` of block `{}` has dtype {}; it is bound to a value of {}",
                             iter.var->name, block.name, iter.var->dtype.str(),
                             r.iter_values[i]->dtype.str());
        if (const auto extent = as_int(iter.domain.extent); extent && *extent < 0)
          diagnostics_.error(kBadBlock, origin, "axis `{}` of block `{}` has extent {}",
                             iter.var->name, block.name, *extent);
      }
      for (const IterVar& iter : block.iter_vars) define(iter.var.get(), iter.var->name, origin);
      for (const MatchBuffer& match : block.match_buffers) region(*match.source, origin);
      Open open{&block, {}, {}, {}};
      for (const Ref<Buffer>& buffer : block.alloc_buffers) {
        define_buffer(buffer);
        shape(*buffer);
        open.own.insert(buffer.get());
      }
      for (const auto& r : block.reads) {
        region(*r, origin);
        open.reads.insert(r->buffer.get());
      }
      for (const auto& w : block.writes) {
        region(*w, origin);
        open.writes.insert(w->buffer.get());
      }
      for (const MatchBuffer& match : block.match_buffers) {
        define_buffer(match.buffer);
        view_shape(*match.buffer);
        views_[match.buffer.get()] = match.source;
        open.own.insert(match.buffer.get());
      }
      blocks_.push_back(std::move(open));
      if (block.init) scoped([&] { stmt(block.init); });
      scoped([&] { stmt(block.body); });
      blocks_.pop_back();
    });
  }

  // A view defines the bare variables in its strides and offset.
  void view_shape(const Buffer& buffer) {
    for (const Expr& stride : buffer.strides)
      if (stride.as<Var>() && visible_.insert(stride.get()).second) scope_.push_back(stride.get());
    shape(buffer);
  }

  // ---- statements

  void stmt(const Stmt& s) {
    if (!s) return;
    const Origin& origin = s->origin;
    switch (kind_of(s)) {
      case StmtKind::kBlock:
        diagnostics_.error(kBadBlock, origin,
                           "block `{}` of `{}` gives its axes no values; expected a block without "
                           "`no_realize`",
                           s.to<Block>().name, in_);
        break;
      case StmtKind::kSeq:
        scoped([&] {
          for (const Stmt& inner : s.to<Seq>().stmts) stmt_in_sequence(inner);
        });
        break;
      case StmtKind::kFor: {
        const auto& loop = s.to<For>();
        expr(loop.min, origin);
        expr(loop.extent, origin);
        scoped([&] {
          define(loop.loop_var.get(), loop.loop_var->name, origin);
          const auto extent = as_int(loop.extent);
          const For* const outer = parallel_;
          const int64_t others = others_;
          if (loop.kind == ForKind::kParallel && !(extent && *extent <= 1)) {
            parallel_ = &loop;
            others_ = 0;
          }
          stmt(loop.body);
          parallel_ = outer;
          others_ = others;
        });
        break;
      }
      case StmtKind::kIfThenElse: {
        const auto& branch = s.to<IfThenElse>();
        expr(branch.condition, origin);
        // What one iteration alone does, as a stage of a pipeline, runs beside nothing of its kind.
        const For* const outer = parallel_;
        const int64_t others = others_;
        const auto* test = branch.condition.as<Binary>();
        const bool picks = parallel_ && test && test->op == BinaryOp::kEQ && as_int(test->rhs) &&
                           test->lhs.same_as(parallel_->loop_var);
        if (picks) parallel_ = nullptr;
        scoped([&] { stmt(branch.then_case); });
        parallel_ = outer;
        if (picks && as_int(outer->extent) == ++others_ + 1) parallel_ = nullptr;
        scoped([&] { stmt(branch.else_case); });
        parallel_ = outer;
        others_ = others;
        break;
      }
      case StmtKind::kWhile: {
        const auto& loop = s.to<While>();
        expr(loop.condition, origin);
        scoped([&] { stmt(loop.body); });
        break;
      }
      case StmtKind::kAttrStmt: scoped([&] { stmt(s.to<AttrStmt>().body); }); break;
      case StmtKind::kBlockRealize: realize(s.to<BlockRealize>()); break;
      case StmtKind::kBufferStore:
      case StmtKind::kEvaluate:
      case StmtKind::kBind:
      case StmtKind::kAllocBuffer:
      case StmtKind::kAllocConst:
      case StmtKind::kDeclBuffer:
      case StmtKind::kAssert:
      case StmtKind::kCallTir: scoped([&] { stmt_in_sequence(s); }); break;
    }
  }

  // Definitions here are visible to the statements that follow.
  void stmt_in_sequence(const Stmt& s) {
    const Origin& origin = s->origin;
    switch (kind_of(s)) {
      case StmtKind::kBind: {
        const auto& bind = s.to<Bind>();
        expr(bind.value, origin);
        define(bind.var.get(), bind.var->name, origin);
        break;
      }
      case StmtKind::kAllocBuffer: {
        const auto& alloc = s.to<AllocBuffer>();
        define_buffer(alloc.buffer);
        shape(*alloc.buffer);
        own(alloc.buffer);
        break;
      }
      case StmtKind::kAllocConst: {
        const auto& alloc = s.to<AllocConst>();
        define_buffer(alloc.buffer);
        shape(*alloc.buffer);
        own(alloc.buffer);
        break;
      }
      case StmtKind::kDeclBuffer: {
        const auto& decl = s.to<DeclBuffer>();
        expr(decl.data, origin);
        if (const Ref<BufferRegion> place = place_of(decl))
          declared_.emplace(decl.buffer.get(), place);
        define_buffer(decl.buffer);
        view_shape(*decl.buffer);
        own(decl.buffer);
        break;
      }
      case StmtKind::kBufferStore: {
        const auto& store = s.to<BufferStore>();
        expr(store.value, origin);
        access(store.buffer, store.indices, origin, Use::kWrite);
        break;
      }
      case StmtKind::kEvaluate: expr(s.to<Evaluate>().value, origin); break;
      case StmtKind::kAssert: expr(s.to<Assert>().condition, origin); break;
      case StmtKind::kCallTir: {
        const auto& call = s.to<CallTir>();
        this->call(*call.callee, call.args, origin, false, kVoid);
        break;
      }
      case StmtKind::kSeq:
      case StmtKind::kFor:
      case StmtKind::kWhile:
      case StmtKind::kIfThenElse:
      case StmtKind::kAttrStmt:
      case StmtKind::kBlock:
      case StmtKind::kBlockRealize: stmt(s); break;
    }
  }
  void own(const Ref<Buffer>& buffer) {
    if (!blocks_.empty()) blocks_.back().own.insert(buffer.get());
  }

  // ---- calls

  void call(const GlobalVar& callee, const std::vector<NodePtr>& args, const Origin& origin,
            bool is_expression, DType result) {
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* r = args[i].as<BufferRegion>();
      if (!r) {
        expr(args[i], origin);
        continue;
      }
      region(*r, origin);
      if (blocks_.empty()) continue;
      const ParamEffect effect = effects_.of(callee.name, i);
      const Origin& place = r->origin ? r->origin : origin;
      if (effect.writes) listed(r->buffer, place, Use::kWrite);
      if (effect.reads) listed(r->buffer, place, Use::kRead);
    }
    calls_.check({.in = in_,
                  .callee = callee.name,
                  .args = &args,
                  .origin = origin,
                  .is_expression = is_expression,
                  .result = result,
                  .views = &views_,
                  .declared = &declared_,
                  .parallel = parallel_});
  }

  const IRModule& module_;
  CallEffects& effects_;
  Diagnostics& diagnostics_;
  CallVerifier calls_;
  bool accesses_;
  std::string in_;
  std::unordered_map<const Node*, Ref<BufferRegion>> views_, declared_;
  std::unordered_map<const Node*, Ref<Buffer>> by_data_;  // the first buffer of a pointer
  const For* parallel_ = nullptr;  // the loop around whose iterations run beside one another
  int64_t others_ = 0;             // its iterations that a branch around has left out
  std::vector<Open> blocks_;
  std::unordered_set<const Node*> visible_, reported_;
  std::set<std::pair<const Node*, const Node*>> faulty_;
  std::vector<const Node*> scope_;
};

}  // namespace

static Expr bytes_of(const AttrValue& value) {
  if (const auto* number = value.as<int64_t>()) return int64(*number);
  if (const auto* node = value.as<NodePtr>()) return cast<ExprNode>(*node);
  return {};
}

// What a function says of its memory, and whoever calls it relies on: attributes of PlanMemory,
// which a text may hold too.
static void check_plan(const std::string& name, const PrimFunc& f, Diagnostics& diagnostics) {
  const AttrValue* stated = f.attrs.find("tenon.workspace_bytes");
  if (!stated) return;
  const Ref<Buffer> workspace = f.buffers.empty() ? Ref<Buffer>() : f.buffers.back();
  if (!workspace || workspace->dtype != kUInt8 || workspace->ndim() != 1) {
    diagnostics.error(kBadAttribute, f.origin,
                      "`{}` has attribute `tenon.workspace_bytes`; expected a last parameter "
                      "that is a buffer of bytes",
                      name);
    return;
  }
  const Expr bytes = bytes_of(*stated), &extent = workspace->shape[0];
  const auto known = bytes ? as_int(bytes) : std::nullopt, needed = as_int(extent);
  const bool agrees = bytes && (known && needed ? *known == *needed
                                                : bytes->dtype.is_int() && extent->dtype.is_int() &&
                                                      arith::proves_equal(cast(kInt64, bytes),
                                                                          cast(kInt64, extent)));
  if (!agrees)
    diagnostics.error(kBadAttribute, f.origin,
                      "attribute `tenon.workspace_bytes` of `{}` is {}; its last parameter, "
                      "`{}`, has {} bytes",
                      name, bytes ? str(bytes) : "no number", workspace->name, str(extent));
}

// Whether calls of `a` are as good as calls of `b`, effects apart.
static bool same_parameters(const BaseFunc& a, const BaseFunc& b) {
  if (a.same_as(b)) return true;
  const auto* f = a.as<PrimFunc>();
  const auto* g = b.as<PrimFunc>();
  const auto same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const auto& i, const auto& k) { return i.same_as(k); });
  };
  return f && g && f->result == g->result && same(f->params, g->params) &&
         same(f->buffers, g->buffers);
}

void verify(const IRModule& module, Diagnostics& diagnostics, VerifierMemory* memory) {
  // What passes make of accesses that were judged is their own affair, and takes long to judge.
  const bool accesses = !memory;
  VerifierMemory none, next;
  if (!memory) memory = &none;
  const size_t faults = diagnostics.size();
  const auto record_of = [&](const std::string& name) -> VerifierMemory::Record& {
    const BaseFunc function = module.find(name);
    const auto [it, is_new] = next.records.try_emplace(function.get());
    if (!is_new) return it->second;
    const auto known = memory->records.find(function.get());
    if (known != memory->records.end()) {
      it->second = known->second;
    } else {
      it->second = {function, calls_of(module, name), {}};
    }
    return it->second;
  };
  const std::vector<std::string> order = callees_first(
      module, [&](const std::string& name) { return &record_of(name).calls; }, diagnostics,
      accesses ? kMaxCallDepth : kMaxCallDepth + kAddedCallDepth);
  CallEffects effects(module);
  // Of functions without calls, which are most of a program, one does not wait for another.
  std::vector<std::string> leaves;
  for (const std::string& name : order) {
    const VerifierMemory::Record& record = record_of(name);
    if (record.calls.empty() && !memory->records.count(record.function.get()))
      leaves.push_back(name);
  }
  for_each_in_parallel(leaves.size(), [&](size_t i) {
    effects.set(leaves[i], CallEffects(module).after_callees(leaves[i]));
  });
  std::unordered_set<std::string> unchanged;
  for (const std::string& name : order) {
    VerifierMemory::Record& record = record_of(name);
    bool same = memory->records.count(record.function.get()) > 0;
    std::vector<VerifierMemory::Callee> callees;
    for (size_t i = 0; i < record.calls.size(); ++i) {
      const std::string& callee = record.calls[i].callee;
      callees.push_back({module.find(callee), effects.after_callees(callee)});
      same = same && callees[i].function && record.callees[i].function &&
             same_parameters(record.callees[i].function, callees[i].function) &&
             record.callees[i].effects == callees[i].effects;
    }
    record.callees = std::move(callees);
    if (!same) continue;
    unchanged.insert(name);
    const auto known = memory->effects.find(record.function.get());
    if (known != memory->effects.end()) effects.set(name, known->second);
  }
  std::vector<std::pair<std::string, Ref<PrimFunc>>> changed;
  for (const auto& [name, function] : module.functions()) {
    const auto* external = function.as<ExternFunction>();
    const Ref<PrimFunc> f = external ? external->reference() : cast<PrimFunc>(function);
    if (f && !unchanged.count(name)) changed.emplace_back(name, f);
  }
  std::vector<Diagnostics> found(changed.size());
  for_each_in_parallel(changed.size(), [&](size_t i) {
    const auto& [name, f] = changed[i];
    Verifier(module, effects, found[i], accesses).function(name, *f);
    check_plan(name, *f, found[i]);
  });
  for (const Diagnostics& of_one : found) diagnostics.add(of_one);
  if (diagnostics.size() > faults) return;
  for (const auto& [node, record] : next.records)
    for (const VerifierMemory::Callee& callee : record.callees)
      next.effects[callee.function.get()] = callee.effects;
  *memory = std::move(next);
}

}  // namespace tenon::tir
