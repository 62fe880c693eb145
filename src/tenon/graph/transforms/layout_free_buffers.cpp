// SPDX-License-Identifier: Apache-2.0
// AttachAttrLayoutFreeBuffers: kernels learn which of their arguments are constants in every call.
#include <map>

#include "tenon/graph/expr.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/kernels_of_graphs.h"
#include "tenon/support/target.h"
#include "tenon/tir/schedule/default_schedule.h"

namespace tenon::graph {

int64_t bytes_of_constants(const IRModule& module) {
  int64_t bytes = 0;
  for (const auto& [name, function] : module.functions())
    if (function.as<Function>())
      walk<Constant>(function, [&](const Constant& constant) { bytes += constant.data->bytes(); });
  return bytes;
}

// Whether a run leaves nothing of them in the second cache for the next one.
static bool are_far(const IRModule& module) {
  const auto text = module.attrs.get<std::string>("target");
  const Target target = text ? parse_target(*text) : parse_target("llvm");
  return bytes_of_constants(module) > target.l2_bytes;
}

IRModule attach_layout_free_buffers(IRModule module) {
  const std::unordered_set<std::string> candidates = kernels_of_graphs(module);
  std::map<std::string, std::vector<int64_t>> params;  // that are constants so far
  for (const auto& [name, function] : module.functions())
    walk<Call>(function, [&](const Call& call) {
      const auto* callee = is_call_tir(call) ? call.args[0].as<FuncRef>() : nullptr;
      if (!callee || !candidates.count(callee->name)) return;
      const std::vector<Value>& args = call.args[1].as<Tuple>()->values;
      const auto [found, is_first] = params.try_emplace(callee->name);
      for (size_t i = 0; is_first && i < args.size(); ++i)
        found->second.push_back(static_cast<int64_t>(i));
      std::erase_if(found->second, [&](int64_t param) {
        const auto i = static_cast<size_t>(param);
        return i >= args.size() || !args[i].as<Constant>();
      });
    });
  const bool is_far = are_far(module);
  for (const auto& [name, free] : params) {
    if (free.empty()) continue;
    Ref<tir::PrimFunc> kernel =
        module.find<tir::PrimFunc>(name)->with_attr(tir::kLayoutFreeBuffers, free);
    if (is_far) kernel = kernel->with_attr(tir::kFarConstants, true);
    module.set(name, kernel);
  }
  return module;
}

}  // namespace tenon::graph
