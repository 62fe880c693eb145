// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors of shapes and scalars.
#include "generators.h"

namespace tenon::fuzz {

namespace {

using graph::Value;

Value scalar(DType dtype, double value) {
  return make<graph::PrimValue>(dtype.is_float() ? imm(dtype, value)
                                                 : imm(dtype, static_cast<int64_t>(value)));
}
Value whole(int64_t value) { return make<graph::PrimValue>(int64(value)); }

// The shape of a value of the network, symbols included, or a new one.
Value some_shape(Draft& draft) {
  const auto found =
      draft.choices.chance(50) ? draft.find([](const Item&) { return true; }) : std::nullopt;
  std::vector<Expr> dims;
  if (found) {
    dims = *found->type->shape;
  } else {
    for (const int64_t dim : draft.shape(draft.choices.below(4))) dims.push_back(draft.number(dim));
  }
  return make<graph::ShapeExpr>(std::move(dims));
}

void filled(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool like = op.ends_with("_like");
  const DType dtype = draft.any_dtype();
  std::vector<Value> args = {like ? draft.operand([&] { return draft.any_dtype(); }, 0, 4).value
                                  : some_shape(draft)};
  Attrs attrs;
  if (op.starts_with("full")) {
    const double most = dtype == kInt2 ? 1 : 3;
    const double value = dtype.is_bool() ? 1 : c.of({0.0, 1.0, most});
    args.push_back(c.chance(50) && !dtype.is_bool()
                       ? scalar(dtype, value)
                       : draft.fresh(dtype, std::vector<int64_t>{}).value);
  }
  if (c.chance(50)) attrs.set("dtype", dtype);
  draft.call(op, args, attrs, Rounds::kNever);
}

void arange(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool floats = c.chance(30);
  const DType dtype = floats ? kFloat32 : c.of({kInt64, kInt32});
  const double step = floats ? c.of({0.5, 1.0, -0.25}) : c.of({1.0, 2.0, -1.0});
  const double start = static_cast<double>(c.between(0, 4));
  const double count = static_cast<double>(draft.extent(33));
  Attrs attrs;
  if (!floats && c.chance(40)) attrs.set("dtype", c.of({kFloat32, kInt64, kInt32}));
  if (!floats && dtype == kInt64) {
    const auto number = [&](double value) {
      return make<graph::PrimValue>(draft.number(static_cast<int64_t>(value)));
    };
    draft.call(op, {number(start), number(start + step * count), scalar(dtype, step)}, attrs,
               Rounds::kNever);
    return;
  }
  draft.call(op, {scalar(dtype, start), scalar(dtype, start + step * count), scalar(dtype, step)},
             attrs, Rounds::kNever);
}

void eye(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  Attrs attrs;
  if (c.chance(50)) attrs.set("dtype", draft.any_dtype());
  draft.call(op, {whole(draft.extent(17)), whole(draft.extent(17)), whole(c.between(0, 4) - 2)},
             attrs, Rounds::kNever);
}

}  // namespace

std::vector<GeneratorRow> create_generators() {
  return {{"full", filled},          {"full_like", filled, 1}, {"zeros", filled, 1},
          {"zeros_like", filled, 1}, {"ones", filled, 1},      {"ones_like", filled, 1},
          {"arange", arange},        {"eye", eye, 1}};
}

}  // namespace tenon::fuzz
