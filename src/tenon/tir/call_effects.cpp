#include "tenon/tir/call_effects.h"

#include <unordered_map>
#include <unordered_set>

#include "tenon/tir/call_graph.h"
#include "tenon/tir/callee.h"

namespace tenon::tir {

const std::vector<ParamEffect>& CallEffects::of(const std::string& name) {
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  // Callees first, without recursion: how deep calls nest is up to the module.
  struct Open {
    std::string name;
    std::vector<CallSite> calls;
    size_t next = 0;
  };
  std::unordered_set<std::string> started;
  std::vector<Open> open;
  const auto start = [&](const std::string& function) {
    if (!known_.count(function) && started.insert(function).second)
      open.push_back({function, calls_of(module_, function)});
  };
  start(name);
  while (!open.empty()) {
    Open& at = open.back();
    if (at.next < at.calls.size()) {
      const std::string callee = at.calls[at.next++].callee;
      start(callee);
      continue;
    }
    known_[at.name] = find(at.name);
    open.pop_back();
  }
  return known_.at(name);
}

const std::vector<ParamEffect>& CallEffects::after_callees(const std::string& name) {
  const auto [it, is_new] = known_.try_emplace(name);
  if (is_new) it->second = find(name);
  return it->second;
}

/// What the function itself shows, and what is known of its callees.
std::vector<ParamEffect> CallEffects::find(const std::string& name) const {
  std::vector<ParamEffect> effects;
  if (const auto external = module_.find<ExternFunction>(name)) {
    for (size_t i = 0; i < external->params.size(); ++i) {
      // What scratch holds means nothing before, but the function may read what it wrote there.
      const ParamUse use = external->uses[i];
      const bool is_buffer = static_cast<bool>(external->buffers[i]);
      effects.push_back({is_buffer && (use == ParamUse::kIn || use == ParamUse::kInOut),
                         is_buffer && use != ParamUse::kIn});
    }
    return effects;
  }
  const Ref<PrimFunc> function = module_.find<PrimFunc>(name);
  if (!function) return effects;
  effects.resize(function->params.size());
  std::unordered_map<const Node*, size_t> index;  // of buffers and their pointers
  for (size_t i = 0; i < function->buffers.size(); ++i) {
    if (!function->buffers[i]) continue;
    index[function->buffers[i].get()] = i;
    index[function->buffers[i]->data.get()] = i;
  }
  const auto mark = [&](const Node* buffer, bool reads, bool writes) {
    const auto it = index.find(buffer);
    if (it == index.end()) return;
    effects[it->second].reads |= reads;
    effects[it->second].writes |= writes;
  };
  walk(function->body, [&](const NodePtr& node) {
    // Views of a parameter stand for it; their definitions come before their uses.
    const auto alias = [&](const Node* view, const Node* source) {
      const auto it = index.find(source);
      if (it != index.end()) index.emplace(view, it->second);
    };
    if (const auto* block = node.as<Block>())
      for (const MatchBuffer& match : block->match_buffers)
        alias(match.buffer.get(), match.source->buffer.get());
    if (const auto* decl = node.as<DeclBuffer>())
      walk(decl->data, [&](const NodePtr& inner) {
        alias(decl->buffer.get(), inner.get());
        alias(decl->buffer->data.get(), inner.get());
      });
    if (const auto* load = node.as<BufferLoad>()) mark(load->buffer.get(), true, false);
    if (const auto* store = node.as<BufferStore>()) mark(store->buffer.get(), false, true);
    if (const auto* call = node.as<Call>(); call && call->op) {
      const bool writes = call->op->effect == Effect::kOpaque || call->is("address_of") ||
                          call->is("tvm_access_ptr");
      if (!writes || call->is("prefetch")) return;
      for (const NodePtr& arg : call->args)
        walk(arg, [&](const NodePtr& inner) { mark(inner.get(), true, true); });
    }
    if (const auto* call = node.as<CallTir>()) {
      const auto found = known_.find(call->callee->name);
      const BaseFunc function = module_.find(call->callee->name);
      const bool known = function.as<PrimFunc>() || function.as<ExternFunction>();
      static const std::vector<ParamEffect> kNone;
      const std::vector<ParamEffect>& callee = found == known_.end() ? kNone : found->second;
      for (size_t i = 0; i < call->args.size(); ++i) {
        const auto* region = call->args[i].as<BufferRegion>();
        if (!region) continue;
        const bool listed = known && i < callee.size();
        mark(region->buffer.get(), !listed || callee[i].reads, !listed || callee[i].writes);
      }
    }
  });
  return effects;
}

}  // namespace tenon::tir
