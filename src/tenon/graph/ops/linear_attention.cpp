// SPDX-License-Identifier: Apache-2.0
// Attention without softmax: a state of each head, read and written in each step.
#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/ops/define.h"
#include "tenon/graph/ops/recurrent.h"
#include "tenon/graph/shape.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct LinearAttentionAttrs {
  double scale = 1;
  static auto table() {
    return std::tuple{attr<&LinearAttentionAttrs::scale>("scale", "of the results")};
  }
};

enum Input : size_t { kQuery, kKey, kValue, kState, kDecay, kBeta };

Type infer_linear_attention(const Call& call) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!arg_or_null(call, i)) continue;
    check_float(call, i);
    check_rank(call, i, i == kBeta ? 3 : 4);
    if (i != kState) check_dtype(call, i, tensor_arg(call, kQuery)->dtype);
  }
  const Ref<TensorType> query = tensor_arg(call, kQuery), key = tensor_arg(call, kKey),
                        value = tensor_arg(call, kValue), state = tensor_arg(call, kState);
  if (!query->shape || !key->shape || !value->shape || !state->shape)
    throw CompileError(kUnsupported, call.origin, "`{}` of shapes that are not known",
                       call.op->name);
  if (wide_dtype(state->dtype) != wide_dtype(query->dtype)) check_dtype(call, kState, query->dtype);
  const Expr batch = query->dim(0), steps = query->dim(1), groups = key->dim(2);
  const auto check_shape = [&](size_t i, const Shape& shape) {
    const Ref<TensorType> type = tensor_arg(call, i);
    for (size_t d = 0; type->shape && d < shape.size(); ++d)
      if (shape[d])
        check_dim(call, i, type->dim(static_cast<int64_t>(d)), shape[d],
                  fmt::format("dimension {}", d));
  };
  check_shape(kKey, {batch, steps, {}, query->dim(3)});
  check_shape(kValue, {batch, steps, groups, {}});
  check_shape(kState, {batch, groups, query->dim(3), value->dim(3)});
  const auto heads = as_int(query->dim(2)), shared = as_int(groups);
  if (!heads || !shared)
    throw CompileError(kUnsupported, call.origin, "`{}` with {} heads of queries and {} of keys",
                       call.op->name, tenon::str(query->dim(2)), tenon::str(groups));
  if (*shared < 1 || *heads % *shared != 0)
    throw CompileError(kShapeMismatch, call.origin,
                       "`{}` has {} heads of queries and {} of keys; expected a multiple",
                       call.op->name, *heads, *shared);
  // What all elements of a head, or all heads, share has an extent of 1, which a symbol may be.
  const auto check_shared = [&](size_t i, const Expr& full) {
    const Expr last = shaped_arg(call, i)->dim(-1);
    if (as_int(last)) {
      if (!is_int(last, 1)) check_dim(call, i, last, full, "the last dimension");
    } else if (dims_agree(last, full) != DimsAgree::kYes) {
      assume(logical_or(eq(last, int64(1)), eq(last, full)),
             fmt::format("the last dimension of an operand is neither 1 nor {}", tenon::str(full)));
    }
  };
  if (arg_or_null(call, kDecay)) {
    check_shape(kDecay, {batch, steps, groups});
    check_shared(kDecay, query->dim(3));
  }
  if (arg_or_null(call, kBeta)) {
    check_shape(kBeta, {batch, steps});
    check_shared(kBeta, groups);
  }
  return make<TupleType>(std::vector<Type>{
      make<TensorType>(Shape{batch, steps, query->dim(2), value->dim(3)}, query->dtype), state});
}

// Blocks of one step, in a serial loop around them.
class Loop {
 public:
  Loop(KernelOf& kernel, Expr steps)
      : kernel_(kernel), steps_(std::move(steps)), loop_(make<tenon::Var>("t", kInt64)) {}

  /// `out[place(step, i...)] = element(step, i...)` for all i in `shape`, or where `extent` is given
  /// the sum of `element(step, i..., k)`.
  void define(const Operand& out, const Shape& shape, const Expr& extent,
              const std::function<Indices(const Expr&, const Indices&)>& place,
              const std::function<Expr(const Expr&, const Indices&, const Expr&)>& element) {
    std::vector<tir::Axis> axes = tir::KernelBuilder::axes(shape);
    const Indices i = tir::KernelBuilder::indices(axes);
    const tir::Axis step{make<tenon::Var>("v_t", kInt64), steps_, tir::IterKind::kScan, {}, loop_};
    axes.insert(axes.begin(), step);
    const Indices at = place(step.var, i);
    tir::Stmt init;
    Expr value, k;
    if (extent) {
      axes.push_back(tir::KernelBuilder::axes({extent}, tir::IterKind::kReduce, "k")[0]);
      k = axes.back().var;
      init = make<tir::BufferStore>(out.buffer, imm(out.dtype, int64_t{0}), at);
    }
    value = element(step.var, i, k);
    if (extent) value = out(at) + value;
    body_.push_back(tir::define("step_" + out.buffer->name, axes, init,
                                make<tir::BufferStore>(out.buffer, value, at)));
  }
  void finish() {
    kernel_.append(
        make<tir::For>(loop_, int64(0), steps_, tir::ForKind::kSerial, tir::seq(std::move(body_))));
  }

 private:
  KernelOf& kernel_;
  Expr steps_;
  Ref<tenon::Var> loop_;
  std::vector<tir::Stmt> body_;
};

Value lower_linear_attention(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const auto arg = [&](size_t i) {
    return arg_or_null(call, i) ? KernelOf::wide(kernel.buffer_arg(i)) : Operand();
  };
  const Operand query = arg(kQuery), key = arg(kKey), value = arg(kValue), past = arg(kState),
                decay = arg(kDecay), beta = arg(kBeta);
  const DType dtype = query.dtype;
  const Expr batch = query.shape[0], heads = query.shape[2], depth = query.shape[3];
  const Expr groups = key.shape[2], width = value.shape[3];
  const int64_t members = *as_int(heads) / *as_int(groups);
  const double scale = attrs_as<LinearAttentionAttrs>(call).scale;
  const auto scaled = [&](const Expr& x) { return scale == 1 ? x : x * imm(dtype, scale); };
  const auto shared = [](const Operand& x, const Expr& i, const Expr& full) {
    const Expr& last = x.shape.back();
    if (is_int(last, 1)) return int64(0);
    if (dims_agree(last, full) == DimsAgree::kYes || as_int(last)) return i;
    return select(eq(last, int64(1)), int64(0), i);
  };
  const Operand out = kernel.allocate("Y", kernel.shape(0), dtype);
  const Operand state = kernel.compute(
      "state", past.shape, [&](const Indices& i) { return tenon::cast(dtype, past(i)); });
  const Operand rates = decay ? kernel.compute("rates", decay.shape,
                                               [&](const Indices& i) {
                                                 return float_call(IntrinsicId::kExp, {decay(i)});
                                               })
                              : Operand();
  // The state before a step, as the step finds it.
  const auto kept = [&](const Expr& t, const Indices& i) -> Expr {
    return decay ? state(i) * rates({i[0], t, i[1], shared(rates, i[2], depth)}) : state(i);
  };
  Loop loop(kernel, query.shape[1]);
  Operand found;
  const auto same = [](const Expr&, const Indices& i) { return i; };
  if (beta) {
    found = kernel.allocate("found", {batch, groups, width}, dtype);
    loop.define(found, found.shape, depth, same,
                [&](const Expr& t, const Indices& i, const Expr& k) {
                  return kept(t, {i[0], i[1], k, i[2]}) * key({i[0], t, i[1], k});
                });
  }
  loop.define(state, state.shape, {}, same, [&](const Expr& t, const Indices& i, const Expr&) {
    Expr next = value({i[0], t, i[1], i[3]});
    if (beta)
      next = beta({i[0], t, shared(beta, i[1], groups)}) * (next - found({i[0], i[1], i[3]}));
    return kept(t, i) + key({i[0], t, i[1], i[2]}) * next;
  });
  loop.define(
      out, {batch, heads, width}, depth,
      [](const Expr& t, const Indices& i) { return Indices{i[0], t, i[1], i[2]}; },
      [&](const Expr& t, const Indices& i, const Expr& k) {
        return scaled(query({i[0], t, i[1], k})) * state({i[0], floordiv(i[1], members), k, i[2]});
      });
  loop.finish();
  return kernel.emit({out, state});
}

}  // namespace

OpDef linear_attention() {
  OpDef op;
  op.name = "nn.linear_attention";
  op.summary =
      "In each step state = exp(decay) * state + key (x) value, then query^T state * scale; with "
      "beta the value is beta * (value - (exp(decay) * state)^T key). A tuple of the results and "
      "the last state.";
  op.inputs = {{"query", "(batch, steps, heads, depth)"},
               {"key", "(batch, steps, groups, depth); groups divides heads"},
               {"value", "(batch, steps, groups, width)"},
               {"state", "(batch, groups, depth, width)"},
               {"decay", "(batch, steps, groups, depth or 1), logarithms", true},
               {"beta", "(batch, steps, groups or 1)", true}};
  op.attrs = attrs_of<LinearAttentionAttrs>();
  op.infer_type = infer_linear_attention;
  op.lower = lower_linear_attention;
  op.fusion = FusionKind::kOpaque;
  op.source = "ONNX LinearAttention-27";
  return op;
}

}  // namespace tenon::graph
