// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. `nn.lstm`, `nn.gru` and `nn.rnn` are what ONNX defines; they are made of one
// product of all steps' inputs, up front, and a recurrence operator whose kernel is a serial loop
// over the steps, never unrolled.
#include "tenon/graph/ops/recurrent.h"

#include <algorithm>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct CellKind {
  std::string_view name;  // of the layer's operator
  int64_t gates;
  bool has_cell_state;
  std::vector<std::string> activations;  // defaults
};
const CellKind& lstm() {
  static const CellKind kLstm{"nn.lstm", 4, true, {"sigmoid", "tanh", "tanh"}};
  return kLstm;
}
const CellKind& gru() {
  static const CellKind kGru{"nn.gru", 3, false, {"sigmoid", "tanh"}};
  return kGru;
}
const CellKind& rnn() {
  static const CellKind kRnn{"nn.rnn", 1, false, {"tanh"}};
  return kRnn;
}

struct RecurrenceAttrs {
  std::string direction = "forward";
  std::vector<std::string> activations;
  std::vector<double> activation_alpha, activation_beta;
  std::optional<double> clip;
  static auto table() {
    return std::tuple{
        attr<&RecurrenceAttrs::direction>(
            "direction",
            "\"forward\", \"reverse\" or \"bidirectional\": then results of both directions"),
        attr<&RecurrenceAttrs::activations>(
            "activations",
            "of each direction in ONNX's order, in small letters; none: ONNX's defaults"),
        attr<&RecurrenceAttrs::activation_alpha>(
            "activation_alpha", "a parameter for each of activations; none: ONNX's defaults"),
        attr<&RecurrenceAttrs::activation_beta>("activation_beta", "the same of the second one"),
        attr<&RecurrenceAttrs::clip>("clip",
                                     "what goes into the activation of a gate is held "
                                     "in [-clip, clip]; None: not at all")};
  }
};
struct LstmRecurrenceAttrs : RecurrenceAttrs {
  bool input_forget = false;
  static auto table() {
    return std::tuple_cat(RecurrenceAttrs::table(),
                          std::tuple{attr<&LstmRecurrenceAttrs::input_forget>(
                              "input_forget", "the forget gate is 1 - input gate")});
  }
};
struct LayerAttrs : RecurrenceAttrs {
  int64_t hidden_size = 1;
  static auto table() {
    return std::tuple_cat(RecurrenceAttrs::table(),
                          std::tuple{required<&LayerAttrs::hidden_size>(
                              "hidden_size", "units; 0: as many as the last axis of R has")});
  }
};
struct LstmAttrs : LayerAttrs {
  bool input_forget = false;
  static auto table() {
    return std::tuple_cat(LayerAttrs::table(),
                          std::tuple{attr<&LstmAttrs::input_forget>(
                              "input_forget", "the forget gate is 1 - input gate")});
  }
};
struct GruAttrs : LayerAttrs {
  bool linear_before_reset = false;
  static auto table() {
    return std::tuple_cat(
        LayerAttrs::table(),
        std::tuple{attr<&GruAttrs::linear_before_reset>(
            "linear_before_reset", "the reset gate scales the product, not the state before it")});
  }
};

int64_t directions(const Call& call) {
  const std::string direction = attrs_as<RecurrenceAttrs>(call).direction;
  if (direction == "bidirectional") return 2;
  if (direction == "forward" || direction == "reverse") return 1;
  throw CompileError(kBadAttribute, call.origin,
                     "attribute `direction` of `{}` is \"{}\"; expected \"forward\", \"reverse\" "
                     "or \"bidirectional\"",
                     call.op->name, direction);
}

// An activation function by ONNX's name in small letters, with the defaults of its parameters.
struct Activation {
  std::string_view name;
  double alpha, beta;
};
constexpr Activation kActivations[] = {
    {"sigmoid", 0, 0},      {"tanh", 0, 0},
    {"relu", 0, 0},         {"affine", 1, 0},
    {"leakyrelu", 0.01, 0}, {"thresholdedrelu", 1, 0},
    {"scaledtanh", 1, 1},   {"hardsigmoid", 0.2, 0.5},
    {"elu", 1, 0},          {"softsign", 0, 0},
    {"softplus", 0, 0},
};

// The activations of each direction, in order.
std::vector<Activation> activations(const Call& call, const CellKind& kind) {
  const auto attrs = attrs_as<RecurrenceAttrs>(call);
  std::vector<std::string> names = attrs.activations;
  const auto dirs = static_cast<size_t>(directions(call));
  if (names.empty())
    for (size_t d = 0; d < dirs; ++d)
      names.insert(names.end(), kind.activations.begin(), kind.activations.end());
  if (names.size() != dirs * kind.activations.size())
    throw CompileError(kBadAttribute, call.origin, "`{}` has {} activations; expected {}",
                       call.op->name, names.size(), dirs * kind.activations.size());
  std::vector<Activation> out;
  for (const std::string& name : names) {
    const auto* known =
        std::find_if(std::begin(kActivations), std::end(kActivations),
                     [&](const Activation& activation) { return activation.name == name; });
    if (known == std::end(kActivations))
      throw CompileError(kUnsupported, call.origin,
                         "`{}` with activation \"{}\"; expected one of ONNX's, in small letters",
                         call.op->name, name);
    out.push_back(*known);
  }
  const auto take = [&](const char* name, const std::vector<double>& values,
                        double Activation::* member) {
    if (!values.empty() && values.size() != out.size())
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `{}` of `{}` has {} numbers for {} activations", name,
                         call.op->name, values.size(), out.size());
    for (size_t i = 0; i < values.size(); ++i) out[i].*member = values[i];
  };
  take("activation_alpha", attrs.activation_alpha, &Activation::alpha);
  take("activation_beta", attrs.activation_beta, &Activation::beta);
  if (attrs.clip && !(*attrs.clip >= 0)) throw_bad_kind(call, "clip", *call.attrs.find("clip"));
  return out;
}

Expr activate(const Activation& f, const Expr& x) {
  const auto number = [&](double value) { return imm(x->dtype, value); };
  const Expr zero = number(0), one = number(1);
  const auto tanh = [](const Expr& e) { return float_call(IntrinsicId::kTanh, {e}); };
  if (f.name == "sigmoid") return float_call(IntrinsicId::kSigmoid, {x});
  if (f.name == "tanh") return tanh(x);
  if (f.name == "relu") return max(x, zero);
  if (f.name == "affine") return number(f.alpha) * x + number(f.beta);
  if (f.name == "leakyrelu") return select(x >= zero, x, number(f.alpha) * x);
  if (f.name == "thresholdedrelu") return select(x > number(f.alpha), x, zero);
  if (f.name == "scaledtanh") return number(f.alpha) * tanh(number(f.beta) * x);
  if (f.name == "hardsigmoid") return max(zero, min(one, number(f.alpha) * x + number(f.beta)));
  if (f.name == "elu")
    return select(x >= zero, x,
                  number(f.alpha) * (float_call(IntrinsicId::kExp, {min(x, zero)}) - one));
  const Expr magnitude = float_call(IntrinsicId::kFabs, {x});
  if (f.name == "softsign") return x / (one + magnitude);
  // softplus, without overflow
  return max(x, zero) +
         float_call(IntrinsicId::kLog1p, {float_call(IntrinsicId::kExp, {zero - magnitude})});
}

// ---- the layers ---------------------------------------------------------------------------------

enum Input : size_t { kX, kW, kR, kB, kInitialH, kInitialC };
// Where the lengths of sequences stand, and behind them the peepholes.
size_t lengths_input(const CellKind& kind) { return kind.has_cell_state ? 6 : 5; }
size_t recurrence_lengths_input(const CellKind& kind) { return kind.name == "nn.rnn" ? 3 : 4; }

void check_lengths(const Call& call, size_t i, const Expr& batch) {
  if (!present(call, i)) return;
  check_rank(call, i, 1);
  const Ref<TensorType> type = tensor_arg(call, i);
  if (!accepts(Takes::kInteger, type->dtype))
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `{}` of `{}` has dtype {}; expected an integer dtype",
                       input_name(call, i), call.op->name, type->dtype.str());
  if (type->shape && batch) check_dim(call, i, type->dim(0), batch, "dimension 0");
}

// The types of all results, from the sizes of steps, batch and directions.
Type result_types(const CellKind& kind, const Expr& steps, const Expr& batch, int64_t dirs,
                  const Expr& hidden, DType dtype) {
  const Type last = make<TensorType>(Shape{int64(dirs), batch, hidden}, dtype);
  std::vector<Type> types = {make<TensorType>(Shape{steps, int64(dirs), batch, hidden}, dtype),
                             last};
  if (kind.has_cell_state) types.push_back(last);
  return make<TupleType>(std::move(types));
}

// The units of a layer.
Expr units_of(const Call& call) {
  const int64_t hidden = attrs_as<LayerAttrs>(call).hidden_size;
  if (hidden < 0)
    throw CompileError(kBadAttribute, call.origin, "`{}` has hidden_size {}; expected at least 0",
                       call.op->name, hidden);
  if (hidden > 0) return int64(hidden);
  check_rank(call, kR, 3);
  return shaped_arg(call, kR)->dim(2);
}

Type infer_layer(const Call& call, const CellKind& kind) {
  const Ref<TensorType> x = tensor_arg(call, kX);
  const int64_t dirs = directions(call);
  const Expr hidden = units_of(call);
  (void)activations(call, kind);
  check_float(call, kX);
  const auto check_shape = [&](size_t i, const std::vector<std::optional<Expr>>& shape) {
    check_rank(call, i, static_cast<int64_t>(shape.size()));
    check_dtype(call, i, x->dtype);
    const Ref<TensorType> type = tensor_arg(call, i);
    for (size_t d = 0; type->shape && d < shape.size(); ++d)
      if (shape[d])
        check_dim(call, i, (*type->shape)[d], *shape[d], fmt::format("dimension {}", d));
  };
  const auto dim = [&](int64_t i) { return x->shape ? std::optional(x->dim(i)) : std::nullopt; };
  check_rank(call, kX, 3);
  const auto times = [&](int64_t count) { return simplify_dim(hidden * count); };
  check_shape(kW, {int64(dirs), times(kind.gates), dim(2)});
  check_shape(kR, {int64(dirs), times(kind.gates), hidden});
  if (present(call, kB)) check_shape(kB, {int64(dirs), times(2 * kind.gates)});
  for (const size_t i : {size_t{kInitialH}, size_t{kInitialC}})
    if ((i == kInitialH || kind.has_cell_state) && present(call, i))
      check_shape(i, {int64(dirs), dim(1), hidden});
  check_lengths(call, lengths_input(kind), x->shape ? x->dim(1) : Expr());
  if (kind.has_cell_state && present(call, lengths_input(kind) + 1))
    check_shape(lengths_input(kind) + 1, {int64(dirs), times(3)});
  if (!x->shape)
    throw CompileError(kUnsupported, call.origin, "`{}` of {}, whose shape is not known",
                       call.op->name, str(x));
  return result_types(kind, x->dim(0), x->dim(1), dirs, hidden, x->dtype);
}

// Slices of gates [begin, end) of a (dirs, 1, gates, hidden) tensor.
Value gate_slice(BlockBuilder& builder, const Value& bias, int64_t begin, int64_t end) {
  const auto one = [](int64_t v) { return make<ShapeExpr>(Shape{int64(v)}); };
  return builder.op("strided_slice", {bias, one(2), one(begin), one(end)});
}

Value lower_layer(BlockBuilder& builder, const Call& call, const CellKind& kind) {
  const Ref<TensorType> x = shaped_arg(call, kX);
  const int64_t dirs = directions(call);
  const Expr in = x->dim(2), d = int64(dirs), h = units_of(call), gates = int64(kind.gates);
  const auto reshape = [&](const Value& value, Shape shape) {
    return builder.op("reshape", {value, make<ShapeExpr>(std::move(shape))});
  };
  // Weights with the units of gates last, as the product and the recurrence read them.
  Value weights = reshape(call.args[kW], {simplify_dim(h * (dirs * kind.gates)), in});
  weights = builder.op("permute_dims", {weights}, {{"axes", std::vector<int64_t>{1, 0}}});
  const Value recurrent = builder.op("permute_dims", {reshape(call.args[kR], {d, gates, h, h})},
                                     {{"axes", std::vector<int64_t>{0, 1, 3, 2}}});
  Value product = builder.op("matmul", {call.args[kX], weights});
  product = reshape(product, {x->dim(0), x->dim(1), d, gates, h});

  const bool resets_after = kind.name == "nn.gru" && attrs_as<GruAttrs>(call).linear_before_reset;
  Value recurrent_bias;
  if (present(call, kB)) {
    const Value bias = reshape(call.args[kB], {d, int64(2), gates, h});
    Value total;
    if (resets_after) {
      // The candidate's recurrent bias is inside of what the reset gate scales.
      const Value parts = builder.op("split", {bias}, {{"indices_or_sections", 2}, {"axis", 1}});
      const Value own = builder.emit(make<TupleGetItem>(parts, 0));
      const Value back = builder.emit(make<TupleGetItem>(parts, 1));
      const Value gated =
          builder.op("add", {gate_slice(builder, own, 0, 2), gate_slice(builder, back, 0, 2)});
      total = builder.op("concat",
                         {make<Tuple>(std::vector<Value>{gated, gate_slice(builder, own, 2, 3)})},
                         {{"axis", 2}});
      recurrent_bias = reshape(gate_slice(builder, back, 2, 3), {d, h});
    } else {
      total = builder.op("sum", {bias}, {{"axis", std::vector<int64_t>{1}}, {"keepdims", true}});
    }
    product = builder.op("add", {product, reshape(total, {d, gates, h})});
  } else if (resets_after) {
    recurrent_bias = builder.op("zeros", {make<ShapeExpr>(Shape{d, h})}, {{"dtype", x->dtype}});
  }
  const auto initial = [&](size_t i) -> Value {
    if (i < call.args.size() && present(call, i)) return call.args[i];
    return builder.op("zeros", {make<ShapeExpr>(Shape{d, x->dim(1), h})}, {{"dtype", x->dtype}});
  };
  std::vector<Value> args = {product, recurrent, initial(kInitialH)};
  if (kind.has_cell_state) args.push_back(initial(kInitialC));
  if (recurrent_bias) args.push_back(recurrent_bias);
  const size_t lengths = lengths_input(kind);
  const bool peeps = kind.has_cell_state && present(call, lengths + 1);
  if (present(call, lengths) || peeps) {
    args.resize(recurrence_lengths_input(kind));
    args.push_back(present(call, lengths) ? call.args[lengths] : Value());
  }
  if (peeps) args.push_back(reshape(call.args[lengths + 1], {d, int64(3), h}));
  LstmRecurrenceAttrs attrs{attrs_as<RecurrenceAttrs>(call),
                            kind.has_cell_state && attrs_as<LstmAttrs>(call).input_forget};
  if (attrs.activations.empty())
    for (int64_t i = 0; i < dirs; ++i)
      attrs.activations.insert(attrs.activations.end(), kind.activations.begin(),
                               kind.activations.end());
  return builder.emit(call_op(
      std::string(kind.name) + "_recurrence", std::move(args),
      kind.has_cell_state ? to_attrs(attrs) : to_attrs<RecurrenceAttrs>(attrs), call.origin));
}

// ---- the recurrences ----------------------------------------------------------------------------

// One direction's steps in a kernel: a serial loop around blocks of one step.
class Steps {
 public:
  Steps(KernelOf& kernel, const Operand& product, const Operand& lengths, int64_t direction,
        bool reverse)
      : kernel_(kernel),
        lengths_(lengths),
        steps_(product.shape[0]),
        batch_(product.shape[1]),
        units_(product.shape[4]),
        direction_(int64(direction)),
        reverse_(reverse),
        loop_(make<tenon::Var>("t", kInt64)) {}

  const Expr& batch() const { return batch_; }
  const Expr& units() const { return units_; }
  const Expr& direction() const { return direction_; }

  /// `buffer[i...] = element(step, i...)`, of the step's place in the sequence.
  void set(const Operand& out, const std::function<Expr(const Expr&, const Indices&)>& element) {
    std::vector<tir::Axis> axes = step_axes(out.shape);
    const Indices at(indices(axes));
    body_.push_back(tir::define(name(out), axes, {},
                                make<tir::BufferStore>(out.buffer, element(place(axes), at), at)));
  }
  /// The same of a state, by batch first: sequences that are over keep theirs.
  void advance(const Operand& state,
               const std::function<Expr(const Expr&, const Indices&)>& element) {
    set(state, [&](const Expr& step, const Indices& i) {
      const Expr next = element(step, i);
      return lengths_ ? select(is_within(step, i[0]), next, state(i)) : next;
    });
  }
  /// `buffer[i...] = first(step, i...) + sum over k of element(i..., k)`.
  void product(const Operand& out, const Expr& extent,
               const std::function<Expr(const Expr&, const Indices&)>& first,
               const std::function<Expr(const Indices&, const Expr&)>& element) {
    std::vector<tir::Axis> axes = step_axes(out.shape);
    const Indices at(indices(axes));
    const Expr step = place(axes);
    axes.push_back(tir::KernelBuilder::axes({extent}, tir::IterKind::kReduce, "k")[0]);
    const tir::Stmt init = make<tir::BufferStore>(out.buffer, first(step, at), at);
    const tir::Stmt body =
        make<tir::BufferStore>(out.buffer, out(at) + element(at, axes.back().var), at);
    body_.push_back(tir::define(name(out), axes, init, body));
  }
  /// `out[0]` = the extreme of 0 and every element of `of`, but forwards those of sequences that were
  /// over in the step before.
  void extreme(const Operand& out, const Operand& of,
               const std::function<Expr(const Expr&, const Expr&)>& pick) {
    std::vector<tir::Axis> axes = step_axes({int64(1)});
    const Indices at(indices(axes));
    const Expr t = axes[0].var;
    for (const tir::Axis& axis : tir::KernelBuilder::axes(of.shape, tir::IterKind::kReduce, "k"))
      axes.push_back(axis);
    const Indices k = {axes[2].var, axes[3].var};
    const Expr zero = imm(of.dtype, int64_t{0});
    const Expr element = lengths_ && !reverse_
                             ? select(t <= tenon::cast(kInt64, lengths_({k[0]})), of(k), zero)
                             : of(k);
    body_.push_back(tir::define(name(out), axes, make<tir::BufferStore>(out.buffer, zero, at),
                                make<tir::BufferStore>(out.buffer, pick(out(at), element), at)));
  }
  /// `out[step, direction, b, u] = value[b, u]`, into the sequence of results; 0 behind the end of
  /// a sequence.
  void store(const Operand& out, const Operand& value) {
    std::vector<tir::Axis> axes = step_axes(value.shape);
    const Indices at(indices(axes));
    const Expr step = place(axes);
    const Expr stored =
        lengths_ ? select(is_within(step, at[0]), value(at), imm(value.dtype, int64_t{0}))
                 : value(at);
    body_.push_back(tir::define(
        "store_step", axes, {},
        make<tir::BufferStore>(out.buffer, stored, Indices{step, direction_, at[0], at[1]})));
  }
  /// A state of (batch, units) that begins as `initial` of this direction.
  Operand state(const std::string& name, const Operand& initial) {
    const Operand out = kernel_.allocate(name, {batch_, units_}, initial.dtype);
    copy(name + "_init", out.shape, [&](const Indices& i) {
      return make<tir::BufferStore>(out.buffer, initial({direction_, i[0], i[1]}), i);
    });
    return out;
  }
  /// Ends the loop; afterwards `last[direction]` takes the state.
  void finish(const std::vector<std::pair<Operand, Operand>>& states) {
    kernel_.append(
        make<tir::For>(loop_, int64(0), steps_, tir::ForKind::kSerial, tir::seq(std::move(body_))));
    for (const auto& [last, state] : states) {
      const Operand& from = state;
      const Operand& to = last;
      copy("last_" + from.buffer->name, from.shape, [&](const Indices& i) {
        return make<tir::BufferStore>(to.buffer, from(i), Indices{direction_, i[0], i[1]});
      });
    }
  }

 private:
  std::vector<tir::Axis> step_axes(const Shape& shape) {
    std::vector<tir::Axis> axes = tir::KernelBuilder::axes(shape);
    tir::Axis step{make<tenon::Var>("v_t", kInt64), steps_, tir::IterKind::kScan, {}, loop_};
    axes.insert(axes.begin(), step);
    return axes;
  }
  static Indices indices(const std::vector<tir::Axis>& axes) {
    const Indices all = tir::KernelBuilder::indices(axes);
    return {all.begin() + 1, all.end()};
  }
  Expr place(const std::vector<tir::Axis>& axes) const {
    const Expr t = axes[0].var;
    return reverse_ ? steps_ - 1 - t : t;
  }
  static std::string name(const Operand& out) { return "step_" + out.buffer->name; }
  void copy(const std::string& name, const Shape& shape,
            const std::function<tir::Stmt(const Indices&)>& store) {
    const auto axes = tir::KernelBuilder::axes(shape);
    kernel_.append(tir::define(name, axes, {}, store(tir::KernelBuilder::indices(axes))));
  }

  Expr is_within(const Expr& step, const Expr& b) const {
    return step < tenon::cast(kInt64, lengths_({b}));
  }

  KernelOf& kernel_;
  Operand lengths_;  // of sequences; none: all have every step
  Expr steps_, batch_, units_, direction_;
  bool reverse_;
  Ref<tenon::Var> loop_;
  std::vector<tir::Stmt> body_;
};

// What the step of a cell reads and defines.
struct Cell {
  Operand product, recurrent, hidden;
  std::vector<Activation> activations;
  DType dtype;
  std::optional<double> clip;
  Operand peepholes = {};  // (directions, 3, units): of the input, output and forget gate
  Operand scales = {};     // (directions, gates, units) of `recurrent`, where that is of integers
  bool input_forget = false;

  Expr activate(size_t which, const Expr& x) const {
    if (!clip) return graph::activate(activations[which], x);
    const Expr most = imm(dtype, *clip), least = imm(dtype, -*clip);
    return graph::activate(activations[which], max(least, min(x, most)));
  }
};

Expr gate_input(const Cell& cell, const Steps& steps, const Expr& step, const Expr& b,
                const Expr& gate, const Expr& unit) {
  return cell.product({step, b, steps.direction(), gate, unit});
}

// `sums[b, gate, u]` of the first `count` gates: inputs plus hidden state times weights.
Operand gate_sums(KernelOf& kernel, Steps& steps, const Cell& cell, int64_t count) {
  const Operand sums =
      kernel.allocate("gates", {steps.batch(), int64(count), steps.units()}, cell.dtype);
  steps.product(
      sums, steps.units(),
      [&](const Expr& step, const Indices& i) {
        return gate_input(cell, steps, step, i[0], i[1], i[2]);
      },
      [&](const Indices& i, const Expr& k) {
        return cell.hidden({i[0], k}) * cell.recurrent({steps.direction(), i[1], k, i[2]});
      });
  return sums;
}

// The same of weights that are integers. The hidden state is held in 256 steps of its range, 0 among
// them, which each step finds.
Operand quantised_gate_sums(KernelOf& kernel, Steps& steps, const Cell& cell) {
  const Shape one = {int64(1)}, all = {steps.batch(), int64(4), steps.units()};
  const auto number = [&](double value) { return imm(cell.dtype, value); };
  const Operand least = kernel.allocate("least", one, cell.dtype);
  const Operand most = kernel.allocate("most", one, cell.dtype);
  const Operand scale = kernel.allocate("scale", one, cell.dtype);
  const Operand zero = kernel.allocate("zero_point", one, cell.dtype);
  const Operand places = kernel.allocate("places", cell.hidden.shape, kInt16);
  const Operand sums = kernel.allocate("sums", all, kInt32);
  const Operand gates = kernel.allocate("gates", all, cell.dtype);
  const Indices first = {int64(0)};
  const auto held = [&](const Expr& x) { return max(number(0), min(x, number(255))); };
  const auto rounded = [](const Expr& x) { return float_call(IntrinsicId::kNearbyint, {x}); };
  steps.extreme(least, cell.hidden, [](const Expr& a, const Expr& b) { return min(a, b); });
  steps.extreme(most, cell.hidden, [](const Expr& a, const Expr& b) { return max(a, b); });
  steps.set(scale, [&](const Expr&, const Indices& i) {
    const Expr range = most(i) - least(i);
    return select(eq(range, number(0)), number(1), range / number(255));
  });
  steps.set(zero, [&](const Expr&, const Indices& i) {
    return rounded(held(number(0) - least(i) / scale(i)));
  });
  steps.set(places, [&](const Expr&, const Indices& i) {
    const Expr place = held(rounded(cell.hidden(i) / scale(first)) + zero(first));
    return tenon::cast(kInt16, place - zero(first));
  });
  steps.product(
      sums, steps.units(), [&](const Expr&, const Indices&) { return int32(0); },
      [&](const Indices& i, const Expr& k) {
        return tenon::cast(kInt32, places({i[0], k})) *
               tenon::cast(kInt32, cell.recurrent({steps.direction(), i[1], k, i[2]}));
      });
  steps.set(gates, [&](const Expr& step, const Indices& i) {
    return gate_input(cell, steps, step, i[0], i[1], i[2]) +
           tenon::cast(cell.dtype, sums(i)) *
               (scale(first) * cell.scales({steps.direction(), i[1], i[2]}));
  });
  return gates;
}

void lstm_step(KernelOf& kernel, Steps& steps, const Cell& cell, const Operand& state) {
  // ONNX orders the gates: input, output, forget, cell.
  const Operand sums =
      cell.scales ? quantised_gate_sums(kernel, steps, cell) : gate_sums(kernel, steps, cell, 4);
  const auto gate = [&](const Indices& i, int64_t which) {
    return sums({i[0], int64(which), i[1]});
  };
  // A gate may look at the cell's state.
  const auto gate_of = [&](size_t f, const Indices& i, int64_t which, int64_t peephole) {
    Expr x = gate(i, which);
    if (cell.peepholes)
      x = x + cell.peepholes({steps.direction(), int64(peephole), i[1]}) * state(i);
    return cell.activate(f, x);
  };
  steps.advance(state, [&](const Expr&, const Indices& i) {
    const Expr input = gate_of(0, i, 0, 0);
    const Expr forget = cell.input_forget ? imm(cell.dtype, 1.0) - input : gate_of(0, i, 2, 2);
    return forget * state(i) + input * cell.activate(1, gate(i, 3));
  });
  steps.advance(cell.hidden, [&](const Expr&, const Indices& i) {
    return gate_of(0, i, 1, 1) * activate(cell.activations[2], state(i));
  });
}

void gru_step(KernelOf& kernel, Steps& steps, const Cell& cell, const Operand& recurrent_bias) {
  // ONNX orders the gates: update, reset, hidden.
  const Operand sums = gate_sums(kernel, steps, cell, 2);
  const auto gate = [&](const Indices& i, int64_t which) {
    return cell.activate(0, sums({i[0], int64(which), i[1]}));
  };
  const Shape shape = {steps.batch(), steps.units()};
  const auto weight = [&](const Indices& i, const Expr& k) {
    return cell.recurrent({steps.direction(), int64(2), k, i[1]});
  };
  const auto input = [&](const Expr& step, const Indices& i) {
    return gate_input(cell, steps, step, i[0], int64(2), i[1]);
  };
  const Operand candidate = kernel.allocate("candidate", shape, cell.dtype);
  const Operand next = kernel.allocate("next", shape, cell.dtype);
  if (recurrent_bias) {
    steps.product(
        candidate, steps.units(),
        [&](const Expr&, const Indices& i) { return recurrent_bias({steps.direction(), i[1]}); },
        [&](const Indices& i, const Expr& k) { return cell.hidden({i[0], k}) * weight(i, k); });
    steps.set(next, [&](const Expr& step, const Indices& i) {
      return cell.activate(1, input(step, i) + gate(i, 1) * candidate(i));
    });
  } else {
    const Operand reset = kernel.allocate("reset", shape, cell.dtype);
    steps.set(reset, [&](const Expr&, const Indices& i) { return gate(i, 1) * cell.hidden(i); });
    steps.product(candidate, steps.units(), input,
                  [&](const Indices& i, const Expr& k) { return reset({i[0], k}) * weight(i, k); });
    steps.set(next, [&](const Expr&, const Indices& i) { return cell.activate(1, candidate(i)); });
  }
  steps.advance(cell.hidden, [&](const Expr&, const Indices& i) {
    const Expr update = gate(i, 0);
    return (imm(cell.dtype, int64_t{1}) - update) * next(i) + update * cell.hidden(i);
  });
}

void rnn_step(KernelOf& kernel, Steps& steps, const Cell& cell) {
  const Operand sums = gate_sums(kernel, steps, cell, 1);
  steps.advance(cell.hidden, [&](const Expr&, const Indices& i) {
    return cell.activate(0, sums({i[0], int64(0), i[1]}));
  });
}

void assert_lengths(KernelOf& kernel, const Operand& lengths, const Expr& steps) {
  const auto axes = tir::KernelBuilder::axes(lengths.shape);
  const Expr length = tenon::cast(kInt64, lengths(tir::KernelBuilder::indices(axes)));
  kernel.append(tir::define("check_lengths", axes, {},
                            make<tir::Assert>(logical_and(length >= int64(0), length <= steps),
                                              fmt::format("{}: a sequence is longer than the steps",
                                                          name_for_messages(kernel.call())))));
}

Value lower_recurrence(BlockBuilder& builder, const Call& call, const CellKind& kind) {
  KernelOf kernel(builder, call);
  const auto arg = [&](size_t i) { return KernelOf::wide(kernel.buffer_arg(i)); };
  const Operand product = arg(0), recurrent = arg(1), initial_h = arg(2);
  const Operand initial_c = kind.has_cell_state ? arg(3) : Operand();
  const Operand bias = kind.name == "nn.gru" && present(call, 3) ? arg(3) : Operand();
  const size_t at = recurrence_lengths_input(kind);
  const Operand lengths = present(call, at) ? kernel.buffer_arg(at) : Operand();
  if (lengths) assert_lengths(kernel, lengths, product.shape[0]);
  const auto behind = [&](size_t i) {
    return kind.has_cell_state && present(call, at + i) ? arg(at + i) : Operand();
  };
  const Operand peepholes = behind(1), scales = behind(2);
  const Operand out = kernel.allocate("Y", kernel.shape(0), product.dtype);
  const Operand last_h = kernel.allocate("Y_h", kernel.shape(1), product.dtype);
  std::vector<Operand> outputs = {out, last_h};
  if (kind.has_cell_state)
    outputs.push_back(kernel.allocate("Y_c", kernel.shape(2), product.dtype));
  const std::vector<Activation> names = activations(call, kind);
  const auto attrs = attrs_as<RecurrenceAttrs>(call);
  const std::string& direction = attrs.direction;
  for (int64_t d = 0; d < directions(call); ++d) {
    Steps steps(kernel, product, lengths, d, direction == "reverse" || d == 1);
    const auto first = names.begin() + d * static_cast<int64_t>(kind.activations.size());
    Cell cell{product,
              recurrent,
              steps.state("hidden", initial_h),
              {first, first + static_cast<std::ptrdiff_t>(kind.activations.size())},
              product.dtype,
              attrs.clip,
              peepholes,
              scales,
              kind.has_cell_state && attrs_as<LstmRecurrenceAttrs>(call).input_forget};
    std::vector<std::pair<Operand, Operand>> states = {{last_h, cell.hidden}};
    if (kind.has_cell_state) {
      const Operand state = steps.state("cell", initial_c);
      lstm_step(kernel, steps, cell, state);
      states.emplace_back(outputs[2], state);
    } else if (kind.name == "nn.gru") {
      gru_step(kernel, steps, cell, bias);
    } else {
      rnn_step(kernel, steps, cell);
    }
    steps.store(out, cell.hidden);
    steps.finish(states);
  }
  return kernel.emit(outputs);
}

Type infer_recurrence(const Call& call, const CellKind& kind) {
  check_rank(call, 0, 5);
  check_float(call, 0);
  const Ref<TensorType> product = shaped_arg(call, 0);
  const int64_t dirs = directions(call);
  const Expr units = product->dim(4);
  check_dim(call, 0, product->dim(2), int64(dirs), "dimension 2");
  check_dim(call, 0, product->dim(3), int64(kind.gates), "dimension 3");
  const size_t lengths = recurrence_lengths_input(kind);
  const bool quantised = kind.has_cell_state && present(call, lengths + 2);
  const auto check_shape = [&](size_t i, const Shape& shape) {
    check_rank(call, i, static_cast<int64_t>(shape.size()));
    if (i != 1 || !quantised) check_dtype(call, i, product->dtype);
    const Ref<TensorType> type = shaped_arg(call, i);
    for (size_t d = 0; d < shape.size(); ++d)
      check_dim(call, i, (*type->shape)[d], shape[d], fmt::format("dimension {}", d));
  };
  if (const DType r = shaped_arg(call, 1)->dtype; quantised && (!r.is_integer() || r.bits > 16))
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `r` of `{}` has dtype {}; expected integers of at most 16 bits, "
                       "which argument `r_scale` is for",
                       call.op->name, r.str());
  check_shape(1, {int64(dirs), int64(kind.gates), units, units});
  const Shape state = {int64(dirs), product->dim(1), units};
  check_shape(2, state);
  if (kind.has_cell_state) check_shape(3, state);
  if (kind.name == "nn.gru" && present(call, 3)) check_shape(3, {int64(dirs), units});
  check_lengths(call, lengths, product->dim(1));
  if (kind.has_cell_state && present(call, lengths + 1))
    check_shape(lengths + 1, {int64(dirs), int64(3), units});
  if (quantised) check_shape(lengths + 2, {int64(dirs), int64(kind.gates), units});
  (void)activations(call, kind);
  return result_types(kind, product->dim(0), product->dim(1), dirs, units, product->dtype);
}

OpDef layer(const CellKind& kind, std::string summary, std::string source) {
  OpDef op;
  op.name = kind.name;
  op.summary = std::move(summary);
  const std::string rows = std::to_string(kind.gates);
  op.inputs = {{"x", "(steps, batch, input)"},
               {"w", "(directions, " + rows + " * hidden, input)"},
               {"r", "(directions, " + rows + " * hidden, hidden)"},
               {"b", "(directions, 2 * " + rows + " * hidden): of w, then of r", true},
               {"initial_h", "(directions, batch, hidden)", true}};
  if (kind.has_cell_state) op.inputs.push_back({"initial_c", "(directions, batch, hidden)", true});
  const OpInput lengths{"sequence_lens", "(batch,): steps of each sequence; none: all", true};
  op.inputs.push_back(lengths.used_as(InputUse::kCount, [](const Call& call) {
    const Ref<TensorType> x = tensor_arg(call, kX);
    return x->shape ? x->dim(0) : Expr();
  }));
  if (kind.has_cell_state)
    op.inputs.push_back(
        {"p", "(directions, 3 * hidden): peepholes of the input, output and forget gate", true});
  op.attrs = kind.name == "nn.gru" ? attrs_of<GruAttrs>()
             : kind.has_cell_state ? attrs_of<LstmAttrs>()
                                   : attrs_of<LayerAttrs>();
  op.infer_type = [&kind](const Call& call) { return infer_layer(call, kind); };
  op.lower = [&kind](BlockBuilder& builder, const Call& call) {
    return lower_layer(builder, call, kind);
  };
  op.parts = {"matmul", "add", "permute_dims", op.name + "_recurrence"};
  op.source = std::move(source);
  return op;
}

OpDef recurrence(const CellKind& kind) {
  OpDef op;
  op.name = std::string(kind.name) + "_recurrence";
  op.summary = fmt::format("The steps of {} after the product of its inputs.", kind.name);
  op.inputs = {{"product", "(steps, batch, directions, gates, hidden), with biases"},
               {"r", "(directions, gates, hidden, hidden): of the state, of the gate"},
               {"initial_h", "(directions, batch, hidden)"}};
  if (kind.has_cell_state) op.inputs.push_back({"initial_c", "(directions, batch, hidden)"});
  if (kind.name == "nn.gru")
    op.inputs.push_back(
        {"recurrent_bias", "(directions, hidden) of the hidden gate: linear_before_reset", true});
  const OpInput lengths{"sequence_lens", "(batch,): steps of each sequence; none: all", true};
  op.inputs.push_back(lengths.used_as(InputUse::kCount, [](const Call& call) {
    const Ref<TensorType> product = tensor_arg(call, 0);
    return product->shape ? product->dim(0) : Expr();
  }));
  if (kind.has_cell_state) {
    op.inputs.push_back(
        {"peepholes", "(directions, 3, hidden) of the input, output and forget gate", true});
    op.inputs.push_back({"r_scale",
                         "(directions, gates, hidden), where r is of integers: each step's hidden "
                         "state is quantised to 8 bits",
                         true});
  }
  op.attrs = kind.has_cell_state ? attrs_of<LstmRecurrenceAttrs>() : attrs_of<RecurrenceAttrs>();
  op.infer_type = [&kind](const Call& call) { return infer_recurrence(call, kind); };
  op.lower = [&kind](BlockBuilder& builder, const Call& call) {
    return lower_recurrence(builder, call, kind);
  };
  return op;
}

}  // namespace

std::vector<OpDef> recurrent_ops() {
  return {layer(lstm(),
                "Long short-term memory: a tuple of all hidden states, the last one, and "
                "the last cell state.",
                "ONNX LSTM-14"),
          layer(gru(), "Gated recurrent unit: a tuple of all hidden states and the last one.",
                "ONNX GRU-14"),
          layer(rnn(), "Plain recurrence: a tuple of all hidden states and the last one.",
                "ONNX RNN-14"),
          recurrence(lstm()),
          recurrence(gru()),
          recurrence(rnn()),
          linear_attention()};
}

}  // namespace tenon::graph
