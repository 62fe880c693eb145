// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/loop.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/support/limit_codes.h"
#include "tenon/tir/call_graph.h"

namespace tenon::graph {

namespace {

// How many bindings functions have once the calls in them are inlined, found without inlining:
// functions that each call the one before twice double it with every one.
class InlinedSizes {
 public:
  using CalleeOf = std::function<Ref<Function>(const Value& value, std::string& name)>;
  InlinedSizes(const IRModule& module, CalleeOf callee_of) : callee_of_(std::move(callee_of)) {
    for (const auto& [name, base] : module.functions())
      if (const auto function = cast<Function>(base)) most_ += kGrowth * read(*function).bindings;
  }

  /// \throws CompileError (kTooMuchWork, kTooDeep) where `function` and those before it would have
  /// more bindings than what was written justifies.
  void add(const std::string& name, const Ref<Function>& function) {
    total_ = saturated(total_, of(name, function), 1);
    if (total_ <= most_) return;
    throw CompileError(kTooMuchWork, function->origin,
                       "`{}` has {} bindings once the functions that it calls are inlined; at most "
                       "{} are accepted in all",
                       name, total_ == kHuge ? "more than 10^15" : std::to_string(total_), most_);
  }

 private:
  static constexpr int64_t kFree = 100'000, kGrowth = 16, kHuge = 1'000'000'000'000'000;

  struct Calls {
    int64_t bindings = 0;
    std::vector<std::pair<std::string, Ref<Function>>> callees;
  };
  struct Step {
    std::string name;
    Ref<Function> function;
    Calls calls;
    size_t next = 0;
    int64_t size = 0;
    int depth = 1;
  };

  static int64_t saturated(int64_t sum, int64_t term, int64_t times) {
    if (times > 0 && term > (kHuge - sum) / times) return kHuge;
    return sum + term * times;
  }

  Calls read(const Function& function) const {
    Calls out;
    walk(function.body, [&](const NodePtr& node) {
      out.bindings += node.as<Binding>() != nullptr;
      std::string name;
      if (const auto value = cast<ValueNode>(node))
        if (const Ref<Function> callee = callee_of_(value, name))
          out.callees.emplace_back(name, callee);
    });
    return out;
  }

  // Callees first, without recursion: how deep calls nest is up to the module. A call that closes
  // a cycle counts as nothing; inlining reports it.
  int64_t of(const std::string& root, const Ref<Function>& function) {
    std::vector<Step> open;
    const auto begin = [&](const std::string& name, const Ref<Function>& f) {
      known_.try_emplace(name, 0, 0);
      Calls calls = read(*f);
      const int64_t bindings = calls.bindings;
      open.push_back({name, f, std::move(calls), 0, bindings});
    };
    if (!known_.count(root)) begin(root, function);
    while (!open.empty()) {
      Step& at = open.back();
      if (at.next < at.calls.callees.size()) {
        const auto& [name, callee] = at.calls.callees[at.next];
        const auto known = known_.find(name);
        if (known == known_.end()) {
          begin(name, callee);
          continue;
        }
        at.size = saturated(at.size, known->second.first, 1);
        at.depth = std::max(at.depth, known->second.second + 1);
        ++at.next;
        continue;
      }
      if (at.depth > tir::kMaxCallDepth)
        throw CompileError(kTooDeep, at.function->origin,
                           "calls nest more than {} deep from graph function `{}` on",
                           tir::kMaxCallDepth, at.name);
      known_[at.name] = {at.size, at.depth};
      open.pop_back();
    }
    return known_.at(root).first;
  }

  CalleeOf callee_of_;
  std::map<std::string, std::pair<int64_t, int>> known_;  // bindings, depth of calls
  int64_t most_ = kFree, total_ = 0;
};

class Inliner {
 public:
  explicit Inliner(IRModule module) : module_(std::move(module)) {}

  IRModule run() {
    const std::vector<IRModule::Entry> entries = module_.functions();
    const bool has_main = static_cast<bool>(module_.find<Function>("main"));
    const std::set<std::string> bodies = loop_bodies(module_);
    InlinedSizes sizes(
        module_, [this](const Value& value, std::string& name) { return callee_of(value, name); });
    for (const auto& [name, base] : entries) {
      const auto function = cast<Function>(base);
      if (!function || is_group(*function) || (has_main && name != "main" && !bodies.count(name)) ||
          !calls(*function))
        continue;
      sizes.add(name, function);
      path_ = {name};
      module_.set(name, rebuild(module_, function, rule()));
    }
    if (has_main)
      for (const std::string& name : inlined_)
        if (!bodies.count(name)) module_.erase(name);
    return std::move(module_);
  }

 private:
  // What FuseOps makes and FuseTIR joins: calls of kernels, the last of which gives the result.
  static bool is_group(const Function& function) {
    if (!function.attrs.flag("Primitive") || function.attrs.contains("Compiler") ||
        function.attrs.contains("Composite"))
      return false;
    const Binding* last = nullptr;
    for (const Ref<BindingBlock>& block : function.body->blocks)
      for (const Ref<Binding>& binding : block->bindings) {
        const auto* call = binding->value.as<Call>();
        if (!call || !call->op || call->op->name != "call_tir") return false;
        const auto* type = binding->var->type.as<TensorType>();
        if (!type || !type->shape || binding->match) return false;
        last = binding.get();
      }
    return last && last->var.same_as(function.body->body);
  }
  // The function of the module, or the closure, that a call of no operator names.
  Ref<Function> callee_of(const Value& value, std::string& name) const {
    const auto* call = value.as<Call>();
    if (!call || call->op) return {};
    if (const auto* ref = call->callee.as<FuncRef>()) {
      name = ref->name;
      const auto function = module_.find<Function>(name);
      return function && !is_group(*function) ? function : nullptr;
    }
    return {};
  }
  bool calls(const Function& function) const {
    bool found = false;
    walk(function.body, [&](const NodePtr& node) {
      std::string name;
      if (const auto value = cast<ValueNode>(node))
        found |= static_cast<bool>(callee_of(value, name));
    });
    return found;
  }

  BindingRule rule() {
    return [this](BlockBuilder& builder, const Binding& binding,
                  const Value& value) -> std::optional<Value> {
      std::string name;
      const Ref<Function> callee = callee_of(value, name);
      if (!callee) return std::nullopt;
      if (std::find(path_.begin(), path_.end(), name) != path_.end())
        throw CompileError(kRecursion, value->origin, "graph function `{}` calls itself", name);
      const auto* call = value.as<Call>();
      if (call->args.size() != callee->params.size())
        throw CompileError(kBadArgument, value->origin,
                           "graph function `{}` is called with {} arguments; it has {}", name,
                           call->args.size(), callee->params.size());
      if (has_no_body(*callee))
        throw CompileError(kNoKernel, value->origin ? value->origin : binding.origin,
                           "no kernel takes this call of `{}`, which has no body: {}",
                           callee->attrs.get<std::string>("op").value_or(name),
                           KernelTable(module_).nearest_refusal(module_, *call))
            .note(callee->origin, "it is declared here");
      const Ref<Function> copy = renew_definitions(callee);
      Substitution values;
      for (size_t i = 0; i < call->args.size(); ++i) {
        unify(copy->params[i]->type, type_of(call->args[i]), values);
        values.emplace(copy->params[i].get(), call->args[i]);
      }
      path_.push_back(name);
      const Value result = emit_body(builder, *copy->body, values, rule());
      path_.pop_back();
      inlined_.insert(name);
      builder.set_origin(binding.origin);
      return result;
    };
  }

  IRModule module_;
  std::vector<std::string> path_;
  std::set<std::string> inlined_;
};

// Whether a function uses variables of the one around it.
bool is_closed(const Function& function) {
  std::set<const Node*> defined;
  for (const Ref<Var>& param : function.params) defined.insert(param.get());
  walk<Binding>(function.body, [&](const Binding& binding) { defined.insert(binding.var.get()); });
  walk<Function>(function.body, [&](const Function& inner) {
    for (const Ref<Var>& param : inner.params) defined.insert(param.get());
  });
  bool closed = true;
  walk<Var>(function.body, [&](const Var& var) { closed = closed && defined.count(&var); });
  return closed;
}

}  // namespace

IRModule lift_functions(IRModule module) {
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<IRModule::Entry> entries = module.functions();
    for (const auto& [name, base] : entries) {
      const auto function = cast<Function>(base);
      bool has_closed = false;
      if (function)
        walk<FunctionValue>(function->body, [&](const FunctionValue& inner) {
          has_closed |= is_closed(*inner.function);
        });
      if (!has_closed) continue;
      module.set(
          name, rebuild(module, function,
                        [&](BlockBuilder&, const Binding& binding,
                            const Value& value) -> std::optional<Value> {
                          const auto* inner = value.as<FunctionValue>();
                          if (!inner || !is_closed(*inner->function)) return std::nullopt;
                          const Ref<Function> lifted = with(
                              *inner->function, [&](Function& copy) { copy.is_private = true; });
                          changed = true;
                          return Value(make<FuncRef>(module.add_unique(binding.var->name, lifted)));
                        }));
    }
  }
  return module;
}

IRModule inline_functions(IRModule module) {
  return Inliner(lift_functions(std::move(module))).run();
}

}  // namespace tenon::graph
