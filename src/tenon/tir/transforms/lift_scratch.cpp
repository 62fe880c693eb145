// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "tenon/tir/call_graph.h"
#include "tenon/tir/callee.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

constexpr int64_t kStackBytes = 32 << 10;  // of one kernel
constexpr int64_t kSmallBytes = 4 << 10;   // of a buffer that stays on the stack in any scope

std::optional<int64_t> constant_bytes(const Buffer& buffer) {
  int64_t bytes = buffer.dtype.bytes();
  for (const Expr& dim : buffer.shape) {
    const auto extent = as_int(dim);
    if (!extent || *extent > (int64_t{1} << 40) / std::max<int64_t>(bytes, 1)) return std::nullopt;
    bytes *= *extent;
  }
  return bytes;
}

// Takes out allocations, replacing each by a parameter; in a parallel loop by the iteration's slot
// of one.
class Lifter final : public Rewriter {
 public:
  Lifter(std::set<const Node*> chosen, bool runs_parallel)
      : chosen_(std::move(chosen)), runs_parallel_(runs_parallel) {}

  std::vector<Ref<Buffer>> params;

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* loop = node.as<For>(); loop && loop->kind == ForKind::kParallel) {
      const size_t lifted = params.size();
      if (runs_parallel_) parallel_.push_back(loop);
      NodePtr next = rewrite_members(node);
      if (runs_parallel_)
        parallel_.pop_back();
      else if (params.size() > lifted)  // iterations that share memory run one after another
        next = with_kind(*next.as<For>(), ForKind::kSerial);
      return next;
    }
    if (const auto* alloc = node.as<AllocBuffer>(); alloc && chosen_.count(alloc->buffer.get())) {
      const Buffer& buffer = *alloc->buffer;
      std::vector<Expr> shape = buffer.shape;
      Slot slot;
      if (!buffer.strides.empty() || buffer.elem_offset)
        throw CompileError(kUnsupported, alloc->origin,
                           "buffer `{}` with strides of its own cannot become scratch memory",
                           buffer.name);
      for (size_t i = parallel_.size(); i-- > 0;) {
        const For& loop = *parallel_[i];
        shape.insert(shape.begin(), loop.extent);
        slot.indices.insert(slot.indices.begin(), loop.loop_var - loop.min);
      }
      slot.buffer =
          make<Buffer>(fmt::format("scratch{}_{}", params.size(), buffer.name), buffer.dtype, shape,
                       Buffer::Options{.alignment = buffer.alignment}, buffer.origin);
      slot.from = alloc->buffer;
      params.push_back(slot.buffer);
      slots_.emplace(alloc->buffer.get(), slot);
      replace(buffer.data, pointer_to(slot));
      return make<Seq>(std::vector<Stmt>{});
    }
    if (const auto* load = node.as<BufferLoad>())
      if (const Slot* slot = slot_of(load->buffer))
        return make<BufferLoad>(slot->buffer, indices(*slot, load->indices), load->origin);
    if (const auto* store = node.as<BufferStore>())
      if (const Slot* slot = slot_of(store->buffer))
        return make<BufferStore>(slot->buffer, (*this)(store->value),
                                 indices(*slot, store->indices), store->origin);
    if (const auto* region = node.as<BufferRegion>())
      if (const Slot* slot = slot_of(region->buffer)) {
        std::vector<Range> ranges;
        std::vector<bool> drop(slot->indices.size(), true);
        for (const Expr& index : slot->indices)
          ranges.push_back({index, imm(index->dtype, int64_t{1})});
        for (size_t i = 0; i < region->region.size(); ++i) {
          ranges.push_back({(*this)(region->region[i].min), (*this)(region->region[i].extent)});
          drop.push_back(region->drops(i));
        }
        return make<BufferRegion>(slot->buffer, std::move(ranges), std::move(drop), region->origin);
      }
    if (const auto* decl = node.as<DeclBuffer>())
      for (const auto& [key, slot] : slots_)
        if (decl->data.same_as(slot.from->data))
          throw CompileError(kUnsupported, decl->origin,
                             "a view of buffer `{}`, which becomes scratch memory",
                             slot.from->name);
    return rewrite_members(node);
  }

 private:
  static Stmt with_kind(const For& loop, ForKind kind) {
    return make<For>(loop.loop_var, loop.min, loop.extent, kind, loop.body, loop.annotations,
                     loop.origin);
  }

  struct Slot {
    Ref<Buffer> from, buffer;
    std::vector<Expr> indices;  // of the iteration
  };
  const Slot* slot_of(const Ref<Buffer>& buffer) const {
    const auto it = slots_.find(buffer.get());
    return it == slots_.end() ? nullptr : &it->second;
  }
  static Expr pointer_to(const Slot& slot) {
    if (slot.indices.empty()) return slot.buffer->data;
    std::vector<Expr> first = slot.indices;
    for (size_t i = first.size(); i < slot.buffer->ndim(); ++i)
      first.push_back(imm(slot.buffer->shape[i]->dtype, int64_t{0}));
    return make<Call>(
        IntrinsicId::kAddressOf,
        std::vector<NodePtr>{make<BufferLoad>(slot.buffer, std::move(first), Origin())}, kVoid,
        Origin());
  }
  std::vector<Expr> indices(const Slot& slot, const std::vector<Expr>& inner) {
    std::vector<Expr> out = slot.indices;
    for (const Expr& index : inner) out.push_back((*this)(index));
    return out;
  }

  std::set<const Node*> chosen_;
  bool runs_parallel_;
  std::vector<const For*> parallel_;
  std::unordered_map<const Node*, Slot> slots_;
};

struct Local {
  int64_t bytes;
  size_t position;
  const Buffer* buffer;
};

// Which allocations do not stay on the stack: what library functions are given, whatever its size
// (memory between library calls is part of the plan), and the largest first, until the rest fits.
std::set<const Node*> choose(const IRModule& module, const PrimFunc& function) {
  std::set<const Node*> chosen, given;
  walk<CallTir>(function.body, [&](const CallTir& call) {
    if (!module.find<ExternFunction>(call.callee->name)) return;
    for (const NodePtr& arg : call.args)
      if (const auto* region = arg.as<BufferRegion>()) given.insert(region->buffer.get());
  });
  std::vector<Local> local;
  int64_t total = 0;
  walk<AllocBuffer>(function.body, [&](const AllocBuffer& alloc) {
    const auto bytes = constant_bytes(*alloc.buffer);
    if (!bytes || given.count(alloc.buffer.get()) ||
        (alloc.buffer->scope == "global" && *bytes > kSmallBytes)) {
      chosen.insert(alloc.buffer.get());
    } else {
      local.push_back({*bytes, local.size(), alloc.buffer.get()});
      total += *bytes;
    }
  });
  std::sort(local.begin(), local.end(), [](const Local& a, const Local& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.position < b.position;
  });
  for (const Local& next : local) {
    if (total <= kStackBytes) break;
    chosen.insert(next.buffer);
    total -= next.bytes;
  }
  return chosen;
}

class Lifting {
 public:
  explicit Lifting(IRModule module) : module_(std::move(module)) {}

  IRModule run() {
    // Callees first: what they need is allocated by their callers, and may be lifted from these
    // again.
    std::unordered_map<std::string, std::vector<CallSite>> calls;
    Diagnostics diagnostics;
    const std::vector<std::string> order = callees_first(
        module_,
        [&](const std::string& name) {
          const auto [it, is_new] = calls.try_emplace(name);
          if (is_new) it->second = calls_of(module_, name);
          return &it->second;
        },
        diagnostics);
    diagnostics.throw_if_any();
    for (const std::string& name : order) lift(name);
    return std::move(module_);
  }

 private:
  struct Lifted {
    Ref<PrimFunc> function;  // with the new parameters
    std::vector<Ref<Buffer>> scratch;
  };

  void lift(const std::string& name) {
    const auto function = module_.find<PrimFunc>(name);
    if (!function) return;
    Ref<PrimFunc> next =
        tenon::rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
          const auto* call = node.as<CallTir>();
          const auto callee = call ? done_.find(call->callee->name) : done_.end();
          if (callee == done_.end() || callee->second.scratch.empty()) return std::nullopt;
          return with_scratch(*call, callee->second);
        });
    Lifted result{next, {}};
    if (next->attrs.flag("tenon.entry")) {
      if (!is_c_target(module_)) result.function = without_task_memory(next);
    } else if (next->result.is_void()) {  // else it may stand in an expression: no room for buffers
      const std::set<const Node*> chosen = choose(module_, *next);
      if (!chosen.empty()) {
        Lifter lifter(chosen, !is_c_target(module_));
        const Stmt body = lifter(next->body);
        std::vector<Ref<Var>> params = next->params;
        std::vector<Ref<Buffer>> buffers = next->buffers;
        for (const Ref<Buffer>& scratch : lifter.params) {
          params.push_back(make<Var>(scratch->name + "_handle", kHandle));
          buffers.push_back(scratch);
        }
        auto changed = make<PrimFunc>(params, buffers, body, next->attrs, next->origin);
        auto* writable = const_cast<PrimFunc*>(changed.get());
        writable->is_private = next->is_private;
        writable->result = next->result;
        result = {changed, lifter.params};
      }
    }
    if (!result.function.same_as(function)) module_.set(name, result.function);
    done_.emplace(name, std::move(result));
  }

  // What the program allocates inside a parallel loop is allocated in front of everything, with a
  // slot for each task: memory is planned by the order of statements, and tasks have none.
  static Ref<PrimFunc> without_task_memory(const Ref<PrimFunc>& entry) {
    std::set<const Node*> chosen;
    walk<For>(entry->body, [&](const For& loop) {
      if (loop.kind != ForKind::kParallel) return;
      walk<AllocBuffer>(ref_to(&loop),
                        [&](const AllocBuffer& alloc) { chosen.insert(alloc.buffer.get()); });
    });
    if (chosen.empty()) return entry;
    Lifter lifter(chosen, true);
    const Stmt body = lifter(entry->body);
    std::vector<Stmt> stmts;
    for (const Ref<Buffer>& buffer : lifter.params)
      stmts.push_back(make<AllocBuffer>(buffer, Attrs{}, buffer->origin));
    stmts.push_back(body);
    return entry->with_body(seq(std::move(stmts)));
  }

  // The call with memory for the callee's scratch allocated in front of it.
  static NodePtr with_scratch(const CallTir& call, const Lifted& callee) {
    Substitution bound = bind_symbols(callee_of(call.callee->name, callee.function), call.args);
    std::vector<Stmt> stmts;
    std::vector<NodePtr> args = call.args;
    for (const Ref<Buffer>& scratch : callee.scratch) {
      std::vector<Expr> shape;
      for (const Expr& dim : scratch->shape) shape.push_back(substitute(dim, bound));
      const auto memory =
          make<Buffer>(scratch->name, scratch->dtype, shape,
                       Buffer::Options{.alignment = scratch->alignment}, scratch->origin);
      stmts.push_back(make<AllocBuffer>(memory, Attrs{}, call.origin));
      args.push_back(BufferRegion::whole(memory));
    }
    stmts.push_back(make<CallTir>(call.callee, std::move(args), call.annotations, call.origin));
    return make<Seq>(std::move(stmts));
  }

  IRModule module_;
  std::unordered_map<std::string, Lifted> done_;
};

}  // namespace

IRModule lift_scratch(IRModule module) { return Lifting(std::move(module)).run(); }

}  // namespace tenon::tir
