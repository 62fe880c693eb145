// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/external_modules.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/library_call.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"
#include "tenon/graph/transforms/unit_operators.h"
#include "tenon/graph/user_placement.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

using tir::ExternFunction;

std::vector<std::string> callers_of(const IRModule& module, const std::string& name) {
  std::vector<std::string> callers;
  for (const auto& [other, function] : module.functions()) {
    if (other == name) continue;
    bool calls = false;
    walk<FuncRef>(function, [&](const FuncRef& ref) { calls |= ref.name == name; });
    if (calls) callers.push_back(other);
  }
  return callers;
}

/// Calls of library functions in the places of calls of graph functions.
class LibraryCalls {
 public:
  LibraryCalls(IRModule& module, std::string backend)
      : module_(module), backend_(std::move(backend)) {}

  /// A call names the function that declares the symbol, or the symbol itself.
  enum class By : uint8_t { kFunction, kSymbol };

  /// From now on calls of `name` are calls of the symbol `wanted`.
  void take(const std::string& name, const std::string& wanted, By by) {
    const Ref<Function> function = module_.find<Function>(name);
    Target target{library_call_of(module_, *function, backend_, wanted), nullptr};
    target.callee = make<FuncRef>(target.call.callee);
    const std::string symbol = module_.find<ExternFunction>(target.call.callee)->symbol;
    if (by == By::kSymbol) {
      // A call by symbol finds what is declared, and what was derived is declared from here on.
      target.callee = make<ExternRef>(symbol);
      module_.set(target.call.callee,
                  with(*module_.find<ExternFunction>(target.call.callee),
                       [&](ExternFunction& copy) { copy.attrs.erase("derived"); }));
    }
    targets_.emplace(name, std::move(target));
    record_taken(operators_of_unit(module_, name), backend_, symbol);
    record(
        {"RunCodegen", name, "called", backend_, {}, "symbol `" + symbol + "`", function->origin});
  }

  void rewrite_calls() {
    if (targets_.empty()) return;
    const std::vector<IRModule::Entry> entries = module_.functions();
    for (const auto& [name, base] : entries) {
      const auto function = cast<Function>(base);
      if (!function || targets_.count(name)) continue;
      bool calls = false;
      walk<FuncRef>(function, [&](const FuncRef& ref) { calls |= targets_.count(ref.name) != 0; });
      if (calls) module_.set(name, rebuild(module_, function, rule()));
    }
    // What only stood for the calls goes, also where it was public.
    for (const auto& [name, target] : targets_)
      if (callers_of(module_, name).empty()) module_.erase(name);
  }

 private:
  struct Target {
    LibraryCall call;
    Value callee;
  };

  BindingRule rule() {
    return [this](BlockBuilder&, const Binding&, const Value& value) -> std::optional<Value> {
      const auto* call = value.as<Call>();
      const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
      const auto found = ref ? targets_.find(ref->name) : targets_.end();
      if (found == targets_.end()) return std::nullopt;
      return make<Call>(
          find_op("call_dps_packed"),
          std::vector<Value>{found->second.callee,
                             make<Tuple>(found->second.call.arguments_of(call->args))},
          Attrs(), std::vector<Type>{type_of(value, module_)}, call->origin);
    };
  }

  IRModule& module_;
  std::string backend_;
  std::map<std::string, Target> targets_;
};

// Regions whose composites have been taken are functions like others.
void dissolve_regions(IRModule& module, const std::string& backend) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || function->attrs.contains("Composite") || backend_of(*function) != backend)
      continue;
    bool was_taken = false, has_composites = false;
    walk<Call>(function->body, [&](const Call& call) {
      was_taken |= call.is("call_dps_packed") || call.is("call_tir");
      const auto* ref = call.op ? nullptr : call.callee.as<FuncRef>();
      const auto callee = ref ? module.find<Function>(ref->name) : nullptr;
      has_composites |= callee && callee->attrs.contains("Composite");
    });
    if (!was_taken || has_composites) continue;
    module.set(name, with(*function, [&](Function& copy) {
                 for (const char* attr : {"Codegen", "Compiler", "global_symbol"})
                   copy.attrs.erase(attr);
                 copy.is_private = true;
               }));
  }
}

// A library without hooks: composites by their names, and regions without composites by theirs.
IRModule call_library(IRModule module, const std::string& backend) {
  module = lift_functions(std::move(module));
  LibraryCalls calls(module, backend);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || backend_of(*function) != backend || callers_of(module, name).empty()) continue;
    if (function->attrs.contains("Composite")) {
      calls.take(name, backend + "." + composite_name(*function), LibraryCalls::By::kFunction);
      continue;
    }
    bool has_composites = false;
    walk<FuncRef>(function, [&](const FuncRef& ref) {
      const auto inner = module.find<Function>(ref.name);
      has_composites |= inner && inner->attrs.contains("Composite");
    });
    if (!has_composites)
      calls.take(name, function->attrs.get<std::string>("global_symbol").value_or(name),
                 LibraryCalls::By::kSymbol);
  }
  calls.rewrite_calls();
  dissolve_regions(module, backend);
  return module;
}

// Back ends that functions of the module, or inside of them, are for.
std::set<std::string> named_backends(const IRModule& module) {
  std::set<std::string> names;
  for (const auto& [name, function] : module.functions())
    walk<Function>(function, [&](const Function& inner) {
      if (std::string backend = backend_of(inner); !backend.empty()) names.insert(backend);
    });
  return names;
}

// A back end that was given units and made code for none of them: the module needs it no more.
IRModule without_library(IRModule module, const std::string& name) {
  if (has_code_of(module, name)) return module;
  UserPlacement user = UserPlacement::of(module);
  std::erase(user.backends, name);
  return user.in(std::move(module));
}

IRModule run_registered(IRModule module, const Backend& backend, const BackendContext& context) {
  const bool has_units = named_backends(module).count(backend.name) != 0;
  const bool takes_kernels =
      std::any_of(backend.patterns.begin(), backend.patterns.end(),
                  [](const FusionPattern& pattern) { return static_cast<bool>(pattern.tir); });
  if (backend.lower) {
    module = run_backend(std::move(module), backend, context);
    if (backend.unit == Backend::Unit::kComposite) dissolve_regions(module, backend.name);
  } else {
    module = call_library(std::move(module), backend.name);
  }
  module = generate_backend_code(std::move(module), backend);
  return has_units && !takes_kernels ? without_library(std::move(module), backend.name) : module;
}

std::string known_backends() {
  std::string text;
  for (const auto& backend : all_backends())
    text += (text.empty() ? "`" : ", `") + backend->name + "`";
  return text.empty() ? "none is" : text + " are";
}

// Kernels that patterns over TensorIR found, of `backend` or (empty) of each that is there; nobody
// else's: they are programs as they are.
IRModule take_kernels(IRModule module, const std::string& backend) {
  std::set<std::string> names;
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<tir::PrimFunc>()) continue;
    const std::string wanted = backend_of(*function);
    if (!wanted.empty() && (backend.empty() ? find_backend(wanted) != nullptr : wanted == backend))
      names.insert(wanted);
  }
  for (const std::string& name : names) {
    module = composites_of_kernels(std::move(module), name);
    const auto taker = find_backend(name);
    if (taker && taker->unit == Backend::Unit::kRegion)
      module = merge_composite_functions(std::move(module));
  }
  return module;
}

void rename_function(IRModule& module, const std::string& from, const std::string& to) {
  const std::vector<IRModule::Entry> entries = module.functions();
  IRModule renamed;
  renamed.attrs = module.attrs;
  for (const auto& [name, base] : entries) {
    BaseFunc function = base;
    if (const auto graph = cast<Function>(base))
      function = rewrite(graph, [&](const NodePtr& node) -> std::optional<NodePtr> {
        const auto* ref = node.as<FuncRef>();
        if (!ref || ref->name != from) return std::nullopt;
        return make<FuncRef>(to, ref->origin);
      });
    renamed.set(name == from ? to : name, function);
  }
  module = std::move(renamed);
}

IRModule run_on_function(IRModule module, const CodegenRequest& request, BackendContext context) {
  const auto function = module.find<Function>(request.function);
  if (!function)
    throw CompileError(kUndefined, {}, "RunCodegen: the module has no graph function `{}`",
                       request.function);
  if (callers_of(module, request.function).empty())
    throw CompileError(kBadOption, function->origin,
                       "RunCodegen: nothing calls function `{}`, so there is no call to replace",
                       request.function);
  const auto backend = find_backend(request.backend);
  if (!backend || !backend->lower) {
    LibraryCalls calls(module, request.backend);
    const std::string symbol = !request.symbol.empty() ? request.symbol
                               : function->attrs.contains("Composite")
                                   ? c_symbol(composite_name(*function))
                                   : request.function;
    calls.take(request.function, symbol, LibraryCalls::By::kSymbol);
    calls.rewrite_calls();
    return module;
  }
  const std::string name = request.symbol.empty() ? request.function : request.symbol;
  if (name != request.function) {
    if (const BaseFunc taken = module.find(name))
      throw CompileError(kRedefined, taken->origin,
                         "RunCodegen: symbol `{}` is that of another function of the module", name);
    rename_function(module, request.function, name);
  }
  // This function is the only one of the back end while it runs.
  const std::vector<IRModule::Entry> entries = module.functions();
  std::map<std::string, Attrs> set_aside;
  for (const auto& [other, base] : entries) {
    const auto graph = cast<Function>(base);
    if (!graph || other == name || backend_of(*graph) != backend->name) continue;
    set_aside.emplace(other, graph->attrs);
    module.set(other, with(*graph, [&](Function& copy) {
                 for (const char* attr : {"Composite", "Codegen", "Compiler"})
                   copy.attrs.erase(attr);
               }));
  }
  module.set(name, with(module.find<Function>(name), [&](Function& unit) {
               const bool is_composite = unit.attrs.contains("Composite");
               for (const char* attr : {"Codegen", "Compiler"}) unit.attrs.erase(attr);
               if (backend->unit == Backend::Unit::kRegion) {
                 unit.attrs.erase("Composite");
                 unit.attrs.set("Codegen", backend->name);
               } else if (!is_composite || backend_of(unit) != backend->name) {
                 unit.attrs.set("Composite", backend->name + "." + request.function);
               }
               unit.is_private = true;
             }));
  context.symbol = request.symbol;
  module = run_backend(std::move(module), *backend, context, OnRefusal::kError);
  module = generate_backend_code(std::move(module), *backend);
  for (const auto& [other, attrs] : set_aside)
    if (const auto graph = module.find<Function>(other)) {
      module.set(other, with(*graph, [&](Function& copy) { copy.attrs = attrs; }));
    }
  return module;
}

}  // namespace

IRModule run_codegen(IRModule module, const CodegenRequest& request,
                     const BackendContext& context) {
  BackendContext own = context;
  own.options = request.options;
  if (!request.function.empty()) return run_on_function(std::move(module), request, own);
  module = take_kernels(std::move(module), request.backend);
  if (!request.backend.empty()) {
    const auto backend = find_backend(request.backend);
    module = backend ? run_registered(std::move(module), *backend, own)
                     : call_library(std::move(module), request.backend);
    return eliminate_dead_code(std::move(module));
  }
  // Libraries that kernels are for; --call-by-name has called those of operators before.
  for (const std::string& name : UserPlacement::of(module).libraries) {
    if (find_backend(name)) continue;
    module = call_library(take_kernels(std::move(module), name), name);
  }
  for (const std::string& name : named_backends(module)) {
    const auto backend = find_backend(name);
    if (!backend)
      throw CompileError(kBadOption, {},
                         "RunCodegen: the module has functions for back end `{0}`, which is not "
                         "there ({1}); RunCodegen(backend=\"{0}\") calls a library by name",
                         name, known_backends());
    module = run_registered(std::move(module), *backend, own);
  }
  return eliminate_dead_code(std::move(module));
}

}  // namespace tenon::graph
