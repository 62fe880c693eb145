// SPDX-License-Identifier: Apache-2.0
// Batch norm at inference is y = x * scale + shift for each channel. Where x comes from a
// convolution or a product with constant weights that nobody else uses, scale goes into the weights
// and shift into the bias. Elsewhere it becomes this arithmetic where all but x are constants, and
// an operator of one result where they are not. One's own kernel in such an operator's place is as
// linear in its weights.

#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/match.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

/// A contraction that has weights: a call of the operator, or of one's own kernel for it.
struct Weighted {
  std::string op, data_layout, kernel_layout, out_layout;  // out_layout: empty as the data's
  std::vector<Value> args;
  const Call* call;

  /// Nothing where `call` is of neither kind.
  static std::optional<Weighted> of(const Call& call, const IRModule& module) {
    const auto layout = [](const std::optional<std::string>& text, const char* otherwise) {
      return text.value_or(otherwise);
    };
    if (call.op && !call.is("call_tir")) {
      return Weighted{call.op->name,
                      layout(call.attrs.get<std::string>("data_layout"), "NCHW"),
                      layout(call.attrs.get<std::string>("kernel_layout"), "OIHW"),
                      layout(call.attrs.get<std::string>("out_layout"), ""),
                      call.args,
                      &call};
    }
    const auto* callee = call.op ? call.args[0].as<FuncRef>() : nullptr;
    const auto* args = callee ? call.args[1].as<Tuple>() : nullptr;
    const auto kernel = args ? module.find<tir::PrimFunc>(callee->name) : nullptr;
    const auto computes =
        kernel ? kernel->attrs.get<AttrValue::Map>(kComputes) : std::optional<AttrValue::Map>();
    if (!computes) return std::nullopt;
    Attrs says;
    for (const auto& [name, value] : *computes) says.set(name, value);
    return Weighted{says.get<std::string>("op").value_or(""),
                    layout(says.get<std::string>("data_layout"), "NCHW"),
                    layout(says.get<std::string>("kernel_layout"), "OIHW"),
                    layout(says.get<std::string>("out_layout"), ""),
                    args->values,
                    &call};
  }

  /// The same with other weights, of the same type.
  Value with_weight(const Value& weight) const {
    std::vector<Value> changed = args;
    changed[1] = weight;
    if (call->is("call_tir")) {
      std::vector<Value> outer = call->args;
      outer[1] = make<Tuple>(std::move(changed));
      changed = std::move(outer);
    }
    return make<Call>(call->op, std::move(changed), call->attrs, call->type_args, call->origin);
  }
};

class Folder {
 public:
  /// `uses`: how often each emitted variable is used in the function being rebuilt.
  Folder(BlockBuilder& builder, Producers& producers,
         const std::unordered_map<const Node*, int>& uses)
      : builder_(builder), producers_(producers), uses_(uses) {}

  std::optional<Value> fold(const Call& norm, const std::string& name) {
    for (size_t i = 1; i < norm.args.size(); ++i)
      if (!is_constant_tensor(norm.args[i])) return std::nullopt;
    if (norm.args.size() != 5) return std::nullopt;
    const Value& x = norm.args[0];
    const Ref<TensorType> type = tensor_type(x);
    if (!type->has_shape()) return std::nullopt;
    const int64_t axis = norm.attrs.get<int64_t>("axis").value_or(1);
    if (axis < 0 || axis >= type->ndim) return std::nullopt;
    const Value &gamma = norm.args[1], &beta = norm.args[2], &mean = norm.args[3],
                &variance = norm.args[4];
    const double epsilon = norm.attrs.get<double>("epsilon").value_or(1e-5);
    // These are calls on constants: FoldConstant computes them.
    const Value root = op("sqrt", {op("add", {variance, scalar(type->dtype, epsilon)})});
    const bool scales = norm.attrs.get<bool>("scale").value_or(true);
    const bool centers = norm.attrs.get<bool>("center").value_or(true);
    const Value scale = op("divide", {scales ? gamma : scalar(type->dtype, 1), root});
    const Value moved = op("multiply", {mean, scale});
    const Value shift = centers ? op("subtract", {beta, moved}) : op("negative", {moved});
    if (auto folded = into_producer(x, scale, shift, axis, type->ndim, name)) return folded;
    record({"FoldBatchnorm", name, "decomposed", "no-constant-producer", {}, "", norm.origin});
    return call_op("add", {op("multiply", {x, along(scale, axis, type->ndim)}),
                           along(shift, axis, type->ndim)});
  }

 private:
  Value op(std::string_view name, std::vector<Value> args, Attrs attrs = {}) {
    return emit_noted(builder_, producers_, call_op(name, std::move(args), std::move(attrs)), "bn");
  }
  Value scalar(DType dtype, double value) {
    if (dtype == kFloat64) return make<Constant>(TensorData::of<double>(dtype, {}, {value}));
    const Value single =
        make<Constant>(TensorData::of<float>(kFloat32, {}, {static_cast<float>(value)}));
    return dtype == kFloat32 ? single : op("astype", {single}, {{"dtype", dtype}});
  }
  /// A vector of channels, shaped to broadcast along `axis` of a tensor of rank `ndim`.
  Value along(const Value& vector, int64_t axis, int64_t ndim) {
    std::vector<Expr> shape(static_cast<size_t>(ndim - axis), int64(1));
    shape[0] = tensor_type(vector)->dim(0);
    if (shape.size() == 1) return vector;
    return op("reshape", {vector, make<ShapeExpr>(std::move(shape))});
  }
  bool is_used_once(const Value& value) const {
    const auto it = uses_.find(value.get());
    return it != uses_.end() && it->second == 1;
  }

  /// x is a contraction with constant weights, perhaps with a constant bias added.
  std::optional<Value> into_producer(const Value& x, const Value& scale, const Value& shift,
                                     int64_t axis, int64_t ndim, const std::string& name) {
    const Call* producer = producers_.call(x);
    if (!producer || !is_used_once(x)) return std::nullopt;
    Value bias;
    if (producer->is("add")) {
      const size_t constant = is_constant_tensor(producer->args[1]) ? 1 : 0;
      if (!is_constant_tensor(producer->args[constant])) return std::nullopt;
      bias = channel_vector(producer->args[constant], axis, ndim, scale);
      if (!bias) return std::nullopt;
      const Value inner = producer->args[1 - constant];
      if (!is_used_once(inner)) return std::nullopt;
      producer = producers_.call(inner);
      if (!producer) return std::nullopt;
    }
    const auto weighted = Weighted::of(*producer, builder_.module());
    if (!weighted || weighted->args.size() < 2) return std::nullopt;
    const bool conv =
        weighted->op == "nn.conv2d" || weighted->op == "nn.conv1d" || weighted->op == "nn.conv3d";
    const bool product = weighted->op == "matmul";
    const Value& old_weight = weighted->args[1];
    if ((!conv && !product) || !is_constant_tensor(old_weight)) return std::nullopt;
    const Ref<TensorType> weight_type = tensor_type(old_weight);
    if (weight_type->dtype != tensor_type(scale)->dtype) return std::nullopt;
    // Output channels: the first axis of a convolution's weights, the last of a product's.
    if (conv && (axis != 1 || !weighted->kernel_layout.starts_with("O") ||
                 !weighted->data_layout.starts_with("NC") ||
                 (!weighted->out_layout.empty() && !weighted->out_layout.starts_with("NC"))))
      return std::nullopt;
    if (product && (axis != ndim - 1 || weight_type->ndim != 2)) return std::nullopt;
    const Value factor = conv ? along(scale, 0, weight_type->ndim) : scale;
    const Value weight = op("multiply", {old_weight, factor});
    const Value folded = emit_noted(builder_, producers_, weighted->with_weight(weight), name);
    const Value offset = bias ? op("add", {op("multiply", {bias, scale}), shift}) : shift;
    record({"FoldBatchnorm", name, "folded", weighted->op, {}, "", producer->origin});
    return call_op("add", {folded, along(offset, axis, ndim)});
  }

  /// A constant that broadcasts along `axis` only, as a vector; null where it does more.
  Value channel_vector(const Value& constant, int64_t axis, int64_t ndim, const Value& scale) {
    const Ref<TensorType> type = tensor_type(constant);
    const auto shape = type->static_shape();
    const auto channels = as_int(tensor_type(scale)->dim(0));
    if (!shape || !channels) return {};
    for (size_t i = 0; i < shape->size(); ++i) {
      const int64_t place = static_cast<int64_t>(i) + ndim - static_cast<int64_t>(shape->size());
      if ((*shape)[i] != (place == axis ? *channels : 1)) return {};
    }
    if (shape->size() == 1) return constant;
    return op("reshape", {constant, make<ShapeExpr>(to_exprs({*channels}))});
  }

  BlockBuilder& builder_;
  Producers& producers_;
  const std::unordered_map<const Node*, int>& uses_;
};

// The result by itself: one tensor, as patterns of back ends see it.
Value alone(const Call& norm) {
  Attrs attrs;
  for (const char* name : {"axis", "epsilon", "center", "scale"})
    if (const AttrValue* given = norm.attrs.find(name)) attrs.set(name, *given);
  return call_op("nn.batch_norm_result", norm.args, std::move(attrs), norm.origin);
}

}  // namespace

IRModule fold_batchnorm(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph) continue;
    const auto uses = count_uses(*graph);
    Producers producers;
    std::unordered_map<const Node*, int> new_uses;
    const BindingRule rule = [&](BlockBuilder& builder, const Binding& binding,
                                 const Value& value) -> std::optional<Value> {
      const auto old_uses = uses.find(binding.var.get());
      const int count = old_uses == uses.end() ? 0 : old_uses->second;
      const auto* call = value.as<Call>();
      Value var;
      if (call && call->is("nn.batch_norm") && !call->attrs.flag("training")) {
        auto result = Folder(builder, producers, new_uses).fold(*call, binding.var->name);
        if (!result && type_of(value).as<TupleType>()) result = alone(*call);
        if (result) {
          var = emit_noted(builder, producers, *result, binding.var->name);
          // A batch norm that gives a tuple (y, mean, variance) becomes one with the inputs'
          // statistics.
          if (type_of(value).as<TupleType>())
            return make<Tuple>(std::vector<Value>{var, call->args[3], call->args[4]});
        }
      }
      if (!var) var = emit_noted(builder, producers, value, binding.var->name);
      new_uses[var.get()] = count;
      return var;
    };
    module.set(name, rebuild(module, graph, rule));
  }
  return module;
}

}  // namespace tenon::graph
