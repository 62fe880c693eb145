// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "tenon/graph/kernels.h"
#include "tenon/graph/op.h"
#include "tenon/graph/remove_unused.h"
#include "tenon/graph/transforms.h"

namespace tenon::graph {

// Names of functions that `function` calls or mentions.
static std::vector<std::string> callees(const BaseFunc& function) {
  std::vector<std::string> names;
  walk(function, [&](const NodePtr& node) {
    if (const auto* ref = node.as<FuncRef>()) names.push_back(ref->name);
    if (const auto* global = node.as<GlobalVar>()) names.push_back(global->name);
  });
  return names;
}

// What SplitCallTIRByPattern looks for and takes out.
static bool is_kernel_pattern(const BaseFunc& function) {
  return function->attrs.contains("Pattern") && !function.as<Function>();
}

// What SelectKernels may still put in the place of an operator.
static bool is_operator_kernel(const BaseFunc& function) {
  return function->attrs.contains("op") && function.as<tir::PrimFunc>();
}

static bool has_operators(const IRModule& module) {
  bool found = false;
  for (const auto& [name, function] : module.functions()) {
    if (found || !function.as<Function>() || function->attrs.contains("Pattern") ||
        declares_operator(*function))
      continue;
    walk_if(function, [&](const NodePtr& node) {
      const auto* call = node.as<Call>();
      found = found || (call && operator_call(module, *call));
      return !found;
    });
  }
  return found;
}

// Names of the patterns and declarations that say what a kernel computes.
static std::vector<std::string> meanings(const IRModule& module, const BaseFunc& kernel) {
  const auto one = kernel->attrs.get<std::string>("op");
  const std::vector<std::string> operators =
      one ? std::vector<std::string>{*one}
          : kernel->attrs.strings("op").value_or(std::vector<std::string>{});
  std::vector<std::string> out;
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<Function>()) continue;
    for (const char* attr : {"op", "Pattern"}) {
      const auto value = function->attrs.get<std::string>(attr);
      const bool is_meant =
          value && std::find(operators.begin(), operators.end(), *value) != operators.end();
      if (is_meant) out.push_back(name);
    }
  }
  return out;
}

// `module` without private functions that nobody reaches from the others, or from kernels where
// these are kept.
static IRModule without_unreached(const IRModule& module, bool keeps_kernels) {
  std::unordered_set<std::string> reached;
  std::vector<std::string> open;
  for (const auto& [name, function] : module.functions())
    if (!function->is_private || is_kernel_pattern(function) ||
        (keeps_kernels && is_operator_kernel(function)))
      open.push_back(name);
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!reached.insert(name).second) continue;
    const BaseFunc function = module.find(name);
    if (!function) continue;
    for (std::string& callee : callees(function)) open.push_back(std::move(callee));
    if (is_operator_kernel(function))
      for (std::string& meaning : meanings(module, function)) open.push_back(std::move(meaning));
  }
  IRModule out;
  out.attrs = module.attrs;
  for (const auto& [name, function] : module.functions())
    if (reached.count(name)) out.set(name, function);
  return out;
}

static bool has_kernels(const IRModule& module) {
  const std::vector<IRModule::Entry>& functions = module.functions();
  return std::any_of(functions.begin(), functions.end(),
                     [](const auto& entry) { return is_operator_kernel(entry.second); });
}

IRModule eliminate_dead_code(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries)
    if (const auto graph = cast<Function>(function)) module.set(name, remove_unused(graph));
  return without_unreached(module, has_kernels(module) && has_operators(module));
}

IRModule drop_unused_kernels(IRModule module) {
  return has_kernels(module) ? without_unreached(module, false) : std::move(module);
}

}  // namespace tenon::graph
