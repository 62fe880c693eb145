// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/call_graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/tir/extern_function.h"

namespace tenon::tir {

const CallTir* first_call(const NodePtr& root) {
  const CallTir* found = nullptr;
  walk_if(root, [&](const NodePtr& node) {
    if (!found) found = node.as<CallTir>();
    return !found && !node.as<ExprNode>();
  });
  return found;
}

std::vector<CallSite> calls_of(const IRModule& module, const std::string& name) {
  const BaseFunc function = module.find(name);
  Ref<PrimFunc> prim = cast<PrimFunc>(function);
  if (const auto* external = function.as<ExternFunction>()) prim = external->reference();
  std::vector<CallSite> calls;
  if (!prim) return calls;
  std::unordered_set<std::string> seen;
  const std::string* last = nullptr;  // most often the same again
  walk(prim->body, [&](const NodePtr& node) {
    const GlobalVar* callee = nullptr;
    if (const auto* call = node.as<CallTir>()) callee = call->callee.get();
    if (const auto* call = node.as<Call>()) callee = call->callee.get();
    if (!callee || (last && *last == callee->name) || !seen.insert(callee->name).second) return;
    calls.push_back({callee->name, node.get()->origin});
    last = &callee->name;
  });
  return calls;
}

const ExternFunction* unsafe_function(const IRModule& module, const std::string& name) {
  std::vector<std::string> open{name};
  std::unordered_set<std::string> seen{name};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    if (const auto external = module.find<ExternFunction>(at);
        external && !external->is_thread_safe)
      return external.get();
    for (const CallSite& call : calls_of(module, at))
      if (seen.insert(call.callee).second) open.push_back(call.callee);
  }
  return nullptr;
}

namespace {

/// Follows calls depth first, without recursion.
class CallGraph {
 public:
  CallGraph(const IRModule& module,
            const std::function<const std::vector<CallSite>*(const std::string&)>& calls,
            Diagnostics& diagnostics, int most_deep)
      : module_(module), calls_(calls), diagnostics_(diagnostics), most_deep_(most_deep) {}

  std::vector<std::string> order;  // callees first

  void visit(const std::string& root) {
    if (!open(root)) return;
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next == step.calls->size()) {
        close();
        continue;
      }
      const CallSite& call = (*step.calls)[step.next++];
      const auto known = depth_.find(call.callee);
      if (known == depth_.end()) {
        open(call.callee);
      } else if (known->second == kOpen) {
        cycle(call);
      } else {
        step.depth = std::max(step.depth, known->second + 1);
      }
    }
  }

 private:
  static constexpr int kOpen = -1;
  struct Step {
    std::string name;
    const std::vector<CallSite>* calls;
    size_t next = 0;
    int depth = 1;
  };

  bool open(const std::string& name) {
    if (!module_.contains(name) || !depth_.emplace(name, kOpen).second) return false;
    path_.push_back({name, calls_(name)});
    return true;
  }

  void close() {
    const Step step = std::move(path_.back());
    path_.pop_back();
    depth_[step.name] = step.depth;
    order.push_back(step.name);
    if (step.depth == most_deep_ + 1)
      diagnostics_.error(kTooDeep, module_.find(step.name)->origin,
                         "calls nest {} deep from `{}` on; expected at most {}", step.depth,
                         step.name, most_deep_);
    if (!path_.empty()) path_.back().depth = std::max(path_.back().depth, step.depth + 1);
  }

  void cycle(const CallSite& call) {
    std::string text;
    bool inside = false;
    for (const Step& step : path_) {
      inside = inside || step.name == call.callee;
      if (inside) text += "`" + step.name + "` calls ";
    }
    diagnostics_.error(kRecursion, call.origin, "{}`{}`", text, call.callee)
        .notes.push_back({module_.find(call.callee)->origin,
                          fmt::format("`{}` is defined here; calls may not come back to their "
                                      "caller: write a repetition as a loop",
                                      call.callee)});
  }

  const IRModule& module_;
  const std::function<const std::vector<CallSite>*(const std::string&)>& calls_;
  Diagnostics& diagnostics_;
  int most_deep_;
  std::unordered_map<std::string, int> depth_;  // of the calls below a function, itself included
  std::vector<Step> path_;
};

}  // namespace

std::vector<std::string> callees_first(
    const IRModule& module,
    const std::function<const std::vector<CallSite>*(const std::string&)>& calls,
    Diagnostics& diagnostics, int most_deep) {
  CallGraph graph(module, calls, diagnostics, most_deep);
  for (const auto& [name, function] : module.functions()) graph.visit(name);
  return std::move(graph.order);
}

}  // namespace tenon::tir
