// SPDX-License-Identifier: Apache-2.0
// Replaces chains of operators by the one operator that they spell out. Each rule is a function of
// the last call of the chain; the rules run in the order of the table.

#include <cmath>
#include <numeric>

#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/match.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

struct Rules {
  BlockBuilder& builder;
  Producers& producers;

  const Call* as(const Value& value, std::string_view op) const {
    return producers.call(value, op);
  }

  /// x ** 2 = x * x, x ** 3 = x * x * x, x ** 0.5 = sqrt(x), x ** 1 = x.
  std::optional<Value> power(const Call& call) const {
    if (!call.is("power")) return std::nullopt;
    const auto exponent = constant_number(call.args[1]);
    if (!exponent) return std::nullopt;
    const Value& x = call.args[0];
    // Broadcasting by a constant of higher rank would change the shape.
    if (!structural_equal(type_of(x), type_of(ref_to(&call)))) return std::nullopt;
    if (*exponent == 1) return x;
    if (*exponent == 2) return call_op("multiply", {x, x});
    if (*exponent == 0.5) return call_op("sqrt", {x});
    if (*exponent == 3) {
      const Value square = emit_noted(builder, producers, call_op("multiply", {x, x}), "lv");
      return call_op("multiply", {square, x});
    }
    return std::nullopt;
  }

  /// The input axis of each axis of the result, none below 0.
  static std::vector<int64_t> axes_of(const Call& permutation) {
    const int64_t ndim = tensor_type(permutation.args[0])->ndim;
    std::vector<int64_t> axes;
    if (const auto given = permutation.attrs.ints("axes")) {
      for (const int64_t axis : *given) axes.push_back(axis < 0 ? axis + ndim : axis);
    } else {
      for (int64_t axis = ndim; axis-- > 0;) axes.push_back(axis);
    }
    return axes;
  }

  /// A cast to the same type, a permutation of a permutation, a reshape of a reshape.
  std::optional<Value> trivial(const Call& call) const {
    if (call.is("astype") && structural_equal(type_of(call.args[0]), type_of(ref_to(&call))))
      return call.args[0];
    if (call.is("permute_dims")) {
      if (tensor_type(call.args[0])->ndim < 0) return std::nullopt;
      Value source = call.args[0];
      std::vector<int64_t> axes = axes_of(call);
      const Call* inner = as(source, "permute_dims");
      if (inner) {
        source = inner->args[0];
        const std::vector<int64_t> first = axes_of(*inner);
        for (int64_t& axis : axes) axis = first[static_cast<size_t>(axis)];
      }
      std::vector<int64_t> in_place(axes.size());
      std::iota(in_place.begin(), in_place.end(), 0);
      if (axes == in_place) return source;
      if (inner) return call_op("permute_dims", {source}, {{"axes", axes}});
    }
    if (call.is("reshape")) {
      const auto type = tensor_type(ref_to(&call));
      if (!type->has_shape()) return std::nullopt;
      const Call* inner = as(call.args[0], "reshape");
      const Value source = inner ? inner->args[0] : call.args[0];
      if (structural_equal(type_of(source), type)) return source;
      if (inner) return call_op("reshape", {source, make<ShapeExpr>(*type->shape)});
    }
    return std::nullopt;
  }

  /// mean of `value` over its last axis, kept: the value.
  std::optional<Value> mean_of_last(const Value& value) const {
    const Call* mean = as(value, "mean");
    if (!mean || !mean->attrs.flag("keepdims")) return std::nullopt;
    const auto axes = mean->attrs.ints("axis");
    const Ref<TensorType> type = tensor_type(mean->args[0]);
    if (!axes || axes->size() != 1 || type->ndim < 1) return std::nullopt;
    const int64_t axis = (*axes)[0] < 0 ? (*axes)[0] + type->ndim : (*axes)[0];
    if (axis != type->ndim - 1) return std::nullopt;
    return mean->args[0];
  }

  /// (x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps), scaled and shifted: layer norm over the
  /// last axis.
  std::optional<Value> layer_norm(const Call& call) const {
    if (!call.is("add")) return std::nullopt;
    for (int i = 0; i < 2; ++i) {
      const Value beta = call.args[static_cast<size_t>(i)];
      const Call* scaled = as(call.args[static_cast<size_t>(1 - i)], "multiply");
      if (!scaled) continue;
      for (int k = 0; k < 2; ++k) {
        const Value gamma = scaled->args[static_cast<size_t>(k)];
        const Call* quotient = as(scaled->args[static_cast<size_t>(1 - k)], "divide");
        if (!quotient) continue;
        if (auto found = normalized(*quotient, gamma, beta)) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Value> normalized(const Call& quotient, const Value& gamma,
                                  const Value& beta) const {
    const Call* centred = as(quotient.args[0], "subtract");
    const Call* root = as(quotient.args[1], "sqrt");
    const Call* shifted = root ? as(root->args[0], "add") : nullptr;
    if (!centred || !shifted) return std::nullopt;
    const auto mean_source = mean_of_last(centred->args[1]);
    if (!mean_source || !mean_source->same_as(centred->args[0])) return std::nullopt;
    for (int i = 0; i < 2; ++i) {
      const auto epsilon = constant_number(shifted->args[static_cast<size_t>(i)]);
      const auto square_value = mean_of_last(shifted->args[static_cast<size_t>(1 - i)]);
      if (!epsilon || !square_value) continue;
      const Call* square = as(*square_value, "multiply");
      if (!square || !square->args[0].same_as(square->args[1]) ||
          !same_centred(square->args[0], *centred))
        continue;
      const Value x = centred->args[0];
      const Ref<TensorType> type = tensor_type(x);
      if (!is_vector_of(gamma, type->dim(-1)) || !is_vector_of(beta, type->dim(-1)))
        return std::nullopt;
      return call_op("nn.layer_norm", {x, gamma, beta},
                     {{"axes", std::vector<int64_t>{-1}}, {"epsilon", *epsilon}});
    }
    return std::nullopt;
  }

  /// `value` is the same difference as `centred`, by the same variable or computed once more.
  bool same_centred(const Value& value, const Call& centred) const {
    const Call* other = as(value, "subtract");
    if (!other) return false;
    if (other == &centred) return true;
    const auto a = mean_of_last(other->args[1]), b = mean_of_last(centred.args[1]);
    return other->args[0].same_as(centred.args[0]) && a && b && a->same_as(*b);
  }

  static bool is_vector_of(const Value& value, const Expr& extent) {
    const Ref<TensorType> type = tensor_type(value);
    return type->ndim == 1 && type->has_shape() && structural_equal(type->dim(0), extent);
  }

  /// x * sigmoid(x).
  std::optional<Value> silu(const Call& call) const {
    if (!call.is("multiply")) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const Call* sigmoid = as(call.args[i], "sigmoid");
      if (sigmoid && sigmoid->args[0].same_as(call.args[1 - i]))
        return call_op("nn.silu", {call.args[1 - i]});
    }
    return std::nullopt;
  }
};

}  // namespace

IRModule simplify_graph(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph) continue;
    Producers producers;
    const BindingRule rule = [&](BlockBuilder& builder, const Binding& binding,
                                 const Value& value) -> std::optional<Value> {
      const auto* call = value.as<Call>();
      if (!call || !call->op) return std::nullopt;
      using Rule = std::optional<Value> (Rules::*)(const Call&) const;
      static constexpr std::pair<std::string_view, Rule> kRules[] = {
          {"trivial", &Rules::trivial},
          {"power", &Rules::power},
          {"layer-norm", &Rules::layer_norm},
          {"silu", &Rules::silu},
      };
      const Rules rules{builder, producers};
      for (const auto& [reason, apply] : kRules) {
        if (auto replacement = (rules.*apply)(*call)) {
          record({"SimplifyGraph",
                  binding.var->name,
                  "rewritten",
                  std::string(reason),
                  {},
                  "",
                  binding.origin});
          return emit_noted(builder, producers, *replacement, binding.var->name);
        }
      }
      return emit_noted(builder, producers, value, binding.var->name);
    };
    module.set(name, rebuild(module, graph, rule));
  }
  return module;
}

}  // namespace tenon::graph
