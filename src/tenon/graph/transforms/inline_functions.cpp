#include <algorithm>
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/kernel_codes.h"

namespace tenon::graph {

namespace {

class Inliner {
 public:
  explicit Inliner(IRModule module) : module_(std::move(module)) {}

  IRModule run() {
    const std::vector<IRModule::Entry> entries = module_.functions();
    const bool has_main = static_cast<bool>(module_.find<Function>("main"));
    for (const auto& [name, base] : entries) {
      const auto function = cast<Function>(base);
      if (!function || is_group(*function) || (has_main && name != "main") || !calls(*function))
        continue;
      path_ = {name};
      module_.set(name, rebuild(module_, function, rule()));
    }
    if (has_main)
      for (const std::string& name : inlined_) module_.erase(name);
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
      module.set(name, rebuild(module, function,
                               [&](BlockBuilder&, const Binding& binding,
                                   const Value& value) -> std::optional<Value> {
                                 const auto* inner = value.as<FunctionValue>();
                                 if (!inner || !is_closed(*inner->function)) return std::nullopt;
                                 auto* lifted = new Function(*inner->function);
                                 lifted->is_private = true;
                                 changed = true;
                                 return Value(make<FuncRef>(
                                     module.add_unique(binding.var->name, Ref<Function>(lifted))));
                               }));
    }
  }
  return module;
}

IRModule inline_functions(IRModule module) {
  return Inliner(lift_functions(std::move(module))).run();
}

}  // namespace tenon::graph
