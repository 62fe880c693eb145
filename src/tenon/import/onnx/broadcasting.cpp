// SPDX-License-Identifier: Apache-2.0
// Broadcasting of dimensions that may be 1 or equal: only the run knows which.
#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/context.h"

namespace tenon::onnx {

using graph::TensorType;

namespace {

// Whether `dim` is the result of broadcasting `other` and something else.
bool is_broadcast_of(const Expr& dim, const Expr& other) {
  const auto* chosen = dim.as<Select>();
  if (!chosen) return false;
  const Expr &otherwise = chosen->false_value, &one = chosen->true_value;
  return structural_equal(chosen->condition, eq(otherwise, int64(1))) &&
         (structural_equal(one, other) || structural_equal(otherwise, other) ||
          is_broadcast_of(one, other) || is_broadcast_of(otherwise, other));
}

// The dimension of the result; `condition` is set where it has to be checked.
Expr broadcast_dim(const Expr& a, const Expr& b, Expr& condition) {
  if (is_int(a, 1)) return b;
  if (is_int(b, 1) || arith::proves_equal(a, b)) return a;
  if (as_int(a) && as_int(b)) return a;  // the operator says what is wrong
  if (is_broadcast_of(a, b)) return a;
  if (is_broadcast_of(b, a)) return b;
  const Expr a_is_one = eq(a, int64(1)), b_is_one = eq(b, int64(1));
  if (as_int(a)) {
    condition = logical_or(b_is_one, eq(b, a));
    return a;
  }
  if (as_int(b)) {
    condition = logical_or(a_is_one, eq(a, b));
    return b;
  }
  condition = logical_or(logical_or(a_is_one, b_is_one), eq(a, b));
  return select(a_is_one, b, a);
}

struct Arg {
  Value* value;
  size_t fixed;  // axes at the end that are not broadcast
  Ref<TensorType> type;

  Dims dims() const { return *type->shape; }
  size_t axes() const { return type->shape->size() - fixed; }
};

// The arguments of an operator whose operands are broadcast; empty for others.
std::vector<Arg> broadcast_operands(std::string_view name, std::vector<Value>& args) {
  const graph::OpDef* op = graph::find_op(name);
  const bool is_product = name == "matmul";
  if (!op || args.size() < 2 || (!is_product && !op->traits.broadcasts)) return {};
  std::vector<Arg> tensors;
  for (Value& arg : args) {
    const graph::Type held = arg ? graph::type_of(arg) : graph::Type();
    const auto* type = held.as<TensorType>();
    if (!type || !type->shape) return {};
    const int64_t fixed = is_product ? std::min<int64_t>(type->ndim, 2) : 0;
    tensors.push_back({&arg, static_cast<size_t>(fixed), ref_to(type)});
  }
  return tensors;
}

}  // namespace

void Context::broadcast_args(std::string_view name, std::vector<Value>& args, const Attrs& attrs) {
  const std::vector<Arg> tensors = broadcast_operands(name, args);
  Dims joined;  // from the last axis on
  std::vector<std::pair<Expr, std::string>> checks;
  bool changed = false;
  for (const Arg& arg : tensors) {
    const Dims dims = arg.dims();
    for (size_t d = 0; d < arg.axes(); ++d) {
      const Expr& dim = dims[arg.axes() - 1 - d];
      if (d == joined.size()) {
        joined.push_back(dim);
        continue;
      }
      Expr condition;
      const Expr all = broadcast_dim(joined[d], dim, condition);
      if (condition)
        checks.emplace_back(condition, fmt::format("dimensions {} and {} cannot be broadcast",
                                                   str(joined[d]), str(dim)));
      changed |= !all.same_as(joined[d]) && !is_int(joined[d], 1);
      changed |= !all.same_as(dim) && !is_int(dim, 1) && !arith::proves_equal(all, dim);
      joined[d] = all;
    }
  }
  if (!changed) return;
  const graph::Type held = graph::type_of(graph::call_op(name, args, attrs, origin()));
  if (const auto* result = held.as<TensorType>(); result && result->shape) return;
  for (const auto& [condition, message] : checks) require(condition, kShapeMismatch, message);
  for (const Arg& arg : tensors) {
    Dims dims = arg.dims();
    bool differs = false;
    for (size_t d = 0; d < arg.axes(); ++d) {
      Expr& dim = dims[arg.axes() - 1 - d];
      if (as_int(dim) || arith::proves_equal(dim, joined[d])) continue;
      dim = joined[d];
      differs = true;
    }
    if (differs) *arg.value = ConverterContext::op("broadcast_to", {*arg.value, shape_value(dims)});
  }
}

}  // namespace tenon::onnx
