#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

static bool is_call_primitive(const Call& call) {
  return call.is("call_tir") || call.is("call_tir_inplace") || call.is("call_dps_packed") ||
         call.is("call_pure_packed") || call.is("call_inplace_packed");
}

IRModule legalize_ops(IRModule module) {
  constexpr int kMostRounds = 16;  // a lowering may give operators again; each round lowers those
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    module = rebuild_all(
        std::move(module),
        [&](BlockBuilder& builder, const Binding& binding,
            const Value& value) -> std::optional<Value> {
          const auto* call = value.as<Call>();
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
            if (!call->op->pure) return std::nullopt;  // print, assert: lowering the graph decides
            throw CompileError(kUnsupported, call->origin, "operator `{}` has no lowering",
                               call->op->name);
          }
          changed = true;
          return call->op->lower(builder, *call);
        });
    if (!changed) return module;
  }
  throw InternalError("operators still give operators after 16 rounds of LegalizeOps");
}

}  // namespace tenon::graph
