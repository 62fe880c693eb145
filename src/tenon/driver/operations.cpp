#include "tenon/driver/operations.h"

#include "tenon/graph/expr.h"
#include "tenon/graph/op.h"
#include "tenon/tir/stmt.h"

namespace tenon {

using Shape = std::vector<int64_t>;

static std::optional<Shape> shape_of(const graph::Value& value) {
  const graph::Type type = graph::type_of(value);
  const auto* tensor = type.as<graph::TensorType>();
  return tensor ? tensor->static_shape() : std::nullopt;
}

static double product(const Shape& shape) {
  double product = 1;
  for (const int64_t dim : shape) product *= static_cast<double>(dim);
  return product;
}

// Multiply-accumulates of one call; nothing where a size is symbolic.
static std::optional<double> macs_of(const graph::Call& call, const graph::Value& result) {
  const auto first = call.args.empty() ? std::nullopt : shape_of(call.args[0]);
  const auto second = call.args.size() < 2 ? std::nullopt : shape_of(call.args[1]);
  if (call.is("matmul")) {
    const auto out = shape_of(result);
    if (!out || !first || first->empty()) return std::nullopt;
    return product(*out) * static_cast<double>(first->back());
  }
  if (call.is("nn.conv1d") || call.is("nn.conv2d") || call.is("nn.conv3d")) {
    const auto out = shape_of(result);  // weights: (out channels, in channels / groups, kernel...)
    if (!out || !second || second->empty() || second->front() == 0) return std::nullopt;
    return product(*out) * product(*second) / static_cast<double>(second->front());
  }
  if (call.is("nn.conv1d_transpose") || call.is("nn.conv2d_transpose") ||
      call.is("nn.conv3d_transpose")) {
    if (!first || !second || second->empty() || second->front() == 0) return std::nullopt;
    return product(*first) * product(*second) / static_cast<double>(second->front());
  }
  return 0;
}

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
      const auto macs = macs_of(*call, binding->var);
      known = known && macs.has_value();
      operations.flop += 2 * macs.value_or(0);
    }
  }
  if (!known) operations.flop = 0;
  return operations;
}

}  // namespace tenon
