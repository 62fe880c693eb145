// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/operations.h"

#include "tenon/graph/arithmetic.h"
#include "tenon/tir/stmt.h"

namespace tenon {

Operations count_operations(const IRModule& module) {
  Operations operations;
  const auto main = module.find<graph::Function>("main");
  if (!main) {
    if (const auto lowered = module.find<tir::PrimFunc>("main"))
      walk<tir::CallTir>(lowered->body, [&](const tir::CallTir&) { ++operations.operators; });
    return operations;
  }
  bool known = true;
  for (const Ref<graph::BindingBlock>& block : main->body->blocks) {
    for (const Ref<graph::Binding>& binding : block->bindings) {
      const auto* call = binding->value.as<graph::Call>();
      if (!call) continue;
      ++operations.operators;
      if (!call->op) continue;
      const auto macs = graph::macs_of(*call, binding->var->type);
      known = known && macs.has_value();
      operations.flop += 2 * macs.value_or(0);
    }
  }
  if (!known) operations.flop = 0;
  return operations;
}

}  // namespace tenon
