// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/needed_alignment.h"

#include <algorithm>

#include "tenon/ir/visit.h"
#include "tenon/tir/call_graph.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

static std::vector<int64_t> declared(const ExternFunction& function) {
  std::vector<int64_t> needed;
  for (const Ref<Buffer>& buffer : function.buffers)
    needed.push_back(buffer && buffer->alignment > std::max<int64_t>(1, buffer->dtype.bytes())
                         ? buffer->alignment
                         : 1);
  return needed;
}

// By the pointers of parameters and of what views them: which parameter it is.
static std::unordered_map<const Node*, size_t> parameters_of(const PrimFunc& function) {
  std::unordered_map<const Node*, size_t> root;
  for (size_t i = 0; i < function.params.size(); ++i)
    if (function.buffers[i]) root[function.buffers[i]->data.get()] = i;
  // A view stands behind what it shows.
  walk<DeclBuffer>(function.body, [&](const DeclBuffer& view) {
    const Node* from = view.data.get();
    const auto* call = view.data.as<Call>();
    if (call && call->is(IntrinsicId::kAddressOf) && !call->args.empty())
      if (const auto* at = call->args[0].as<BufferLoad>()) from = at->buffer->data.get();
    if (const auto it = root.find(from); it != root.end())
      root.emplace(view.buffer->data.get(), it->second);
  });
  return root;
}

const std::vector<int64_t>& NeededAlignments::all(const std::string& name, int depth) {
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  static const std::vector<int64_t> kNothing;
  if (depth > kMaxCallDepth) return kNothing;  // calls that nest deeper are an error of their own
  if (const auto external = module_.find<ExternFunction>(name))
    return known_[name] = declared(*external);
  known_[name] = {};  // where a cycle closes
  const auto function = module_.find<PrimFunc>(name);
  if (!function) return kNothing;
  std::vector<int64_t> needed(function->params.size(), 1);
  const std::unordered_map<const Node*, size_t> root = parameters_of(*function);
  walk<CallTir>(function->body, [&](const CallTir& call) {
    for (size_t k = 0; k < call.args.size(); ++k) {
      const auto* region = call.args[k].as<BufferRegion>();
      const auto it = region ? root.find(region->buffer->data.get()) : root.end();
      if (it == root.end()) continue;
      const std::vector<int64_t>& inner = all(call.callee->name, depth + 1);
      if (k < inner.size()) needed[it->second] = std::max(needed[it->second], inner[k]);
    }
  });
  return known_[name] = std::move(needed);
}

}  // namespace tenon::tir
