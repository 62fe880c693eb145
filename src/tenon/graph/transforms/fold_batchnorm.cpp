// SPDX-License-Identifier: Apache-2.0
// Batch norm at inference is y = x * scale + shift for each channel. Where x comes from a
// convolution or a product with constant weights that nobody else uses, scale goes into the weights
// and shift into the bias. Elsewhere it becomes this arithmetic where all but x are constants, and
// an operator of one result where they are not. One's own kernel in such an operator's place is as
// linear in its weights.
//
// The rules are patterns, as users write theirs (docs/patterns.md). Their replacements emit the
// arithmetic on the vectors themselves, since what they give shares it.

#include "tenon/graph/kernels.h"
#include "tenon/graph/patterns/rewriter.h"
#include "tenon/graph/shape.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/match.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

/// A contraction that has weights: a call of the operator, or of one's own kernel for it.
struct Weighted {
  std::string op;
  Attrs attrs;  // the operator's
  std::vector<Value> args;
  const Call* call;

  /// Nothing where `call` is of neither kind.
  static std::optional<Weighted> of(const Call& call, const IRModule& module) {
    if (!call.is("call_tir")) return Weighted{call.op->name, call.attrs, call.args, &call};
    const auto* callee = call.args[0].as<FuncRef>();
    const auto* args = call.args[1].as<Tuple>();
    const auto kernel = callee && args ? module.find<tir::PrimFunc>(callee->name) : nullptr;
    const auto computes =
        kernel ? kernel->attrs.get<AttrValue::Map>(kComputes) : std::optional<AttrValue::Map>();
    if (!computes) return std::nullopt;
    Attrs attrs;
    for (const auto& [name, value] : *computes) attrs.set(name, value);
    return Weighted{attrs.get<std::string>("op").value_or(""), attrs, args->values, &call};
  }

  /// Whether `axis` of a result of rank `ndim` is that of its constant weights' output channels:
  /// their first axis in a convolution, their last in a product.
  bool has_channels(int64_t axis, int64_t ndim) const {
    if (args.size() < 2 || !is_constant_tensor(args[1])) return false;
    if (op == "matmul") return axis == ndim - 1 && tensor_type(args[1])->ndim == 2;
    const auto begins = [&](const char* layout, const char* axes) {
      const std::string text = attrs.get<std::string>(layout).value_or("");
      return text.empty() || text.starts_with(axes);
    };
    const bool is_conv = op == "nn.conv1d" || op == "nn.conv2d" || op == "nn.conv3d";
    return is_conv && axis == 1 && begins("kernel_layout", "O") && begins("data_layout", "NC") &&
           begins("out_layout", "NC");
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

DFPattern norm_of(const DFPattern& x, DFPattern (*vector)()) {
  return is_op("nn.batch_norm")(x, vector(), vector(), vector(), vector())
      .has_attr({{"training", false}});
}

/// Whether `constant` broadcasts along `axis` of a tensor of rank `ndim` only.
bool is_channel_vector(const Value& constant, int64_t axis, int64_t ndim, const Expr& channels) {
  const auto shape = tensor_type(constant)->static_shape();
  const auto count = as_int(channels);
  if (!shape || !count) return false;
  for (size_t i = 0; i < shape->size(); ++i) {
    const int64_t place = static_cast<int64_t>(i) + ndim - static_cast<int64_t>(shape->size());
    if ((*shape)[i] != (place == axis ? *count : 1)) return false;
  }
  return true;
}

/// The rules, of one function while it is rebuilt.
class Folder {
 public:
  Folder(const IRModule& module, const Function& function)
      : matcher_(&module), given_uses_(count_uses(function)) {
    using Rules = PatternRewriter;
    rules_ = Rules::from_pattern(norm_of(is_op("add")(product_, bias_) | product_, is_const),
                                 [this](const Value& norm, const Match& match) {
                                   return folded(*norm.as<Call>(), match);
                                 }) |
             Rules::from_pattern(
                 norm_of(wildcard(), is_const),
                 [this](const Value& norm, const Match&) { return decomposed(*norm.as<Call>()); }) |
             Rules::from_pattern(
                 norm_of(wildcard(), wildcard),
                 [](const Value& norm, const Match&) { return alone(*norm.as<Call>()); });
  }

  /// A BindingRule. A batch norm that gives a tuple (y, mean, variance) becomes one with the
  /// inputs' statistics.
  Value operator()(BlockBuilder& builder, const Binding& binding, const Value& value) {
    builder_ = &builder;
    name_ = binding.var->name;
    const auto rewrite = rules_.at(matcher_, value);
    Value var = emit_noted(builder, matcher_, rewrite ? rewrite->value : value, name_);
    if (rewrite) {
      const std::vector<Value>& args = value.as<Call>()->args;
      return make<Tuple>(std::vector<Value>{var, args[3], args[4]});
    }
    const auto uses = given_uses_.find(binding.var.get());
    uses_[var.get()] = uses == given_uses_.end() ? 0 : uses->second;
    return var;
  }

 private:
  // x is a contraction with constant weights, perhaps with a constant bias added.
  Value folded(const Call& norm, const Match& match) {
    const Value bias = match[bias_];
    if (!is_used_once(norm.args[0]) || !is_used_once(match[product_])) return {};
    const Value product = match.expr(product_);
    const auto weighted = Weighted::of(*product.as<Call>(), builder_->module());
    const auto axis = channel_axis(norm);
    if (!axis || !weighted || !weighted->has_channels(*axis, ndim_of(norm))) return {};
    const Ref<TensorType> vector = tensor_type(norm.args[4]);
    const Value& old_weight = weighted->args[1];
    if (tensor_type(old_weight)->dtype != vector->dtype) return {};
    if (bias && !is_channel_vector(bias, *axis, ndim_of(norm), vector->dim(0))) return {};

    const auto [scale, shift] = affine(norm);
    Value offset = bias;
    if (bias && tensor_type(bias)->ndim != 1)
      offset = op("reshape", {bias, make<ShapeExpr>(std::vector<Expr>{vector->dim(0)})});
    const Value factor =
        weighted->op == "matmul" ? scale : along(scale, 0, tensor_type(old_weight)->ndim);
    const Value weight = op("multiply", {old_weight, factor});
    const Value result = builder_->emit(weighted->with_weight(weight), name_);
    offset = bias ? op("add", {op("multiply", {offset, scale}), shift}) : shift;
    record({"FoldBatchnorm", name_, "folded", weighted->op, {}, "", product->origin});
    return call_op("add", {result, along(offset, *axis, ndim_of(norm))});
  }

  Value decomposed(const Call& norm) {
    const auto axis = channel_axis(norm);
    if (!axis) return {};
    const Value data = with_channels(norm.args[0], *axis, tensor_type(norm.args[4])->dim(0));
    const auto [scale, shift] = affine(norm);
    record({"FoldBatchnorm", name_, "decomposed", "no-constant-producer", {}, "", norm.origin});
    return call_op("add", {op("multiply", {data, along(scale, *axis, ndim_of(norm))}),
                           along(shift, *axis, ndim_of(norm))});
  }

  // `data` with a symbolic number of channels has as many as the vectors, which the program checks:
  // broadcasting takes no such number for that of the vectors.
  Value with_channels(const Value& data, int64_t axis, const Expr& channels) {
    const Ref<TensorType> type = tensor_type(data);
    std::vector<Expr> dims = *type->shape;
    Expr& dim = dims[static_cast<size_t>(axis)];
    if (dims_agree(dim, channels) == DimsAgree::kYes) return data;
    dim = channels;
    return builder_->match_cast(data, make<TensorType>(std::move(dims), type->dtype));
  }

  // The result by itself: one tensor, as patterns of back ends see it.
  static Value alone(const Call& norm) {
    Attrs attrs;
    for (const char* name : {"axis", "epsilon", "center", "scale"})
      if (const AttrValue* given = norm.attrs.find(name)) attrs.set(name, *given);
    return call_op("nn.batch_norm_result", norm.args, std::move(attrs), norm.origin);
  }

  static int64_t ndim_of(const Call& norm) { return tensor_type(norm.args[0])->ndim; }
  static std::optional<int64_t> channel_axis(const Call& norm) {
    const Ref<TensorType> type = tensor_type(norm.args[0]);
    const int64_t axis = norm.attrs.get<int64_t>("axis").value_or(1);
    if (!type->has_shape() || axis < 0 || axis >= type->ndim) return std::nullopt;
    return axis;
  }

  // Scale and shift: calls on constants, which FoldConstant computes.
  std::pair<Value, Value> affine(const Call& norm) {
    const Value &gamma = norm.args[1], &beta = norm.args[2], &mean = norm.args[3],
                &variance = norm.args[4];
    const DType dtype = tensor_type(norm.args[0])->dtype;
    const double epsilon = norm.attrs.get<double>("epsilon").value_or(1e-5);
    const Value root = op("sqrt", {op("add", {variance, scalar(dtype, epsilon)})});
    const bool scales = norm.attrs.get<bool>("scale").value_or(true);
    const bool centers = norm.attrs.get<bool>("center").value_or(true);
    const Value scale = op("divide", {scales ? gamma : scalar(dtype, 1), root});
    const Value moved = op("multiply", {mean, scale});
    return {scale, centers ? op("subtract", {beta, moved}) : op("negative", {moved})};
  }
  Value op(std::string_view name, std::vector<Value> args, Attrs attrs = {}) {
    return builder_->emit(call_op(name, std::move(args), std::move(attrs)), "bn");
  }
  Value scalar(DType dtype, double value) {
    if (dtype == kFloat64) return make<Constant>(TensorData::of<double>(dtype, {}, {value}));
    const Value single =
        make<Constant>(TensorData::of<float>(kFloat32, {}, {static_cast<float>(value)}));
    return dtype == kFloat32 ? single : op("astype", {single}, {{"dtype", dtype}});
  }
  // A vector of channels, shaped to broadcast along `axis` of a tensor of rank `ndim`.
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

  DFPattern bias_ = is_const();
  DFPattern product_ = any_of({is_op("nn.conv1d"), is_op("nn.conv2d"), is_op("nn.conv3d"),
                               is_op("matmul"), is_op("call_tir")})
                           .call_with_any();
  PatternRewriter rules_;
  Matcher matcher_;
  std::unordered_map<const Node*, int> given_uses_, uses_;  // before, and of what is rebuilt
  BlockBuilder* builder_ = nullptr;
  std::string name_;
};

}  // namespace

IRModule fold_batchnorm(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph) continue;
    Folder folder(module, *graph);
    module.set(name, rebuild(module, graph, std::ref(folder)));
  }
  return module;
}

}  // namespace tenon::graph
