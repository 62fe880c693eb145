// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/graph/transforms/unit_operators.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/call_effects.h"

namespace tenon::graph {

using tir::ExternFunction;
using tir::PrimFunc;

static bool is_unit(const Function& function, const Backend& backend) {
  if (backend_of(function) != backend.name) return false;
  return function.attrs.contains("Composite") == (backend.unit == Backend::Unit::kComposite);
}

// The functions that others call; an entry is no part of a partition, whatever its attributes.
static std::vector<std::string> called_units(const IRModule& module, const Backend& backend) {
  std::vector<std::string> units;
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<Function>(base);
    if (!function || !is_unit(*function, backend)) continue;
    bool is_called = false;
    for (const auto& [other, caller] : module.functions())
      walk<FuncRef>(caller, [&](const FuncRef& ref) { is_called |= ref.name == name; });
    if (is_called) units.push_back(name);
  }
  return units;
}

static size_t output_count(const Function& function, const IRModule& module) {
  const Type result = function.result ? function.result : type_of(function.body->body, module);
  const auto* tuple = result.as<TupleType>();
  return tuple ? tuple->types.size() : 1;
}

// What the hook left under the function's name.
static void check_lowered(const IRModule& module, const std::string& name, const Function& before,
                          const Backend& backend) {
  if (const auto external = module.find<ExternFunction>(name)) {
    const std::vector<ExternSlot> slots = extern_slots(*external);
    const auto count = [&](ExternSlot::From from) {
      return static_cast<size_t>(std::count_if(
          slots.begin(), slots.end(), [&](const ExternSlot& slot) { return slot.from == from; }));
    };
    if (count(ExternSlot::From::kArgument) == before.params.size() &&
        count(ExternSlot::From::kOutput) == output_count(before, module))
      return;
    throw CompileError(kBadBackend, before.origin,
                       "back end `{}` made `{}` of graph function `{}`, whose inputs and outputs "
                       "are {} and {}",
                       backend.name, external->prototype(), name, before.params.size(),
                       output_count(before, module));
  }
  const auto lowered = module.find<PrimFunc>(name);
  if (!lowered)
    throw CompileError(kBadBackend, before.origin,
                       "back end `{}` made no PrimFunc of graph function `{}`", backend.name, name);
  const size_t wanted = before.params.size() + output_count(before, module);
  if (lowered->params.size() != wanted)
    throw CompileError(kBadBackend, before.origin,
                       "back end `{}` made a PrimFunc of {} parameters of graph function `{}`, "
                       "whose inputs and outputs are {}",
                       backend.name, lowered->params.size(), name, wanted);
  const std::vector<tir::ParamEffect> effects = tir::CallEffects(module).of(name);
  for (size_t i = before.params.size(); i < effects.size(); ++i)
    if (!effects[i].writes)
      throw CompileError(kBadBackend, before.origin,
                         "back end `{}` made a PrimFunc of graph function `{}` that does not write "
                         "its output `{}`, parameter {}",
                         backend.name, name, lowered->params[i]->name, i);
}

// What R.call_tir gives: each member of a tuple.
static std::vector<Type> results_of(const Type& type) {
  const auto* tuple = type.as<TupleType>();
  return tuple ? tuple->types : std::vector<Type>{type};
}

// ---- units that the back end refuses

static void record_refusal(const IRModule& module, const std::string& name, const Backend& backend,
                           const BackendRefusal& refusal) {
  const std::string detail =
      fmt::format("`{}` made no code for `{}`: {}", backend.name, name, refusal.words);
  const auto decision = [&](double flop, bool is_kernel) {
    Decision one{Decision::Step::kCodegen, Decision::Kind::kRefused, backend.name, name,
                 refusal.reason};
    one.flop = flop;
    one.is_kernel = is_kernel;
    return one;
  };
  for (const UnitOperator& op : operators_of_unit(module, name))
    record({"RunCodegen",
            op.subject,
            "refused",
            refusal.reason,
            {{"flop", op.flop}},
            detail,
            op.origin,
            decision(op.flop, false)});
  // What a kernel computes is known where it is called.
  bool is_kernel = false;
  walk<Call>(module.find<Function>(name)->body,
             [&](const Call& call) { is_kernel |= call.is("call_tir"); });
  if (!is_kernel) return;
  for (const CallSite& site : sites_of(module, name)) {
    const bool is_node = site.origin && site.origin->kind != OriginInfo::Kind::kScript;
    record({"RunCodegen",
            is_node ? site.origin.name() : name,
            "refused",
            refusal.reason,
            {{"kernels", 1}},
            detail,
            site.origin,
            decision(0, true)});
  }
}

// A function like others, and so are those that it calls.
static void dissolve(IRModule& module, const std::string& name, const Backend& backend) {
  const auto function = module.find<Function>(name);
  if (!function || backend_of(*function) != backend.name) return;
  module.set(name, with(*function, [&](Function& copy) {
               for (const char* attr : {"Composite", "PartitionedFromPattern", "Codegen",
                                        "Compiler", "Primitive", "Inline", "global_symbol"})
                 copy.attrs.erase(attr);
               copy.is_private = true;
             }));
  walk<FuncRef>(function->body, [&](const FuncRef& ref) { dissolve(module, ref.name, backend); });
}

IRModule run_backend(IRModule module, const Backend& backend, const BackendContext& context,
                     OnRefusal on_refusal) {
  module = lift_functions(std::move(module));
  const std::vector<std::string> units = called_units(module, backend);
  std::unordered_map<std::string, Ref<Function>> taken;
  std::vector<std::string> refused;
  for (const std::string& name : units) {
    const auto before = module.find<Function>(name);
    const std::vector<UnitOperator> operators = operators_of_unit(module, name);
    try {
      module = backend.lower(module, name, context);
    } catch (const BackendRefusal& refusal) {
      if (on_refusal == OnRefusal::kError) throw;
      record_refusal(module, name, backend, refusal);
      refused.push_back(name);
      continue;
    }
    check_lowered(module, name, *before, backend);
    if (const auto lowered = module.find<PrimFunc>(name)) {
      module.set(name, with(lowered->with_attr("target", backend.name),
                            [&](PrimFunc& copy) { copy.is_private = true; }));
    }
    taken.emplace(name, before);
    record_taken(operators, backend.name, name);
    record(
        {"RunBackend", name, "lowered", backend.name, {}, composite_name(*before), before->origin});
  }
  // After all units: they may share composites.
  for (const std::string& name : refused) dissolve(module, name, backend);
  if (taken.empty()) return module;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function) continue;
    bool calls = false;
    walk<FuncRef>(function, [&](const FuncRef& ref) { calls |= taken.count(ref.name) != 0; });
    if (!calls) continue;
    module.set(
        name,
        rebuild(
            module, function,
            [&](BlockBuilder&, const Binding& binding, const Value& value) -> std::optional<Value> {
              const auto* call = value.as<Call>();
              const auto* ref = call && !call->op ? call->callee.as<FuncRef>() : nullptr;
              if (!ref || !taken.count(ref->name)) return std::nullopt;
              const bool is_extern = static_cast<bool>(module.find<ExternFunction>(ref->name));
              return make<Call>(
                  find_op(is_extern ? "call_dps_packed" : "call_tir"),
                  std::vector<Value>{call->callee, make<Tuple>(call->args)}, Attrs(),
                  is_extern ? std::vector<Type>{binding.var->type} : results_of(binding.var->type),
                  call->origin);
            }));
  }
  return module;
}

// Of each function that graphs call, how many of its parameters are arguments: results follow. What
// foreign code inside does to memory is not known, but graphs do not let it change an argument.
static std::map<std::string, size_t> argument_counts(const IRModule& module) {
  std::map<std::string, size_t> counts;
  for (const auto& [name, function] : module.functions())
    if (function.as<Function>())
      walk<Call>(function, [&](const Call& call) {
        const auto* ref = call.is("call_tir") ? call.args.at(0).as<FuncRef>() : nullptr;
        const auto* args = ref ? call.args.at(1).as<Tuple>() : nullptr;
        if (args) counts[ref->name] = args->values.size();
      });
  return counts;
}

static std::vector<tir::ParamUse> uses_of(const PrimFunc& function,
                                          const std::vector<tir::ParamEffect>& effects,
                                          std::optional<size_t> arguments) {
  std::vector<tir::ParamUse> uses;
  for (size_t i = 0; i < effects.size(); ++i) {
    if (arguments && function.buffers[i])
      uses.push_back(i < *arguments ? tir::ParamUse::kIn : tir::ParamUse::kOut);
    else
      uses.push_back(!effects[i].writes ? tir::ParamUse::kIn
                     : effects[i].reads ? tir::ParamUse::kInOut
                                        : tir::ParamUse::kOut);
  }
  return uses;
}

IRModule generate_backend_code(IRModule module, const Backend& backend) {
  if (!backend.generate) return module;
  std::vector<std::string> names;
  for (const auto& [name, function] : module.functions())
    if (function.as<PrimFunc>() &&
        function->attrs.get<std::string>("target").value_or("") == backend.name)
      names.push_back(name);
  if (names.empty()) return module;
  const BackendCode code = backend.generate(module, names);
  const auto add = [&](ExternalModule::Kind kind, const std::string& bytes) {
    if (bytes.empty()) return;
    // Which of the two has which function, the code does not say.
    const bool both = !code.c_source.empty() && !code.object.empty();
    ExternalModule made = ExternalModule::of_bytes(
        kind, bytes, both ? std::vector<std::string>() : names, backend.name);
    made.link = code.link;
    add_external_module(module, made);
  };
  add(ExternalModule::Kind::kC, code.c_source);
  add(ExternalModule::Kind::kObject, code.object);
  tir::CallEffects effects(module);
  const std::map<std::string, size_t> arguments = argument_counts(module);
  for (const std::string& name : names) {
    const auto prim = module.find<PrimFunc>(name);
    const auto known = arguments.find(name);
    ExternFunction::Parts parts;
    parts.params = prim->params;
    parts.buffers = prim->buffers;
    parts.uses = uses_of(*prim, effects.of(name),
                         known == arguments.end() ? std::nullopt : std::optional(known->second));
    auto function = make<ExternFunction>(name, std::move(parts), Attrs(), prim->origin);
    module.set(name, function);
  }
  const std::set<std::string> generated(names.begin(), names.end());
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto caller = cast<Function>(base);
    if (!caller) continue;
    module.set(name, rewrite(caller, [&](const NodePtr& node) -> std::optional<NodePtr> {
                 const auto* call = node.as<Call>();
                 const auto* ref =
                     call && call->is("call_tir") ? call->args.at(0).as<FuncRef>() : nullptr;
                 if (!ref || !generated.count(ref->name)) return std::nullopt;
                 return make<Call>(find_op("call_dps_packed"), call->args, Attrs(), call->type_args,
                                   call->origin);
               }));
  }
  return module;
}

}  // namespace tenon::graph
