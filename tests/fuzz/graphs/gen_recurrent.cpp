// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, their recurrences, and products by packed weights.
#include "generators.h"

namespace tenon::fuzz {

namespace {

using graph::Value;
using Extents = std::vector<int64_t>;

AttrValue random_activations(Draft& draft, size_t count) {
  if (!draft.choices.chance(30)) return AttrList{};
  AttrList names;
  for (size_t i = 0; i < count; ++i)
    names.emplace_back(draft.choices.of({"tanh", "sigmoid", "relu"}));
  return names;
}

struct Kind {
  int64_t gates;
  size_t activations;
  bool cell;
};
Kind kind_of(std::string_view op) {
  if (op.starts_with("nn.lstm")) return {4, 3, true};
  return op.starts_with("nn.gru") ? Kind{3, 2, false} : Kind{1, 1, false};
}

void layer(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Kind kind = kind_of(op);
  const DType dtype = draft.float_dtype();
  const std::string direction = c.of({"forward", "reverse", "bidirectional"});
  const int64_t dirs = direction == "bidirectional" ? 2 : 1;
  const int64_t steps = draft.extent(5), batch = draft.extent(5), in = draft.extent(17),
                hidden = draft.extent(17);
  const Item x = draft.fresh(dtype, Extents{steps, batch, in});
  // Symbolic dimensions of the weights would have to be those of x: they are numbers.
  const auto fixed = [&](const Extents& shape) -> Value {
    std::vector<Expr> dims;
    for (size_t d = 0; d < shape.size(); ++d) dims.push_back(int64(shape[d]));
    return draft.fresh(dtype, dims, from_to(-0.5, 0.5)).value;
  };
  std::vector<Value> args = {x.value, fixed({dirs, kind.gates * hidden, in}),
                             fixed({dirs, kind.gates * hidden, hidden})};
  if (c.chance(60)) {
    args.push_back(fixed({dirs, 2 * kind.gates * hidden}));
    if (c.chance(50)) {
      const auto state = [&]() -> Value {
        return draft.fresh(dtype, {int64(dirs), x.type->dim(1), int64(hidden)}).value;
      };
      args.push_back(state());
      if (kind.cell && c.chance(50)) args.push_back(state());
    }
  }
  Attrs attrs{
      {"direction", direction},
      {"hidden_size", hidden},
      {"activations", random_activations(draft, kind.activations * static_cast<size_t>(dirs))}};
  if (op == "nn.gru") attrs.set("linear_before_reset", c.chance(40));
  draft.calls(op, args, attrs);
}

void recurrence(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Kind kind = kind_of(op);
  const DType dtype = draft.float_dtype();
  const std::string direction = c.of({"forward", "reverse", "bidirectional"});
  const int64_t dirs = direction == "bidirectional" ? 2 : 1;
  const int64_t batch = draft.extent(5), hidden = draft.extent(17);
  const auto fixed = [&](const Extents& shape) -> Value {
    std::vector<Expr> dims;
    for (const int64_t dim : shape) dims.push_back(int64(dim));
    return draft.fresh(dtype, dims, from_to(-0.5, 0.5)).value;
  };
  std::vector<Value> args = {fixed({draft.extent(5), batch, dirs, kind.gates, hidden}),
                             fixed({dirs, kind.gates, hidden, hidden}),
                             fixed({dirs, batch, hidden})};
  if (kind.cell) args.push_back(fixed({dirs, batch, hidden}));
  if (op == "nn.gru_recurrence" && c.chance(40)) args.push_back(fixed({dirs, hidden}));
  if (op == "nn.lstm_recurrence" && dtype == kFloat32 && c.chance(30)) {  // weights of integers
    const auto integers = [&](const Extents& shape) -> Value {
      return draft.constant(c.of({kInt8, kUInt8, kInt16}), shape).value;
    };
    args[1] = integers({dirs, kind.gates, hidden, hidden});
    args.insert(args.end(), {Value(), Value()});
    args.push_back(draft.constant(dtype, {dirs, kind.gates, hidden}, from_to(0.001, 0.01)).value);
  }
  draft.calls(
      op, args,
      {{"direction", direction},
       {"activations", random_activations(draft, kind.activations * static_cast<size_t>(dirs))}});
}

void packed_matmul(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item a = draft.operand([&] { return draft.float_dtype(); }, 1, 3,
                               [](const Item& item) {
                                 return item.dtype().is_float() && item.data->elements() > 0 &&
                                        as_int(item.type->dim(-1)).has_value();
                               },
                               {}, 1024);
  if (!as_int(a.type->dim(-1))) return;
  const int64_t width = c.of({8, 4, 16});
  const int64_t units = draft.extent(65);
  const int64_t panels = (units + width - 1) / width;
  const Item b = draft.constant(a.dtype(), {panels, a.shape().back(), width});
  draft.call(op, {a.value, b.value}, {{"units", units}}, Rounds::kArithmetic);
}

}  // namespace

std::vector<GeneratorRow> recurrent_generators() {
  return {{"nn.lstm", layer, 1},
          {"nn.gru", layer, 1},
          {"nn.rnn", layer, 1},
          {"nn.lstm_recurrence", recurrence, 1},
          {"nn.gru_recurrence", recurrence, 1},
          {"nn.rnn_recurrence", recurrence, 1},
          {"nn.packed_matmul", packed_matmul, 2}};
}

}  // namespace tenon::fuzz
