// SPDX-License-Identifier: Apache-2.0
// Softmax and its kin, dropout, attention.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct AlongAxisAttrs {
  int64_t axis = -1;
  static auto table() {
    return std::tuple{attr<&AlongAxisAttrs::axis>("axis", "along which the result sums to 1")};
  }
};

Type infer_along_axis(const Call& call) {
  check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (x->ndim >= 0) (void)axis_of(call, attrs_as<AlongAxisAttrs>(call).axis, x->ndim);
  return x;
}

// One axis of x taken out of, and put into, indices.
struct Along {
  size_t axis;
  Shape outer;
  Expr extent;

  Along(const Call& call, const Operand& x)
      : axis(axis_of(call, attrs_as<AlongAxisAttrs>(call).axis, static_cast<int64_t>(x.ndim()))),
        extent(x.shape[axis]) {
    outer = reduced_shape(x.shape, {axis}, false);
  }
  Indices join(Indices i, const Expr& k) const {
    i.insert(i.begin() + static_cast<std::ptrdiff_t>(axis), k);
    return i;
  }
  Indices drop(Indices at) const {
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    return at;
  }
  Operand reduce(KernelOf& kernel, const std::string& name, const tir::Reducer& reducer,
                 const std::function<Expr(const Indices&)>& element) const {
    return kernel.reduce(name, outer, {extent}, reducer, [&](const Indices& i, const Indices& k) {
      return element(join(i, k[0]));
    });
  }
};

Value lower_softmax(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const Along along(call, x);
  const Operand most = along.reduce(kernel, kernel.out_name() + "_maxelem", tir::max_reducer(),
                                    [&](const Indices& at) { return x(at); });
  const Operand exps = kernel.compute(kernel.out_name() + "_exp", x.shape, [&](const Indices& at) {
    return float_call(IntrinsicId::kExp, {x(at) - most(along.drop(at))});
  });
  const Operand sum = along.reduce(kernel, kernel.out_name() + "_expsum", tir::sum_reducer(),
                                   [&](const Indices& at) { return exps(at); });
  // One division a row. A sum is at least 1, so its reciprocal is a normal number.
  const Operand scale =
      kernel.compute(kernel.out_name() + "_scale", along.outer,
                     [&](const Indices& i) { return imm(x.dtype, 1.0) / sum(i); });
  return kernel.emit({kernel.compute(kernel.out_name() + "_norm", x.shape, [&](const Indices& at) {
    return exps(at) * scale(along.drop(at));
  })});
}

Value lower_log_softmax(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const Along along(call, x);
  const Operand most = along.reduce(kernel, kernel.out_name() + "_maxelem", tir::max_reducer(),
                                    [&](const Indices& at) { return x(at); });
  const Operand sum = along.reduce(
      kernel, kernel.out_name() + "_expsum", tir::sum_reducer(), [&](const Indices& at) {
        return float_call(IntrinsicId::kExp, {x(at) - most(along.drop(at))});
      });
  return kernel.emit_compute([&](const Indices& at) {
    const Indices outer = along.drop(at);
    return x(at) - most(outer) - float_call(IntrinsicId::kLog, {sum(outer)});
  });
}

Value lower_hardmax(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  const Along along(call, x);
  const Operand most = along.reduce(kernel, "greatest", tir::max_reducer(),
                                    [&](const Indices& at) { return x(at); });
  const Operand first = kernel.reduce(
      "first", along.outer, {along.extent}, tir::min_reducer(),
      [&](const Indices& i, const Indices& k) {
        const Expr value = x(along.join(i, k[0]));
        return select(logical_or(eq(value, most(i)), ne(value, value)), k[0], along.extent);
      });
  return kernel.emit_compute([&](const Indices& at) {
    return select(eq(at[along.axis], first(along.drop(at))), imm(x.dtype, int64_t{1}),
                  imm(x.dtype, int64_t{0}));
  });
}

OpDef along_axis(std::string name, std::string summary, LowerRule lower, std::string source) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {{"data", "any shape"}};
  op.attrs = attrs_of<AlongAxisAttrs>();
  op.infer_type = infer_along_axis;
  op.lower = std::move(lower);
  op.fusion = FusionKind::kOpaque;  // more than one pass over its input
  op.source = std::move(source);
  return op;
}

struct DropoutAttrs {
  double rate = 0.5;
  static auto table() {
    return std::tuple{attr<&DropoutAttrs::rate>("rate", "of training; not used")};
  }
};

OpDef dropout() {
  OpDef op;
  op.name = "nn.dropout";
  op.summary = "Inference form: a tuple of the data and a mask of ones.";
  op.inputs = {{"data", "any shape"}};
  op.attrs = attrs_of<DropoutAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0);
    return make<TupleType>(std::vector<Type>{x, x});
  };
  op.lower = [](BlockBuilder& builder, const Call& call) -> Value {
    const Value ones = builder.emit(call_op("ones_like", {call.args[0]}, {}, call.origin));
    return make<Tuple>(std::vector<Value>{call.args[0], ones});
  };
  op.fusion = FusionKind::kOpaque;
  return op;
}

// ---- attention ----------------------------------------------------------------------------------

struct AttentionAttrs {
  std::optional<double> scale;
  std::optional<std::string> causal_mask;
  std::optional<int64_t> window_size;
  static auto table() {
    return std::tuple{
        attr<&AttentionAttrs::scale>("scale", "None: 1 / sqrt(depth)"),
        attr<&AttentionAttrs::causal_mask>(
            "causal_mask", "\"TopLeft\" or \"BottomRight\": later columns are masked; None: none"),
        attr<&AttentionAttrs::window_size>("window_size", "must be None")};
  }
};

Type infer_attention(const Call& call) {
  for (size_t i = 0; i < 3; ++i) {
    check_rank(call, i, 4);
    check_float(call, i);
    check_dtype(call, i, tensor_arg(call, 0)->dtype);
  }
  const Ref<TensorType> q = tensor_arg(call, 0), k = tensor_arg(call, 1), v = tensor_arg(call, 2);
  const auto attrs = attrs_as<AttentionAttrs>(call);
  const std::string mask = attrs.causal_mask.value_or("");
  if (!mask.empty() && mask != "TopLeft" && mask != "BottomRight")
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `causal_mask` of `{}` is \"{}\"; expected \"TopLeft\" or "
                       "\"BottomRight\"",
                       call.op->name, mask);
  if (attrs.window_size)
    throw CompileError(kUnsupported, call.origin, "`{}` with a window_size", call.op->name);
  if (!q->shape || !k->shape || !v->shape) return make<TensorType>(q->dtype, 4);
  check_dim(call, 1, k->dim(0), q->dim(0), "dimension 0");
  check_dim(call, 1, k->dim(2), q->dim(2), "dimension 2");
  check_dim(call, 1, k->dim(3), q->dim(3), "dimension 3");
  check_dim(call, 2, v->dim(0), q->dim(0), "dimension 0");
  check_dim(call, 2, v->dim(1), k->dim(1), "dimension 1");
  check_dim(call, 2, v->dim(2), q->dim(2), "dimension 2");
  if (arg_or_null(call, 3)) {
    const Ref<TensorType> bias = tensor_arg(call, 3);
    const Shape scores = {q->dim(0), q->dim(2), q->dim(1), k->dim(1)};
    if (!bias->shape) return make<TensorType>(q->dtype, 4);
    const auto all = broadcast_shapes(*bias->shape, scores, call.op->name, call.origin);
    // A symbolic dimension where the scores have another: 1 or equal, which only a run tells.
    if (!all) return make<TensorType>(q->dtype, 4);
    if (all->size() != scores.size())
      throw CompileError(kShapeMismatch, call.origin,
                         "`{}` has a bias of shape {}; expected rank 4", call.op->name,
                         tenon::str(*bias->shape));
    for (size_t i = 0; i < scores.size(); ++i)
      check_dim(call, 3, (*all)[i], scores[i], "a dimension");
  }
  return make<TensorType>(Shape{q->dim(0), q->dim(1), q->dim(2), v->dim(3)}, q->dtype);
}

Value lower_attention(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand q = kernel.wide_arg(0), k = kernel.wide_arg(1), v = kernel.wide_arg(2);
  const Operand bias = arg_or_null(call, 3) ? kernel.wide_arg(3) : Operand();
  const Expr rows = q.shape[1], columns = k.shape[1];
  const Shape scores = {q.shape[0], q.shape[2], rows, columns};
  const Shape outer = {q.shape[0], q.shape[2], rows};
  const DType dtype = q.dtype;
  const auto attrs = attrs_as<AttentionAttrs>(call);
  const Expr scale = attrs.scale
                         ? imm(dtype, *attrs.scale)
                         : imm(dtype, int64_t{1}) /
                               float_call(IntrinsicId::kSqrt, {tenon::cast(dtype, q.shape[3])});
  const std::string mask = attrs.causal_mask.value_or("");
  const Operand product = kernel.reduce(
      "scores", scores, {q.shape[3]}, tir::sum_reducer(), [&](const Indices& i, const Indices& d) {
        return q({i[0], i[2], i[1], d[0]}) * k({i[0], i[3], i[1], d[0]});
      });
  const Operand masked = kernel.compute("scaled", scores, [&](const Indices& i) {
    Expr value = product(i) * scale;
    if (bias) value = value + bias.broadcast(i);
    if (mask.empty()) return value;
    const Expr last = mask == "TopLeft" ? i[2] : i[2] + columns - rows;
    return select(i[3] <= last, value, tir::least_value(dtype));
  });
  const auto at = [](Indices i, const Expr& c) {
    i.push_back(c);
    return i;
  };
  const Operand most =
      kernel.reduce("greatest", outer, {columns}, tir::max_reducer(),
                    [&](const Indices& i, const Indices& c) { return masked(at(i, c[0])); });
  const Operand exps = kernel.compute("exps", scores, [&](const Indices& i) {
    return float_call(IntrinsicId::kExp, {masked(i) - most({i[0], i[1], i[2]})});
  });
  const Operand sum =
      kernel.reduce("expsum", outer, {columns}, tir::sum_reducer(),
                    [&](const Indices& i, const Indices& c) { return exps(at(i, c[0])); });
  const Operand weights = kernel.compute(
      "weights", scores, [&](const Indices& i) { return exps(i) / sum({i[0], i[1], i[2]}); });
  return kernel.emit({kernel.reduce(kernel.out_name(), kernel.shape(), {columns},
                                    tir::sum_reducer(), [&](const Indices& i, const Indices& c) {
                                      return weights({i[0], i[2], i[1], c[0]}) *
                                             v({i[0], c[0], i[2], i[3]});
                                    })});
}

OpDef attention() {
  OpDef op;
  op.name = "nn.attention";
  op.summary = "softmax(query key^T * scale + bias) value for each head.";
  op.inputs = {{"query", "(batch, rows, heads, depth)"},
               {"key", "(batch, columns, heads, depth)"},
               {"value", "(batch, columns, heads, width)"},
               {"bias", "broadcast to (batch, heads, rows, columns)", true}};
  op.attrs = attrs_of<AttentionAttrs>();
  op.infer_type = infer_attention;
  op.lower = lower_attention;
  op.fusion = FusionKind::kOpaque;
  op.source = "Relax, nn.attention";
  return op;
}

}  // namespace

std::vector<OpDef> nn_activation_ops() {
  OpDef log_softmax = along_axis("nn.log_softmax", "Logarithm of softmax.", lower_log_softmax,
                                 "ONNX LogSoftmax-13");
  log_softmax.onnx.name = "LogSoftmax";
  return {
      along_axis("nn.softmax", "exp(x - max) / sum of these.", lower_softmax, "ONNX Softmax-13"),
      std::move(log_softmax),
      along_axis("nn.hardmax", "1 at the first greatest element, 0 elsewhere.", lower_hardmax,
                 "ONNX Hardmax-13"),
      dropout(), attention()};
}

}  // namespace tenon::graph
