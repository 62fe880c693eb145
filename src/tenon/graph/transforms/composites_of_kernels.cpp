// SPDX-License-Identifier: Apache-2.0
// Kernels that patterns over TensorIR found, in the form in which back ends take what they match.
#include "tenon/graph/backend.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

using tir::PrimFunc;

Attrs attrs_of_composite(const PrimFunc& kernel) {
  Attrs attrs = kernel.attrs;
  for (const char* own : {"op_pattern", "tir.noalias", "tir.is_scheduled", "target"})
    attrs.erase(own);
  return attrs;
}

static constexpr const char* kScalarArguments = "scalar-arguments";

static Decision refusal_of(const std::string& backend, const std::string& kernel) {
  Decision decision{Decision::Step::kCodegen, Decision::Kind::kRefused, backend, kernel,
                    kScalarArguments};
  decision.is_kernel = true;
  return decision;
}

IRModule composites_of_kernels(IRModule module, const std::string& backend) {
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known;
  const auto wrap = [&](const PrimFunc& kernel, const std::string& hint,
                        const std::vector<Value>& args, const std::vector<Type>& types,
                        const Origin& origin) {
    BlockBuilder builder(module);
    std::vector<Ref<Var>> params;
    for (size_t i = 0; i < args.size(); ++i)
      params.push_back(make<Var>(fmt::format("arg{}", i), type_of(args[i])));
    builder.begin_function(params);
    builder.set_origin(origin);
    const Value result = builder.emit(make<Call>(
        find_op("call_tir"),
        std::vector<Value>{make<FuncRef>(hint),
                           make<Tuple>(std::vector<Value>(params.begin(), params.end()))},
        Attrs(), types, origin));
    const Attrs attrs = attrs_of_composite(kernel);
    const Ref<Function> function = with(builder.end_function(result, attrs, true, origin),
                                        [&](Function& copy) { copy.is_private = true; });
    std::string& name = known[function];
    if (name.empty())
      name = module.add_unique(identifier(*attrs.get<std::string>("Composite")), function);
    return name;
  };
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || function->attrs.contains("Composite")) continue;
    module.set(
        name,
        rebuild(
            module, function,
            [&](BlockBuilder&, const Binding& binding, const Value& value) -> std::optional<Value> {
              const auto* call = value.as<Call>();
              if (!call || !call->is("call_tir")) return std::nullopt;
              const auto* ref = call->args.at(0).as<FuncRef>();
              const auto* args = call->args.size() > 1 ? call->args[1].as<Tuple>() : nullptr;
              const auto kernel = ref ? module.find<PrimFunc>(ref->name) : nullptr;
              if (!kernel || !args || backend_of(*kernel) != backend) return std::nullopt;
              const Origin origin = binding.origin ? binding.origin : call->origin;
              if (call->args.size() > 2) {
                record({"RunCodegen",
                        ref->name,
                        "refused",
                        kScalarArguments,
                        {{"kernels", 1}},
                        fmt::format("`{}` takes no scalars of the graph in `{}`", backend,
                                    composite_name(*kernel)),
                        origin,
                        refusal_of(backend, ref->name)});
                return std::nullopt;
              }
              return make<Call>(
                  make<FuncRef>(wrap(*kernel, ref->name, args->values, call->type_args, origin)),
                  args->values, Attrs(), std::vector<Type>{}, call->origin);
            }));
  }
  return module;
}

}  // namespace tenon::graph
