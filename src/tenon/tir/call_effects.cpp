#include "tenon/tir/call_effects.h"

#include <unordered_map>

#include "tenon/tir/callee.h"

namespace tenon::tir {

const std::vector<ParamEffect>& CallEffects::of(const std::string& name) {
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  std::vector<ParamEffect>& effects = known_[name];
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
  // Views of a parameter stand for it. Definitions come before uses, so one walk sees them in time.
  walk(function->body, [&](const NodePtr& node) {
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
  });
  const auto mark = [&](const Node* buffer, bool reads, bool writes) {
    const auto it = index.find(buffer);
    if (it == index.end()) return;
    effects[it->second].reads |= reads;
    effects[it->second].writes |= writes;
  };
  walk(function->body, [&](const NodePtr& node) {
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
      const bool known = callee_of(module_, call->callee->name).has_value();
      const std::vector<ParamEffect> callee = of(call->callee->name);
      for (size_t i = 0; i < call->args.size(); ++i) {
        const auto* region = call->args[i].as<BufferRegion>();
        if (!region) continue;
        const bool listed = known && i < callee.size();
        mark(region->buffer.get(), !listed || callee[i].reads, !listed || callee[i].writes);
      }
    }
  });
  return known_[name] = effects;
}

}  // namespace tenon::tir
