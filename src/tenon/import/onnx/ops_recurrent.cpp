// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN.
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

Results convert_cell(Context& c, const Cell& cell) {
  if (c.ndim(0) != 3 || c.ndim(1) != 3 || c.ndim(2) != 3)
    c.bad(kRankMismatch, "operands X, W and R of `{}` have ranks {}, {} and {}; expected 3",
          cell.name, c.ndim(0), c.ndim(1), c.ndim(2));
  if (c.opset() < 7) unsupported("the form of opset {}; expected at least 7", c.opset());
  const auto directions = as_int(c.shape(2)[0]), units = as_int(c.shape(2)[2]);
  if (!directions || !units) unsupported("weights with symbolic dimensions");
  if (c.has_attr("hidden_size") && c.int_attr("hidden_size") != *units)
    c.bad(kShapeMismatch, "attribute `hidden_size` of `{}` is {}; operand R has {} units",
          cell.name, c.int_attr("hidden_size"), *units);
  for (const char* attr : {"activation_alpha", "activation_beta", "clip"})
    if (c.has_attr(attr)) unsupported("attribute `{}`", attr);
  if (cell.has_cell_state && c.flag_attr("input_forget")) unsupported("attribute `input_forget`");
  const bool batch_first = c.flag_attr("layout");
  const Value x = batch_first ? c.transpose(c.value(0), {1, 0, 2}) : c.value(0);
  const auto type = shaped(x);
  const DType dtype = type->dtype;
  if (c.has(4)) {
    const auto lengths = c.elements(4);
    const auto steps = as_int(type->dim(0));
    if (!lengths || !steps) unsupported("operand `sequence_lens`");
    for (const Expr& length : lengths->values)
      if (!is_int(length, *steps)) unsupported("operand `sequence_lens` of different lengths");
  }
  if (cell.has_cell_state && c.has(7)) unsupported("operand `P`, peepholes");

  const Dims state = {int64(*directions), type->dim(1), int64(*units)};
  const auto zeros = [&](const Dims& dims) {
    return c.op("zeros", {c.shape_value(dims)}, {{"dtype", dtype}});
  };
  const auto initial = [&](size_t i) {
    if (!c.has(i)) return zeros(state);
    return batch_first ? c.transpose(c.value(i), {1, 0, 2}) : c.value(i);
  };
  std::vector<Value> args = {x, c.value(1), c.value(2)};
  const bool states = c.has(5) || (cell.has_cell_state && c.has(6));
  if (c.has(3) || states)
    args.push_back(c.has(3) ? c.value(3)
                            : zeros({int64(*directions), int64(2 * cell.gates * *units)}));
  if (states) {
    args.push_back(initial(5));
    if (cell.has_cell_state) args.push_back(initial(6));
  }
  Attrs attrs{{"hidden_size", *units},
              {"direction", c.string_attr("direction", "forward")},
              {"activations", lower_case(c.strings_attr("activations", {}))}};
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
          7,
          3,
          cell.has_cell_state ? 8 : 6,
          [cell](Context& c) { return convert_cell(c, cell); },
          "floats",
          "one length for the whole batch; no clip, peepholes or parameters of activations"};
}

}  // namespace

std::vector<OperatorRow> recurrent_rows() {
  return {recurrent({"LSTM", "nn.lstm", 4, true}), recurrent({"GRU", "nn.gru", 3, false}),
          recurrent({"RNN", "nn.rnn", 1, false})};
}

}  // namespace tenon::onnx
