// SPDX-License-Identifier: Apache-2.0
// Normalisations. Variances are two-pass; everything is computed in float32 where the data is
// narrower, and the result rounded.
#include <algorithm>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// What the normalisations share; each takes the rows that it has.
struct NormAttrs {
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static auto epsilon_row() {
    return std::tuple{attr<&NormAttrs::epsilon>("epsilon", "added to the variance")};
  }
  static auto table() {
    return std::tuple_cat(epsilon_row(),
                          std::tuple{attr<&NormAttrs::center>("center", "beta is added"),
                                     attr<&NormAttrs::scale>("scale", "gamma multiplies")});
  }
};
struct BatchNormResultAttrs : NormAttrs {
  int64_t axis = 1;
  static auto table() {
    return std::tuple_cat(std::tuple{attr<&BatchNormResultAttrs::axis>("axis", "of the channels")},
                          NormAttrs::table());
  }
};
struct BatchNormAttrs : BatchNormResultAttrs {
  double momentum = 0.1;
  bool training = true;
  static auto table() {
    return std::tuple_cat(
        BatchNormResultAttrs::table(),
        std::tuple{attr<&BatchNormAttrs::momentum>("momentum",
                                                   "weight of the batch in the moving statistics"),
                   attr<&BatchNormAttrs::training>(
                       "training", "the batch's own statistics; default as in Relax")});
  }
};
struct RmsNormAttrs : NormAttrs {
  std::vector<int64_t> axes = {-1};
  static auto table() {
    return std::tuple_cat(std::tuple{attr<&RmsNormAttrs::axes>("axes", "normalised")},
                          NormAttrs::epsilon_row());
  }
};
struct LayerNormAttrs : RmsNormAttrs {
  static auto table() {
    return std::tuple_cat(std::tuple{attr<&RmsNormAttrs::axes>("axes", "normalised")},
                          NormAttrs::table());
  }
};
struct InstanceNormAttrs : NormAttrs {
  int64_t channel_axis = 1;
  std::optional<std::vector<int64_t>> axes;
  static auto table() {
    return std::tuple_cat(
        std::tuple{attr<&InstanceNormAttrs::channel_axis>("channel_axis", "must be 1"),
                   attr<&InstanceNormAttrs::axes>("axes", "all behind the channels, or None")},
        NormAttrs::table());
  }
};
struct GroupNormAttrs : InstanceNormAttrs {
  int64_t num_groups = 1;
  static auto table() {
    return std::tuple_cat(
        std::tuple{required<&GroupNormAttrs::num_groups>("num_groups", "that divide axis 1")},
        InstanceNormAttrs::table());
  }
};
struct LrnAttrs {
  int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1.0;
  static auto table() {
    return std::tuple{required<&LrnAttrs::size>("size", "channels summed"),
                      attr<&LrnAttrs::alpha>("alpha", ""), attr<&LrnAttrs::beta>("beta", ""),
                      attr<&LrnAttrs::bias>("bias", "")};
  }
};

// A vector of parameters along one axis: argument i must be (extent,).
void check_vector(const Call& call, size_t i, const Expr& extent) {
  check_rank(call, i, 1);
  check_dtype(call, i, tensor_arg(call, 0)->dtype);
  const Ref<TensorType> type = tensor_arg(call, i);
  if (type->shape) check_dim(call, i, type->dim(0), extent, "dimension 0");
}

Operand mean(KernelOf& kernel, const std::string& name, const Shape& shape, const Shape& extents,
             const std::function<Expr(const Indices&, const Indices&)>& element) {
  const Operand sum = kernel.reduce(name + "_sum", shape, extents, tir::sum_reducer(), element);
  const Expr count = tir::element_count(extents);
  return kernel.compute(name, shape,
                        [&](const Indices& i) { return sum(i) / tenon::cast(sum.dtype, count); });
}

Expr inverse_root(const Expr& x) {
  return imm(x->dtype, int64_t{1}) / float_call(IntrinsicId::kSqrt, {x});
}

// The mean, and 1 / sqrt(variance + epsilon), of what `element` gives over `extents`.
struct Moments {
  Operand mean, scale;

  Moments(KernelOf& kernel, const Shape& shape, const Shape& extents, double epsilon,
          const std::function<Expr(const Indices&, const Indices&)>& element)
      : mean(graph::mean(kernel, "x_mean", shape, extents, element)) {
    const Operand variance =
        graph::mean(kernel, "x_variance", shape, extents, [&](const Indices& i, const Indices& k) {
          const Expr d = element(i, k) - mean(i);
          return d * d;
        });
    scale = kernel.compute("x_scale", shape, [&](const Indices& i) {
      return inverse_root(variance(i) + imm(variance.dtype, epsilon));
    });
  }
};

// ---- batch_norm ---------------------------------------------------------------------------------

// By the statistics of the data, which also move the given ones.
Value lower_trained(BlockBuilder& builder, const Call& call) {
  const int64_t ndim = shaped_arg(call, 0)->ndim;
  const auto attrs = attrs_as<BatchNormAttrs>(call);
  const size_t axis = axis_of(call, attrs.axis, ndim);
  const DType dtype = shaped_arg(call, 0)->dtype, wide = wide_dtype(dtype);
  std::vector<int64_t> others;
  for (int64_t d = 0; d < ndim; ++d)
    if (d != static_cast<int64_t>(axis)) others.push_back(d);
  const auto cast_to = [&](const Value& value, DType to) {
    return to == dtype && to == wide ? value : builder.op("astype", {value}, {{"dtype", to}});
  };
  const Value x = cast_to(call.args[0], wide);
  // A batch norm with one axis alone has nothing to average.
  const auto statistic = [&](std::string_view name) -> Value {
    if (!others.empty()) return builder.op(name, {x}, {{"axis", others}});
    return name == "mean" ? x : builder.op("zeros_like", {x});
  };
  const Value mean = statistic("mean"), variance = statistic("variance");
  const auto moved = [&](const Value& old, const Value& next) {
    const double momentum = attrs.momentum;
    const auto scalar = [&](double value) {
      const Value exact = make<Constant>(TensorData::of<double>(kFloat64, {}, {value}));
      return builder.op("astype", {exact}, {{"dtype", wide}});
    };
    const Value kept = builder.op("multiply", {cast_to(old, wide), scalar(1 - momentum)});
    const Value added = builder.op("multiply", {next, scalar(momentum)});
    return cast_to(builder.op("add", {kept, added}), dtype);
  };
  const Ref<Call> result =
      call_op("nn.batch_norm_result",
              {x, cast_to(call.args[1], wide), cast_to(call.args[2], wide), mean, variance},
              to_attrs<BatchNormResultAttrs>(attrs), call.origin);
  return make<Tuple>(std::vector<Value>{cast_to(builder.emit(result), dtype),
                                        moved(call.args[3], mean), moved(call.args[4], variance)});
}

OpDef batch_norm() {
  OpDef op;
  op.name = "nn.batch_norm";
  op.summary =
      "(data - mean) / sqrt(var + epsilon) * gamma + beta along `axis`, of the moving mean and "
      "variance, or where `training` of those of data. Gives a tuple of the result, moving_mean "
      "and moving_var: unchanged, or moved by `momentum`, as Relax does.";
  op.inputs = {{"data", "any shape"},
               {"gamma", "(c,)"},
               {"beta", "(c,)"},
               {"moving_mean", "(c,)"},
               OpInput{"moving_var", "(c,)"}.used_as(InputUse::kPositive)};
  op.attrs = attrs_of<BatchNormAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_float(call, 0);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (x->ndim >= 0) {
      const size_t axis = axis_of(call, attrs_as<BatchNormAttrs>(call).axis, x->ndim);
      for (size_t i = 1; i < 5; ++i)
        check_vector(call, i, x->shape ? (*x->shape)[axis] : tensor_arg(call, i)->dim(0));
    }
    return make<TupleType>(std::vector<Type>{x, tensor_arg(call, 3), tensor_arg(call, 4)});
  };
  op.lower = [](BlockBuilder& builder, const Call& call) -> Value {
    const auto attrs = attrs_as<BatchNormAttrs>(call);
    if (attrs.training) return lower_trained(builder, call);
    // The mean and variance pass through: only the first result is computed.
    const Ref<Call> result = call_op("nn.batch_norm_result", call.args,
                                     to_attrs<BatchNormResultAttrs>(attrs), call.origin);
    return make<Tuple>(
        std::vector<Value>{result->op->lower(builder, *result), call.args[3], call.args[4]});
  };
  op.fusion = FusionKind::kBroadcast;
  op.source = "ONNX BatchNormalization-15";
  return op;
}

// What nn.batch_norm lowers to, one tensor.
OpDef batch_norm_result() {
  OpDef op;
  op.name = "nn.batch_norm_result";
  op.summary = "The first item of nn.batch_norm.";
  op.inputs = batch_norm().inputs;
  op.attrs = attrs_of<BatchNormResultAttrs>();
  op.infer_type = [](const Call& call) -> Type { return tensor_arg(call, 0); };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.wide_arg(0), gamma = kernel.wide_arg(1), beta = kernel.wide_arg(2),
                  mean = kernel.wide_arg(3), variance = kernel.wide_arg(4);
    const auto attrs = attrs_as<BatchNormResultAttrs>(call);
    const size_t axis = axis_of(call, attrs.axis, static_cast<int64_t>(x.ndim()));
    const bool scales = attrs.scale, centers = attrs.center;
    const Operand factor = kernel.compute("factor", {x.shape[axis]}, [&](const Indices& i) {
      const Expr deviation =
          float_call(IntrinsicId::kSqrt, {variance(i) + imm(x.dtype, attrs.epsilon)});
      return (scales ? gamma(i) : imm(x.dtype, int64_t{1})) / deviation;
    });
    return kernel.emit_compute([&](const Indices& i) {
      const Indices c = {i[axis]};
      const Expr scaled = (x(i) - mean(c)) * factor(c);
      return centers ? scaled + beta(c) : scaled;
    });
  };
  op.fusion = FusionKind::kBroadcast;
  return op;
}

// ---- layer_norm, rms_norm -----------------------------------------------------------------------

std::vector<size_t> normalized_axes(const Call& call, int64_t ndim) {
  std::vector<size_t> axes = axes_of(call, attrs_as<RmsNormAttrs>(call).axes, ndim);
  std::sort(axes.begin(), axes.end());
  return axes;
}

// Checks the parameters of layer_norm and rms_norm: the shape of the normalised axes.
Type infer_over_axes(const Call& call) {
  check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape) return x;
  const std::vector<size_t> axes = normalized_axes(call, x->ndim);
  for (size_t i = 1; i < call.args.size(); ++i) {
    if (!call.args[i]) continue;
    check_rank(call, i, static_cast<int64_t>(axes.size()));
    check_dtype(call, i, x->dtype);
    const Ref<TensorType> type = tensor_arg(call, i);
    for (size_t d = 0; type->shape && d < axes.size(); ++d)
      check_dim(call, i, (*type->shape)[d], (*x->shape)[axes[d]], fmt::format("dimension {}", d));
  }
  return x;
}

// Index maps between the data, the reduced shape and the normalised axes.
struct OverAxes {
  std::vector<size_t> axes;
  Shape outer, inner;

  OverAxes(const Call& call, const Operand& x) {
    axes = normalized_axes(call, static_cast<int64_t>(x.ndim()));
    for (size_t d = 0; d < x.ndim(); ++d) (contains(axes, d) ? inner : outer).push_back(x.shape[d]);
  }
  Indices join(const Indices& i, const Indices& k) const {
    Indices out;
    size_t next_outer = 0, next_inner = 0;
    for (size_t d = 0; d < i.size() + k.size(); ++d)
      out.push_back(contains(axes, d) ? k[next_inner++] : i[next_outer++]);
    return out;
  }
  Indices pick(const Indices& at, bool inside) const {
    Indices out;
    for (size_t d = 0; d < at.size(); ++d)
      if (contains(axes, d) == inside) out.push_back(at[d]);
    return out;
  }
};

Value lower_layer_norm(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const auto attrs = attrs_as<LayerNormAttrs>(call);
  const bool scales = attrs.scale && arg_or_null(call, 1);
  const bool centers = attrs.center && arg_or_null(call, 2);
  const Operand gamma = scales ? kernel.wide_arg(1) : Operand();
  const Operand beta = centers ? kernel.wide_arg(2) : Operand();
  const OverAxes over(call, x);
  const Moments m(kernel, over.outer, over.inner, attrs.epsilon,
                  [&](const Indices& i, const Indices& k) { return x(over.join(i, k)); });
  return kernel.emit_compute([&](const Indices& i) {
    const Indices outer = over.pick(i, false), inner = over.pick(i, true);
    Expr value = (x(i) - m.mean(outer)) * m.scale(outer);
    if (scales) value = value * gamma(inner);
    return centers ? value + beta(inner) : value;
  });
}

Value lower_rms_norm(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0), weight = kernel.wide_arg(1);
  const OverAxes over(call, x);
  const Operand squares =
      mean(kernel, "x_square", over.outer, over.inner, [&](const Indices& i, const Indices& k) {
        const Expr value = x(over.join(i, k));
        return value * value;
      });
  const Operand scale = kernel.compute("x_scale", over.outer, [&](const Indices& i) {
    return inverse_root(squares(i) + imm(x.dtype, attrs_as<RmsNormAttrs>(call).epsilon));
  });
  return kernel.emit_compute([&](const Indices& i) {
    return x(i) * scale(over.pick(i, false)) * weight(over.pick(i, true));
  });
}

// ---- group_norm, instance_norm ------------------------------------------------------------------

// Both normalise over the axes after the channels, in groups of channels; instance_norm has as many
// groups as channels.
Type infer_grouped(const Call& call, std::optional<int64_t> groups) {
  check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto attrs = attrs_as<InstanceNormAttrs>(call);
  if (x->ndim >= 0) {
    const size_t channels = axis_of(call, attrs.channel_axis, x->ndim);
    std::vector<size_t> axes, behind;
    if (attrs.axes) axes = axes_of(call, *attrs.axes, x->ndim);
    for (size_t d = 2; d < static_cast<size_t>(x->ndim); ++d) behind.push_back(d);
    std::sort(axes.begin(), axes.end());
    if (channels != 1 || (attrs.axes && axes != behind))
      throw CompileError(kUnsupported, call.origin,
                         "`{}` with channel_axis {} and axes {}; expected channels at axis 1 and "
                         "all axes behind them",
                         call.op->name, channels,
                         attrs.axes ? AttrValue(*attrs.axes).str() : "None");
  }
  if (x->ndim >= 0 && x->ndim < 3)
    throw CompileError(kRankMismatch, call.origin,
                       "argument `data` of `{}` is {}; expected rank 3 "
                       "or more",
                       call.op->name, str(x));
  if (!x->shape) return x;
  for (size_t i = 1; i < 3; ++i) check_vector(call, i, x->dim(1));
  const auto channels = as_int(x->dim(1));
  if (groups && (*groups < 1 || (channels && *channels % *groups != 0)))
    throw CompileError(kBadAttribute, call.origin, "`{}` divides {} channels into {} groups",
                       call.op->name, tenon::str(x->dim(1)), *groups);
  return x;
}

Value lower_grouped(BlockBuilder& builder, const Call& call, std::optional<int64_t> groups) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const auto attrs = attrs_as<InstanceNormAttrs>(call);
  const bool scales = attrs.scale, centers = attrs.center;
  const Operand gamma = scales ? kernel.wide_arg(1) : Operand();
  const Operand beta = centers ? kernel.wide_arg(2) : Operand();
  const Expr count = groups ? int64(*groups) : x.shape[1];
  const Expr members = groups ? simplify_dim(floordiv(x.shape[1], *groups)) : int64(1);
  const bool single = is_int(members, 1);
  Shape extents(x.shape.begin() + 2, x.shape.end());
  if (!single) extents.insert(extents.begin(), members);
  const Moments m(kernel, {x.shape[0], count}, extents, attrs.epsilon,
                  [&](const Indices& i, const Indices& k) {
                    Indices at = {i[0], single ? i[1] : i[1] * members + k[0]};
                    at.insert(at.end(), k.begin() + !single, k.end());
                    return x(at);
                  });
  return kernel.emit_compute([&](const Indices& i) {
    const Indices group = {i[0], single ? i[1] : floordiv(i[1], members)};
    Expr value = (x(i) - m.mean(group)) * m.scale(group);
    if (scales) value = value * gamma({i[1]});
    return centers ? value + beta({i[1]}) : value;
  });
}

// ---- lrn ----------------------------------------------------------------------------------------

Value lower_lrn(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const auto attrs = attrs_as<LrnAttrs>(call);
  const int64_t size = attrs.size;
  const Operand squares =
      kernel.reduce("square_sum", x.shape, {int64(size)}, tir::sum_reducer(),
                    [&](const Indices& i, const Indices& k) {
                      Indices at = i;
                      at[1] = i[1] + k[0] - (size - 1) / 2;
                      const Expr inside = logical_and(at[1] >= int64(0), at[1] < x.shape[1]);
                      return if_then_else(inside, x(at) * x(at), imm(x.dtype, int64_t{0}));
                    });
  const double factor = attrs.alpha / static_cast<double>(size);
  return kernel.emit_compute([&](const Indices& i) {
    const Expr base = imm(x.dtype, attrs.bias) + imm(x.dtype, factor) * squares(i);
    return x(i) / float_call(IntrinsicId::kPow, {base, imm(x.dtype, attrs.beta)});
  });
}

OpDef norm(std::string name, std::string summary, std::vector<OpInput> inputs,
           std::vector<OpAttr> attrs, std::function<Type(const Call&)> infer, LowerRule lower,
           std::string source) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.attrs = std::move(attrs);
  op.infer_type = std::move(infer);
  op.lower = std::move(lower);
  op.fusion = FusionKind::kReduction;
  op.source = std::move(source);
  return op;
}

Type infer_lrn(const Call& call) {
  check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (x->ndim == 0 || x->ndim == 1) check_rank(call, 0, 4);
  const int64_t size = attrs_as<LrnAttrs>(call).size;
  if (size < 1)
    throw CompileError(kBadAttribute, call.origin, "`nn.lrn` has size {}; expected at least 1",
                       size);
  return x;
}

}  // namespace

std::vector<OpDef> nn_norm_ops() {
  const std::vector<OpInput> inputs = {
      {"data", "any shape"}, {"gamma", "factors"}, {"beta", "added"}};
  const auto groups = [](const Call& call) { return attrs_as<GroupNormAttrs>(call).num_groups; };
  std::vector<OpDef> ops;
  ops.push_back(batch_norm());
  ops.push_back(batch_norm_result());
  ops.push_back(norm("nn.layer_norm", "(x - mean) / sqrt(variance + epsilon) * gamma + beta.",
                     {{"data", "any shape"},
                      {"gamma", "the shape of the axes", true},
                      {"beta", "the shape of the axes", true}},
                     attrs_of<LayerNormAttrs>(), infer_over_axes, lower_layer_norm,
                     "ONNX LayerNormalization-17"));
  ops.back().onnx.name = "LayerNormalization";
  ops.push_back(norm("nn.rms_norm", "x / sqrt(mean of squares + epsilon) * weight.",
                     {{"data", "any shape"}, {"weight", "the shape of the axes"}},
                     attrs_of<RmsNormAttrs>(), infer_over_axes, lower_rms_norm,
                     "ONNX RMSNormalization-23"));
  ops.push_back(norm(
      "nn.group_norm", "layer_norm over groups of channels and all that follows.", inputs,
      attrs_of<GroupNormAttrs>(),
      [groups](const Call& call) { return infer_grouped(call, groups(call)); },
      [groups](BlockBuilder& builder, const Call& call) {
        return lower_grouped(builder, call, groups(call));
      },
      "ONNX GroupNormalization-21"));
  ops.push_back(norm(
      "nn.instance_norm", "layer_norm over the axes after the channels.", inputs,
      attrs_of<InstanceNormAttrs>(), [](const Call& call) { return infer_grouped(call, {}); },
      [](BlockBuilder& builder, const Call& call) { return lower_grouped(builder, call, {}); },
      "ONNX InstanceNormalization-6"));
  ops.push_back(norm("nn.lrn", "x / (bias + alpha / size * sum of squares of near channels)^beta.",
                     {{"data", "(n, c, ...)"}}, attrs_of<LrnAttrs>(), infer_lrn, lower_lrn,
                     "ONNX LRN-13"));
  return ops;
}

}  // namespace tenon::graph
