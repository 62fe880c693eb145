// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN.
#include <algorithm>
#include <optional>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

struct Cell {
  const char* name;
  const char* op;
  int64_t gates;
  bool has_cell_state;
};

std::vector<std::string> lower_case(std::vector<std::string> names) {
  for (std::string& name : names)
    for (char& letter : name)
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return names;
}

// The activation functions with their parameters, which are listed for those alone that have some.
struct Activations {
  std::vector<std::string> names;
  std::vector<double> alpha, beta;
  bool has_parameters = false;

  Activations(Context& c, const Cell& cell, int64_t directions) {
    names = lower_case(c.strings_attr("activations", {}));
    const auto given_alpha = c.floats_attr("activation_alpha", {});
    const auto given_beta = c.floats_attr("activation_beta", {});
    has_parameters = !given_alpha.empty() || !given_beta.empty();
    if (!has_parameters) return;
    if (names.empty()) {
      std::vector<std::string> defaults = {"tanh"};
      if (cell.gates > 1) defaults.insert(defaults.begin(), "sigmoid");
      if (cell.has_cell_state) defaults.emplace_back("tanh");
      for (int64_t d = 0; d < directions; ++d)
        names.insert(names.end(), defaults.begin(), defaults.end());
    }
    struct Default {
      const char* name;
      std::optional<double> alpha, beta;
    };
    static const Default kDefaults[] = {{"affine", 1.0, 0.0},         {"leakyrelu", 0.01, {}},
                                        {"thresholdedrelu", 1.0, {}}, {"scaledtanh", 1.0, 1.0},
                                        {"hardsigmoid", 0.2, 0.5},    {"elu", 1.0, {}}};
    size_t next_alpha = 0, next_beta = 0;
    const auto take = [](const std::vector<double>& values, size_t& next, double otherwise) {
      return next < values.size() ? values[next++] : otherwise;
    };
    for (const std::string& name : names) {
      const auto* known = std::find_if(std::begin(kDefaults), std::end(kDefaults),
                                       [&](const Default& d) { return d.name == name; });
      const Default none{"", {}, {}};
      const Default& d = known == std::end(kDefaults) ? none : *known;
      alpha.push_back(d.alpha ? take(given_alpha, next_alpha, *d.alpha) : 0);
      beta.push_back(d.beta ? take(given_beta, next_beta, *d.beta) : 0);
    }
  }
};

// The lengths of sequences, null where all are known to have every step.
Value sequence_lengths(Context& c, const Expr& steps) {
  if (!c.has(4)) return {};
  if (const auto* lengths = c.elements(4)) {
    bool whole = true;
    for (const Expr& length : lengths->values) whole = whole && arith::proves_equal(length, steps);
    if (whole) return {};
    const auto most = as_int(steps);
    for (const Expr& length : lengths->values)
      if (const auto known = as_int(length); known && (*known < 0 || (most && *known > *most)))
        c.bad(kBadArgument, "operand `sequence_lens` of `{}` has length {} of {} steps", c.name(),
              *known, str(steps));
  }
  return c.value(4);
}

Value all_steps(Context& c, const Expr& steps, const Expr& batch) {
  const Value count = c.op("shape_to_tensor", {c.shape_value({steps})});
  return c.op("broadcast_to", {c.cast(count, kInt32), c.shape_value({batch})});
}

Value zeros(Context& c, const Dims& dims, DType dtype) {
  return c.op("zeros", {c.shape_value(dims)}, {{"dtype", dtype}});
}

// What the operators of a layer and of its recurrence have in common.
Attrs recurrence_attrs(Context& c, const Cell& cell, const Activations& activations) {
  Attrs attrs{{"direction", c.string_attr("direction", "forward")},
              {"activations", activations.names}};
  if (activations.has_parameters) {
    attrs.set("activation_alpha", AttrList(activations.alpha.begin(), activations.alpha.end()));
    attrs.set("activation_beta", AttrList(activations.beta.begin(), activations.beta.end()));
  }
  // Old exporters write a clip of 0 where there is none.
  if (c.has_attr("clip") && c.float_attr("clip") > 0) attrs.set("clip", c.float_attr("clip"));
  if (cell.has_cell_state) attrs.set("input_forget", c.flag_attr("input_forget"));
  return attrs;
}

// How many directions operand R, of which this is the first dimension, has weights for.
int64_t directions_of(Context& c, const Expr& dim) {
  return as_int(dim).value_or(c.string_attr("direction", "forward") == "bidirectional" ? 2 : 1);
}

// The units of a layer, `held` by operand R.
Expr units_of(Context& c, const Expr& held) {
  if (!c.has_attr("hidden_size")) return held;
  const int64_t stated = c.int_attr("hidden_size");
  if (as_int(held).value_or(stated) != stated || stated < 1)
    c.bad(kShapeMismatch, "attribute `hidden_size` of `{}` is {}; operand R has {} units", c.name(),
          stated, str(held));
  return int64(stated);
}

Results convert_cell(Context& c, const Cell& cell) {
  if (c.ndim(0) != 3 || c.ndim(1) != 3 || c.ndim(2) != 3)
    c.bad(kRankMismatch, "operands X, W and R of `{}` have ranks {}, {} and {}; expected 3",
          cell.name, c.ndim(0), c.ndim(1), c.ndim(2));
  c.ignore({"output_sequence"});
  const int64_t directions = directions_of(c, c.shape(2)[0]);
  const Expr units = units_of(c, c.shape(2)[2]);
  const bool batch_first = c.flag_attr("layout");
  const Value x = batch_first ? c.transpose(c.value(0), {1, 0, 2}) : c.value(0);
  const auto type = shaped(x);
  const DType dtype = type->dtype;
  const auto rows = [&](int64_t count) { return arith::simplify(units * count); };
  const Dims state = {int64(directions), type->dim(1), units};
  const auto initial = [&](size_t i, const char* what) {
    if (!c.has(i)) return zeros(c, state, dtype);
    return c.fitted(batch_first ? c.transpose(c.value(i), {1, 0, 2}) : c.value(i), state, what);
  };
  std::vector<Value> args = {
      x, c.fitted(c.value(1), {int64(directions), rows(cell.gates), type->dim(2)}, "operand W"),
      c.fitted(c.value(2), {int64(directions), rows(cell.gates), units}, "operand R")};
  const auto lengths = sequence_lengths(c, type->dim(0));
  const bool peeps = cell.has_cell_state && c.has(7);
  const bool behind = lengths || peeps;
  const bool states = behind || c.has(5) || (cell.has_cell_state && c.has(6));
  if (c.has(3) || states) {
    const Dims biases = {int64(directions), rows(2 * cell.gates)};
    args.push_back(c.has(3) ? c.fitted(c.value(3), biases, "operand B") : zeros(c, biases, dtype));
  }
  if (states) {
    args.push_back(initial(5, "operand initial_h"));
    if (cell.has_cell_state) args.push_back(initial(6, "operand initial_c"));
  }
  if (behind) args.push_back(lengths ? lengths : all_steps(c, type->dim(0), type->dim(1)));
  if (peeps) args.push_back(c.fitted(c.value(7), {int64(directions), rows(3)}, "operand P"));
  const Activations activations(c, cell, directions);
  Attrs attrs = recurrence_attrs(c, cell, activations);
  attrs.set("hidden_size", as_int(units).value_or(0));
  if (std::string_view(cell.name) == "GRU")
    attrs.set("linear_before_reset", c.flag_attr("linear_before_reset"));
  const Value all = c.op(cell.op, args, attrs);
  Results results;
  for (int64_t i = 0; i < (cell.has_cell_state ? 3 : 2); ++i) {
    Value item = c.builder().emit(make<graph::TupleGetItem>(all, i, c.origin()));
    const bool wanted = static_cast<size_t>(i) < c.output_count() &&
                        !c.node().outputs[static_cast<size_t>(i)].empty();
    if (batch_first && wanted)
      item = c.transpose(item,
                         i == 0 ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{1, 0, 2});
    results.push_back(item);
  }
  return results;
}

// ---- DynamicQuantizeLSTM ------------------------------------------------------------------------

constexpr int64_t kOpset = 13;  // whose forms of other operators stand for parts of it

enum Quantised : size_t {
  kX,
  kW,
  kR,
  kB,
  kLengths,
  kInitialH,
  kInitialC,
  kPeepholes,
  kWScale,
  kWZero,
  kRScale,
  kRZero
};

struct QuantisedLstm {
  Context& c;
  Expr dirs, units, gates;  // of all four gates together
  Value w, r;

  explicit QuantisedLstm(Context& context) : c(context) {
    for (const size_t i : {kX, kW, kR})
      if (c.ndim(i) != 3)
        c.bad(kRankMismatch, "operand {} of `DynamicQuantizeLSTM` has rank {}; expected 3", i,
              c.ndim(i));
    const Dims r = c.shape(kR);
    dirs = int64(directions_of(c, r[0]));
    units = units_of(c, r[1]);
    gates = arith::simplify(units * 4);
    w = weights(kW, {dirs, c.shape(kX)[2], gates});
    this->r = weights(kR, {dirs, units, gates});
  }

  Value weights(size_t i, const Dims& expected) {
    const DType dtype = c.dtype(i);
    if (dtype != kInt8 && dtype != kUInt8)
      c.bad(kDTypeMismatch,
            "operand {} of `DynamicQuantizeLSTM` has dtype {}; expected int8 or uint8", i,
            dtype.str());
    return part(i, expected);
  }

  Value part(size_t i, const Dims& expected) {
    return c.fitted(c.value(i), expected, fmt::format("operand {}", i));
  }

  /// A scale or zero point, of each direction or each of its columns, as (directions, gates).
  Value of_columns(size_t i) {
    Value x = c.value(i);
    // Whose extents are symbols: by the rank.
    if (!as_int(product(c.shape(i)))) x = part(i, c.ndim(i) == 1 ? Dims{dirs} : Dims{dirs, gates});
    const Expr count = product(*shaped(x)->shape);
    if (!arith::proves_equal(count, arith::simplify(dirs * gates))) {
      if (!arith::proves_equal(count, dirs))
        c.bad(kShapeMismatch,
              "operand {} of `DynamicQuantizeLSTM`, a scale or zero point, has shape {}; expected "
              "one for each of {} directions or of their {} columns",
              i, str(c.shape(i)), str(dirs), str(gates));
      x = c.op("broadcast_to", {c.reshape(x, {dirs, int64(1)}), c.shape_value({dirs, gates})});
    }
    return c.reshape(x, {dirs, gates});
  }

  /// A zero point; null where it is known to be 0.
  Value zero(size_t i, size_t weights) {
    if (!c.has(i)) return nullptr;
    if (c.dtype(i) != c.dtype(weights))
      c.bad(kDTypeMismatch,
            "operand {} of `DynamicQuantizeLSTM`, a zero point, has dtype {}; its weights have {}",
            i, c.dtype(i).str(), c.dtype(weights).str());
    if (const auto known = c.constant(i)) {
      bool is_zero = true;
      for (int64_t at = 0; is_zero && at < known->elements(); ++at)
        is_zero = known->at_int(at) == 0;
      if (is_zero) return nullptr;
    }
    return of_columns(i);
  }

  /// The weights of inputs, as (inputs, directions * gates). Those that are known stay a constant,
  /// which later passes pack.
  Value input_weights() {
    const Expr columns = arith::simplify(dirs * gates);
    const auto data = c.constant(kW);
    if (!data) return c.reshape(c.transpose(w, {1, 0, 2}), {c.shape(kX)[2], columns});
    const int64_t count = data->shape[0], rows = data->shape[1], width = data->shape[2];
    const Ints held = data->to_ints();
    std::vector<uint8_t> out;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t d = 0; d < count; ++d)
        for (int64_t i = 0; i < width; ++i)
          out.push_back(
              static_cast<uint8_t>(held[static_cast<size_t>((d * rows + row) * width + i)]));
    return make<graph::Constant>(TensorData::of<uint8_t>(data->dtype, {rows, count * width}, out),
                                 c.origin());
  }

  /// The inputs of all steps times their weights, with biases: (steps, batch, directions, 4, units).
  /// What lies behind all sequences does not widen the range that is quantised.
  Value inputs(const Value& lengths) {
    const Dims x = c.shape(kX);
    Value steps = c.value(kX);
    if (lengths) {
      const Value most = c.op("max", {c.cast(lengths, kInt64)});
      const Value place =
          c.op("arange", {c.prim(int64(0)), c.prim(x[0]), c.prim(int64(1))}, {{"dtype", kInt64}});
      const Value used = c.reshape(c.op("less", {place, most}), {x[0], int64(1), int64(1)});
      steps = c.op("where", {used, steps, c.scalar(kFloat32, 0)});
    }
    const Results quantised = convert_as(c, "DynamicQuantizeLinear", kOpset, {steps});
    const Expr columns = arith::simplify(dirs * gates);
    const Value zero_point = zero(kWZero, kW);
    const Value sums = convert_as(c, "MatMulInteger", kOpset,
                                  {quantised[0], input_weights(), quantised[2],
                                   zero_point ? c.reshape(zero_point, {columns}) : nullptr})[0];
    const Value scale = c.op("multiply", {quantised[1], c.reshape(of_columns(kWScale), {columns})});
    const Value y = c.reshape(c.op("multiply", {c.cast(sums, kFloat32), scale}),
                              {x[0], x[1], dirs, int64(4), units});
    if (!c.has(kB)) return y;
    const Value biases = c.op("sum",
                              {c.reshape(part(kB, {dirs, arith::simplify(gates * 2)}),
                                         {dirs, int64(2), int64(4), units})},
                              {{"axis", Ints{1}}});
    return c.op("add", {y, biases});
  }

  /// Operand `i`, a state, or zeros.
  Value initial(size_t i) {
    const Dims state = {dirs, c.shape(kX)[1], units};
    return c.has(i) ? part(i, state) : zeros(c, state, kFloat32);
  }

  /// What nn.lstm_recurrence takes. Weights with a zero point have 9 bits without it.
  std::vector<Value> recurrence(const Value& lengths) {
    Value recurrent = r;
    if (const Value zero_point = zero(kRZero, kR))
      recurrent =
          c.op("subtract",
               {c.cast(r, kInt16), c.cast(c.reshape(zero_point, {dirs, int64(1), gates}), kInt16)});
    const Value peepholes = c.has(kPeepholes)
                                ? c.reshape(part(kPeepholes, {dirs, arith::simplify(units * 3)}),
                                            {dirs, int64(3), units})
                                : nullptr;
    return {inputs(lengths),
            c.op("permute_dims", {c.reshape(recurrent, {dirs, units, int64(4), units})},
                 {{"axes", std::vector<int64_t>{0, 2, 1, 3}}}),
            initial(kInitialH),
            initial(kInitialC),
            lengths,
            peepholes,
            c.reshape(of_columns(kRScale), {dirs, int64(4), units})};
  }
};

// The recurrence of one direction, from its part of each argument. Sequences that run backwards
// begin together: their elements are turned around.
Results one_direction(Context& c, std::vector<Value> args, const Attrs& attrs, int64_t direction,
                      int64_t directions, bool backwards) {
  const auto one = [&](int64_t value) { return c.shape_value({int64(value)}); };
  const auto part = [&](size_t i, int64_t axis) {
    if (args[i] && directions > 1)
      args[i] = c.op("strided_slice", {args[i], one(axis), one(direction), one(direction + 1)});
  };
  const Value lengths = args[4];
  const auto turned = [&](const Value& x, int64_t batch) {
    return c.op("reverse_sequence", {x, lengths}, {{"seq_axis", 0}, {"batch_axis", batch}});
  };
  part(0, 2);
  for (const size_t i : {1, 2, 3, 5, 6}) part(i, 0);
  if (backwards) args[0] = turned(args[0], 1);
  const Value all =
      c.builder().emit(graph::call_op("nn.lstm_recurrence", std::move(args), attrs, c.origin()));
  Results out;
  for (int64_t i = 0; i < 3; ++i)
    out.push_back(c.builder().emit(make<graph::TupleGetItem>(all, i, c.origin())));
  if (backwards) out[0] = turned(out[0], 2);
  return out;
}

// The attributes of direction `d` of several alone.
Attrs of_direction(const Attrs& attrs, int64_t d, int64_t directions) {
  Attrs out = attrs;
  out.set("direction", "forward");
  for (const char* name : {"activations", "activation_alpha", "activation_beta"}) {
    const AttrValue* all = attrs.find(name);
    if (!all) continue;
    const auto& list = std::get<AttrList>(all->value);
    const auto each = static_cast<std::ptrdiff_t>(list.size()) / directions;
    out.set(name, AttrList(list.begin() + d * each, list.begin() + (d + 1) * each));
  }
  return out;
}

Results convert_quantised_lstm(Context& c) {
  const Cell cell{"LSTM", "nn.lstm", 4, true};
  QuantisedLstm layer(c);
  const int64_t directions = *as_int(layer.dirs);
  const Attrs attrs = recurrence_attrs(c, cell, Activations(c, cell, directions));
  const std::vector<Value> args = layer.recurrence(sequence_lengths(c, c.shape(kX)[0]));
  const std::string direction = c.string_attr("direction", "forward");
  if (!args[4] || direction == "forward" || directions > 2) {
    const Value all =
        c.builder().emit(graph::call_op("nn.lstm_recurrence", args, attrs, c.origin()));
    Results out;
    for (int64_t i = 0; i < 3; ++i)
      out.push_back(c.builder().emit(make<graph::TupleGetItem>(all, i, c.origin())));
    return out;
  }
  if (directions == 1) return one_direction(c, args, of_direction(attrs, 0, 1), 0, 1, true);
  const Results ahead = one_direction(c, args, of_direction(attrs, 0, 2), 0, 2, false);
  const Results back = one_direction(c, args, of_direction(attrs, 1, 2), 1, 2, true);
  Results out;
  for (size_t i = 0; i < 3; ++i)
    out.push_back(c.op("concat", {make<graph::Tuple>(std::vector<Value>{ahead[i], back[i]})},
                       {{"axis", i == 0 ? 1 : 0}}));
  return out;
}

OperatorRow recurrent(const Cell& cell) {
  return {cell.name,
          1,
          3,
          cell.has_cell_state ? 8 : 6,
          [cell](Context& c) { return convert_cell(c, cell); },
          "floats"};
}

}  // namespace

std::vector<OperatorRow> recurrent_rows() {
  return {
      recurrent({"LSTM", "nn.lstm", 4, true}),
      recurrent({"GRU", "nn.gru", 3, false}),
      recurrent({"RNN", "nn.rnn", 1, false}),
      {"DynamicQuantizeLSTM", 1, 12, 12, convert_quantised_lstm, "float32", "", "com.microsoft"}};
}

}  // namespace tenon::onnx
