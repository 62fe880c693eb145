// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/kernels_of_graphs.h"

#include <unordered_map>

#include "tenon/tir/stmt.h"

namespace tenon::graph {

bool is_call_tir(const Call& call) { return call.is("call_tir") || call.is("call_tir_inplace"); }

std::unordered_set<std::string> kernels_of_graphs(const IRModule& module) {
  std::unordered_set<std::string> out;
  std::unordered_map<std::string, size_t> called, used;
  for (const auto& [name, function] : module.functions()) {
    if (function.as<tir::PrimFunc>() && function->is_private) out.insert(name);
    walk(function, [&](const NodePtr& node) {
      if (const auto* callee = node.as<GlobalVar>()) ++used[callee->name];
      if (const auto* callee = node.as<FuncRef>()) ++used[callee->name];
      if (const auto* call = node.as<Call>(); call && is_call_tir(*call))
        if (const auto* callee = call->args[0].as<FuncRef>()) ++called[callee->name];
    });
  }
  std::erase_if(out, [&](const std::string& name) { return called[name] != used[name]; });
  return out;
}

}  // namespace tenon::graph
