#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

static bool is_call_primitive(const Call& call) {
  return call.is("call_tir") || call.is("call_tir_inplace") || call.is("call_dps_packed") ||
         call.is("call_pure_packed") || call.is("call_inplace_packed");
}

// In a program, kernels that nothing calls may go from here on, and declarations of operators.
static IRModule without_kernels(IRModule module, const KernelTable& kernels) {
  if (!module.contains("main")) return module;
  const auto hide = [&](const std::string& name, auto* copy) {
    copy->is_private = true;
    module.set(name, BaseFunc(copy));
  };
  for (const OperatorKernel& kernel : kernels.kernels())
    if (!kernel.function->is_private) hide(kernel.name, new tir::PrimFunc(*kernel.function));
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries)
    if (declares_operator(*function) && !function->is_private)
      hide(name, new Function(*function.as<Function>()));
  return module;
}

IRModule legalize_ops(IRModule module) {
  const KernelTable kernels(module);
  const IRModule given = module;
  constexpr int kMostRounds = 16;  // a lowering may give operators again; each round lowers those
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    module = rebuild_all(
        std::move(module),
        [&](BlockBuilder& builder, const Binding& binding,
            const Value& value) -> std::optional<Value> {
          const auto* call = value.as<Call>();
          if (call)
            if (auto own = kernels.use(builder, *call)) {
              changed = true;
              return own;
            }
          if (!call || !call->op || is_call_primitive(*call) || call->is("reshape"))
            return std::nullopt;
          const bool only_reshapes = call->is("expand_dims") || call->is("squeeze") ||
                                     call->is("flatten") || call->is("nn.batch_flatten");
          if (only_reshapes) {
            const Type type = type_of(value);
            const auto* tensor = type.as<TensorType>();
            if (tensor && tensor->has_shape()) {
              changed = true;
              return builder.op("reshape", {call->args.at(0), make<ShapeExpr>(*tensor->shape)}, {},
                                binding.var->name);
            }
          }
          if (!call->op->lower) {
            if (call->is("undefined")) return std::nullopt;
            if (!call->op->pure) return std::nullopt;  // print, assert: lowering the graph decides
            throw CompileError(kUnsupported, call->origin, "operator `{}` has no lowering",
                               call->op->name);
          }
          changed = true;
          return call->op->lower(builder, *call);
        });
    // The body of a declared operator is its meaning, whatever kernels compute it.
    for (const auto& [name, function] : given.functions())
      if (declares_operator(*function)) module.set(name, function);
    if (!changed) return without_kernels(std::move(module), kernels);
  }
  throw InternalError("operators still give operators after 16 rounds of LegalizeOps");
}

}  // namespace tenon::graph
