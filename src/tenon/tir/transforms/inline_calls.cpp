// SPDX-License-Identifier: Apache-2.0
// InlineCalls: the body of a PrimFunc in the place of a call of it, its parameters replaced by the
// regions of the arguments.

#include <set>

#include "tenon/support/remarks.h"
#include "tenon/tir/call_body.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_facts.h"
#include "tenon/tir/call_transforms.h"
#include "tenon/tir/callee.h"
#include "tenon/tir/extern_function.h"

namespace tenon::tir {

namespace {

bool reads_memory(const NodePtr& node) {
  if (!node) return false;
  bool reads = false;
  walk(node, [&](const NodePtr& inner) {
    const auto* call = inner.as<Call>();
    reads |= inner.as<BufferLoad>() || (call && (!call->op || call->op->effect != Effect::kPure));
  });
  return reads;
}

int64_t count_nodes(const NodePtr& root) {
  int64_t count = 0;
  walk(root, [&](const NodePtr&) { ++count; });
  return count;
}

class Inlining {
 public:
  Inlining(IRModule module, bool all) : module_(std::move(module)), all_(all), effects_(module_) {
    for (const auto& [name, function] : module_.functions())
      if (const auto prim = cast<PrimFunc>(function))
        room_ += kGrowth * (sizes_[name] = count_nodes(prim));
  }

  IRModule run() {
    const std::vector<IRModule::Entry> entries = module_.functions();
    for (const auto& [name, function] : entries) inlined(name, 0);
    IRModule out = module_;
    for (const auto& [name, function] : done_)
      if (function) out.set(name, function);
    return without_unused(std::move(out));
  }

 private:
  /// The function with the calls in it inlined; null where it is no PrimFunc.
  Ref<PrimFunc> inlined(const std::string& name, int depth) {
    const auto known = done_.find(name);
    if (known != done_.end()) return known->second;
    const auto function = module_.find<PrimFunc>(name);
    if (!function) return done_[name] = nullptr;
    if (depth > 64)
      throw CompileError(kRecursion, function->origin, "PrimFunc `{}` calls itself", name);
    const Ref<PrimFunc> next =
        tenon::rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
          if (const auto* call = node.as<CallTir>()) {
            if (!is_chosen(call->callee->name, &call->annotations)) return std::nullopt;
            const Ref<PrimFunc> callee = inlined(call->callee->name, depth + 1);
            const bool fits = callee && has_room(call->callee->name);
            const Stmt body = fits ? statement(*call, *callee) : Stmt();
            if (body) add_size(name, call->callee->name);
            report(*call->callee, call->origin, body ? kChosen : callee && !fits ? kTooLarge : kNo);
            return body ? std::optional<NodePtr>(body) : std::nullopt;
          }
          if (const auto* call = node.as<Call>(); call && call->callee) {
            const Ref<PrimFunc> callee = inlined(call->callee->name, depth + 1);
            const bool fits = callee && has_room(call->callee->name);
            const Expr value = fits ? expression(*call, *callee) : Expr();
            if (value) add_size(name, call->callee->name);
            report(*call->callee, call->origin,
                   value             ? kChosen
                   : callee && !fits ? kTooLarge
                                     : kNo);
            return value ? std::optional<NodePtr>(value) : std::nullopt;
          }
          return std::nullopt;
        });
    return done_[name] = next;
  }

  // What may be added to the module by inlining: functions that each call the one before twice
  // would double it with every one. A call beyond it stays a call.
  static constexpr int64_t kFree = 200'000, kGrowth = 16;

  bool has_room(const std::string& callee) const { return sizes_.at(callee) <= room_; }
  void add_size(const std::string& caller, const std::string& callee) {
    sizes_[caller] += sizes_.at(callee);
    room_ -= sizes_.at(callee);
  }

  static constexpr const char *kChosen = "chosen", *kNo = "no-inline-form",
                              *kTooLarge = "too-large";
  static void report(const GlobalVar& callee, const Origin& origin, const char* reason) {
    record({"InlineCalls",
            callee.name,
            reason == kChosen ? "inlined" : "kept",
            reason,
            {},
            "",
            origin});
  }

  bool is_chosen(const std::string& callee, const Attrs* annotations) const {
    if (annotations->contains("inline")) return annotations->flag("inline");
    const auto function = module_.find<PrimFunc>(callee);
    return function && (all_ || function->attrs.flag("tir.inline"));
  }

  /// Whether the regions can stand for the parameters in this body.
  static bool suits(const PrimFunc& callee, const std::vector<NodePtr>& args) {
    if (args.size() != callee.params.size()) return false;
    bool has_views = false, has_vectors = false, uses_pointer = false;
    std::set<const Node*> pointers;
    for (size_t i = 0; i < callee.params.size(); ++i) {
      if (!callee.buffers[i]) continue;
      pointers.insert(callee.params[i].get());
      if (!is_whole_buffer(args[i])) pointers.insert(callee.buffers[i]->data.get());
    }
    walk(callee.body, [&](const NodePtr& node) {
      if (const auto* block = node.as<Block>()) has_views |= !block->match_buffers.empty();
      if (node.as<Var>()) uses_pointer |= pointers.count(node.get()) != 0;
      const auto see = [&](const std::vector<Expr>& indices) {
        for (const Expr& index : indices) has_vectors |= index->dtype.is_vector();
      };
      if (const auto* load = node.as<BufferLoad>()) see(load->indices);
      if (const auto* store = node.as<BufferStore>()) see(store->indices);
    });
    if (uses_pointer) return false;
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* region = args[i].as<BufferRegion>();
      if (static_cast<bool>(callee.buffers[i]) != (region != nullptr)) return false;
      if (!region) continue;
      if (kept_extents(*region).size() != callee.buffers[i]->ndim()) return false;
      bool drops = false;
      for (size_t d = 0; d < region->region.size(); ++d) drops |= region->drops(d);
      if (drops && has_views) return false;
      if (has_vectors && !region->region.empty() && region->drops(region->region.size() - 1))
        return false;
    }
    return true;
  }

  struct Instance {
    Stmt body;
    std::vector<Stmt> before;  // values that the body might change
  };

  /// A copy of the callee's body in terms of the caller.
  static Instance instantiate(const PrimFunc& callee, std::vector<NodePtr> args) {
    Instance out;
    const auto settled = [&](const Expr& value, const std::string& name) -> Expr {
      if (!reads_memory(value)) return value;
      const Ref<Var> var = make<Var>(name, value->dtype);
      out.before.push_back(make<Bind>(var, value, value->origin));
      return var;
    };
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* region = args[i].as<BufferRegion>();
      if (!region) {
        args[i] = settled(downcast<ExprNode>(args[i]), callee.params[i]->name);
        continue;
      }
      std::vector<Range> ranges;
      for (const Range& range : region->region)
        ranges.push_back({settled(range.min, "first"), settled(range.extent, "extent")});
      args[i] = make<BufferRegion>(region->buffer, std::move(ranges), region->drop, region->origin);
    }
    out.body = body_in_place(ref_to(&callee), args);
    return out;
  }

  static bool is_return(const Stmt& stmt) {
    const auto* evaluate = stmt.as<Evaluate>();
    const auto* call = evaluate ? evaluate->value.as<Call>() : nullptr;
    return call && call->is(IntrinsicId::kRet) &&
           !reads_memory(call->args.empty() ? NodePtr() : call->args[0]);
  }
  static bool drop_last_return(Stmt& body) {
    if (const auto* realize = body.as<BlockRealize>();
        realize && realize->block->iter_vars.empty() && is_int(realize->predicate, 1)) {
      Block::Parts parts = realize->block->parts();
      if (!drop_last_return(parts.body)) return false;
      body = make<BlockRealize>(realize->iter_values, realize->predicate,
                                make<Block>(std::move(parts), realize->block->origin),
                                realize->origin);
      return true;
    }
    std::vector<Stmt> stmts = stmts_of(body);
    if (stmts.empty() || !is_return(stmts.back())) return false;
    stmts.pop_back();
    body = seq(std::move(stmts));
    return true;
  }

  Stmt statement(const CallTir& call, const PrimFunc& callee) {
    if (!suits(callee, call.args)) return {};
    int returns = 0;
    walk<Call>(callee.body, [&](const Call& inner) { returns += inner.is(IntrinsicId::kRet); });
    Instance instance = instantiate(callee, call.args);
    Stmt body = instance.body;
    // A return that ends the body says nothing; any other leaves it early.
    if (returns > 1 || (returns == 1 && !drop_last_return(body))) return {};
    if (const auto* realize = body.as<BlockRealize>();
        realize && realize->block->iter_vars.empty() && is_int(realize->predicate, 1) &&
        !realize->block->init && realize->block->match_buffers.empty()) {
      Block::Parts parts = realize->block->parts();
      if (parts.alloc_buffers.empty() && parts.annotations.empty()) {
        body = parts.body;
      } else {
        // What it allocates stays its own: one block, which states what the call did.
        parts.name = call.callee->name;
        parts.reads.clear();
        parts.writes.clear();
        for (size_t i = 0; i < call.args.size(); ++i) {
          const auto* region = call.args[i].as<BufferRegion>();
          if (!region) continue;
          const auto plain = make<BufferRegion>(region->buffer, region->region);
          const ParamEffect effect = effects_.of(call.callee->name, i);
          if (effect.reads) parts.reads.push_back(plain);
          if (effect.writes) parts.writes.push_back(plain);
        }
        body = make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                                  make<Block>(std::move(parts), call.origin), call.origin);
      }
    }
    instance.before.push_back(body);
    return seq(std::move(instance.before));
  }

  // Of a callee that is one `return`, after some values with names.
  static Expr expression(const Call& call, const PrimFunc& callee) {
    if (!suits(callee, call.args)) return {};
    const Instance instance = instantiate(callee, call.args);
    if (!instance.before.empty()) return {};
    Stmt body = instance.body;
    if (const auto* realize = body.as<BlockRealize>();
        realize && realize->block->iter_vars.empty() && realize->block->alloc_buffers.empty() &&
        is_int(realize->predicate, 1))
      body = realize->block->body;
    std::vector<Stmt> stmts = stmts_of(body);
    if (stmts.empty()) return {};
    const auto* evaluate = stmts.back().as<Evaluate>();
    const auto* returned = evaluate ? evaluate->value.as<Call>() : nullptr;
    if (!returned || !returned->is(IntrinsicId::kRet) || returned->args.size() != 1) return {};
    Expr value = returned->arg(0);
    for (size_t i = stmts.size() - 1; i-- > 0;) {
      const auto* bind = stmts[i].as<Bind>();
      if (!bind) return {};
      value = make<Let>(bind->var, bind->value, value, bind->origin);
    }
    return value;
  }

  /// Private functions that nobody names any more go. What functions of the graph level name is
  /// not known here: beside one, all stay.
  static IRModule without_unused(IRModule module) {
    for (const auto& [name, function] : module.functions())
      if (!function.as<PrimFunc>() && !function.as<ExternFunction>()) return module;
    for (bool changed = true; changed;) {
      changed = false;
      std::set<std::string> named;
      for (const auto& [name, function] : module.functions())
        walk(function, [&](const NodePtr& node) {
          if (const auto* global = node.as<GlobalVar>()) named.insert(global->name);
        });
      const std::vector<IRModule::Entry> entries = module.functions();
      for (const auto& [name, function] : entries) {
        if (!function.as<PrimFunc>() || !function->is_private || named.count(name)) continue;
        module.erase(name);
        changed = true;
      }
    }
    return module;
  }

  IRModule module_;
  bool all_;
  CallEffects effects_;
  std::map<std::string, Ref<PrimFunc>> done_;
  std::map<std::string, int64_t> sizes_;  // of PrimFuncs in nodes, with what was inlined so far
  int64_t room_ = kFree;
};

}  // namespace

IRModule inline_calls(IRModule module, bool all) { return Inlining(std::move(module), all).run(); }

}  // namespace tenon::tir
