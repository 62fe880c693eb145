#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

static bool is_composite(const Call& call) {
  return call.is("nn.lstm") || call.is("nn.gru") || call.is("nn.rnn") || call.is("nn.gemm");
}

IRModule decompose_ops(IRModule module) {
  return rebuild_all(
      std::move(module),
      [](BlockBuilder& builder, const Binding&, const Value& value) -> std::optional<Value> {
        const auto* call = value.as<Call>();
        if (!call || !call->op || !is_composite(*call)) return std::nullopt;
        return call->op->lower(builder, *call);
      });
}

}  // namespace tenon::graph
