// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

IRModule decompose_ops(IRModule module) {
  return rebuild_all(
      std::move(module),
      [](BlockBuilder& builder, const Binding&, const Value& value) -> std::optional<Value> {
        const auto* call = value.as<Call>();
        if (!call || !call->op || call->op->parts.empty()) return std::nullopt;
        return call->op->lower(builder, *call);
      });
}

}  // namespace tenon::graph
