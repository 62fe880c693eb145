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

Results convert_cell(Context& c, const Cell& cell) {
  if (c.ndim(0) != 3 || c.ndim(1) != 3 || c.ndim(2) != 3)
    c.bad(kRankMismatch, "operands X, W and R of `{}` have ranks {}, {} and {}; expected 3",
          cell.name, c.ndim(0), c.ndim(1), c.ndim(2));
  c.ignore({"output_sequence"});
  const auto directions = as_int(c.shape(2)[0]), units = as_int(c.shape(2)[2]);
  if (!directions || !units) unsupported("weights with symbolic dimensions");
  if (c.has_attr("hidden_size") && c.int_attr("hidden_size") != *units)
    c.bad(kShapeMismatch, "attribute `hidden_size` of `{}` is {}; operand R has {} units",
          cell.name, c.int_attr("hidden_size"), *units);
  const bool batch_first = c.flag_attr("layout");
  const Value x = batch_first ? c.transpose(c.value(0), {1, 0, 2}) : c.value(0);
  const auto type = shaped(x);
  const DType dtype = type->dtype;
  const Dims state = {int64(*directions), type->dim(1), int64(*units)};
  const auto zeros = [&](const Dims& dims) {
    return c.op("zeros", {c.shape_value(dims)}, {{"dtype", dtype}});
  };
  const auto initial = [&](size_t i) {
    if (!c.has(i)) return zeros(state);
    return batch_first ? c.transpose(c.value(i), {1, 0, 2}) : c.value(i);
  };
  std::vector<Value> args = {x, c.value(1), c.value(2)};
  const auto lengths = sequence_lengths(c, type->dim(0));
  const bool peeps = cell.has_cell_state && c.has(7);
  const bool behind = lengths || peeps;
  const bool states = behind || c.has(5) || (cell.has_cell_state && c.has(6));
  if (c.has(3) || states)
    args.push_back(c.has(3) ? c.value(3)
                            : zeros({int64(*directions), int64(2 * cell.gates * *units)}));
  if (states) {
    args.push_back(initial(5));
    if (cell.has_cell_state) args.push_back(initial(6));
  }
  if (behind) args.push_back(lengths ? lengths : all_steps(c, type->dim(0), type->dim(1)));
  if (peeps) args.push_back(c.value(7));
  const Activations activations(c, cell, *directions);
  Attrs attrs{{"hidden_size", *units},
              {"direction", c.string_attr("direction", "forward")},
              {"activations", activations.names}};
  if (activations.has_parameters) {
    attrs.set("activation_alpha", AttrList(activations.alpha.begin(), activations.alpha.end()));
    attrs.set("activation_beta", AttrList(activations.beta.begin(), activations.beta.end()));
  }
  // Old exporters write a clip of 0 where there is none.
  if (c.has_attr("clip") && c.float_attr("clip") > 0) attrs.set("clip", c.float_attr("clip"));
  if (cell.has_cell_state) attrs.set("input_forget", c.flag_attr("input_forget"));
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
  return {recurrent({"LSTM", "nn.lstm", 4, true}), recurrent({"GRU", "nn.gru", 3, false}),
          recurrent({"RNN", "nn.rnn", 1, false})};
}

}  // namespace tenon::onnx
