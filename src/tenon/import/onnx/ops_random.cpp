// SPDX-License-Identifier: Apache-2.0
// Random numbers, and what drops or draws elements by them. They follow from the node's seed alone:
// the bits of attribute `seed`, or where it is left out a hash of the name of the node's first
// output, so that a network gives the same numbers in every run.
#include <bit>

#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

int64_t seed_of(Context& c) {
  if (c.has_attr("seed")) {
    if (c.name() == "Dropout") return c.int_attr("seed");
    return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(c.float_attr("seed"))));
  }
  // FNV-1a.
  uint64_t hash = 0xCBF29CE484222325;
  const std::string name = c.node().outputs.empty() ? "" : c.node().outputs[0];
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  return static_cast<int64_t>(hash);
}

DType float_type(Context& c, const char* attribute, DType otherwise) {
  if (!c.has_attr(attribute)) return otherwise;
  const auto dtype = dtype_of(c.int_attr(attribute));
  if (!dtype) unsupported("type {}", data_type_name(c.int_attr(attribute)));
  return *dtype;
}

Value draw(Context& c, const char* op, const Dims& shape, DType dtype) {
  return c.op(op, {c.shape_value(shape)}, {{"seed", seed_of(c)}, {"dtype", dtype}});
}

DType wide_of(DType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }

// `offset + factor * number`.
Results scaled(Context& c, const char* op, const Dims& shape, DType dtype, double offset,
               double factor) {
  if (!dtype.is_float())
    c.bad(kBadAttribute, "attribute `dtype` of `{}` is {}; expected a float", c.name(),
          dtype.str());
  const DType wide = wide_of(dtype);
  const Value x = c.op("multiply", {draw(c, op, shape, wide), c.scalar(wide, factor)});
  return {c.cast(c.op("add", {x, c.scalar(wide, offset)}), dtype)};
}

// Like another tensor: of its shape, and of its type where none is asked for.
Results convert_random(Context& c, bool is_normal, bool is_like) {
  const Dims shape = is_like ? c.shape(0) : to_exprs(c.ints_attr("shape"));
  for (const Expr& dim : shape)
    if (as_int(dim).value_or(0) < 0)
      c.bad(kBadAttribute, "attribute `shape` of `{}` is {}", c.name(), str(shape));
  const DType dtype = float_type(c, "dtype", is_like ? c.dtype(0) : kFloat32);
  if (is_normal) {
    const double mean = c.float_attr("mean", 0), scale = c.float_attr("scale", 1);
    return scaled(c, "random.normal", shape, dtype, mean, scale);
  }
  const double low = c.float_attr("low", 0), high = c.float_attr("high", 1);
  return scaled(c, "random.uniform", shape, dtype, low, high - low);
}

OperatorRow random(const char* name, bool is_normal, bool is_like) {
  const auto convert = [=](Context& c) { return convert_random(c, is_normal, is_like); };
  const int inputs = is_like ? 1 : 0;
  return {name, 1, inputs, inputs, convert, "floats"};
}

Results convert_bernoulli(Context& c) {
  const DType dtype = float_type(c, "dtype", c.dtype(0)), wide = wide_of(c.dtype(0));
  const Value below =
      c.op("less", {draw(c, "random.uniform", c.shape(0), wide), c.cast(c.value(0), wide)});
  return {c.cast(below, dtype)};
}

// The first class whose sum of chances exceeds a number below the sum of all.
Results convert_multinomial(Context& c) {
  if (c.ndim(0) != 2)
    c.bad(kRankMismatch, "operand `input` of `Multinomial` has rank {}; expected 2", c.ndim(0));
  const int64_t samples = c.int_attr("sample_size", 1);
  if (samples < 1)
    c.bad(kBadAttribute, "attribute `sample_size` of `Multinomial` is {}; expected 1 or more",
          samples);
  const DType dtype = float_type(c, "dtype", kInt32), wide = wide_of(c.dtype(0));
  const Expr batch = c.shape(0)[0], classes = c.shape(0)[1];
  const Value chances = c.op("nn.softmax", {c.cast(c.value(0), wide)}, {{"axis", 1}});
  const Value sums = c.op("cumsum", {chances}, {{"axis", 1}});
  const Value total =
      c.op("sum", {chances}, {{"axis", std::vector<int64_t>{1}}, {"keepdims", true}});
  const Value drawn =
      c.op("multiply", {draw(c, "random.uniform", {batch, int64(samples)}, wide), total});
  const Value passed = c.op("less_equal", {c.reshape(sums, {batch, int64(1), classes}),
                                           c.reshape(drawn, {batch, int64(samples), int64(1)})});
  Value index = c.op("sum", {c.cast(passed, kInt32)}, {{"axis", std::vector<int64_t>{2}}});
  // Rounding may leave the last sum below the total.
  if (const auto known = as_int(classes))
    index = c.op("minimum", {index, c.scalar(kInt32, static_cast<double>(*known - 1))});
  else
    unsupported("a symbolic number of classes");
  return {c.cast(index, dtype)};
}

// What only the run knows: where it is not training, every element stays as it is.
Results dropout_of_run(Context& c) {
  const DType dtype = c.dtype(0), wide = wide_of(dtype);
  const Value one = c.scalar(wide, 1);
  const Value training = c.cast(c.reshape(c.value(2), {}), kBool);
  const Value ratio = c.has(1) ? c.cast(c.reshape(c.value(1), {}), wide) : c.scalar(wide, 0.5);
  const Value drawn = draw(c, "random.uniform", c.shape(0), wide);
  const Value kept =
      c.op("logical_or", {c.op("logical_not", {training}), c.op("greater_equal", {drawn, ratio})});
  const Value factor = c.op("divide", {one, c.op("subtract", {one, ratio})});
  const Value scale = c.cast(c.op("where", {training, factor, one}), dtype);
  const Value scaled = c.op("multiply", {c.value(0), scale});
  return {c.op("where", {kept, scaled, c.scalar(dtype, 0)}), kept};
}

Results convert_dropout(Context& c) {
  c.ignore({"consumed_inputs"});
  const bool known = c.opset() < 12 || !c.has(2) || (c.elements(2) && (!c.has(1) || c.constant(1)));
  if (!known) return dropout_of_run(c);
  const bool training = c.opset() < 7    ? !c.flag_attr("is_test")
                        : c.opset() < 12 ? false
                                         : c.has(2) && c.flag_operand(2, "training_mode");
  double ratio = 0.5;
  if (c.opset() < 12) {
    ratio = c.float_attr("ratio", 0.5);
  } else if (c.has(1) && training && c.constant(1)) {
    ratio = c.float_scalar(1, "ratio");
  }
  const bool is_given = training && c.opset() >= 12 && c.has(1) && !c.constant(1);
  if (training && !(ratio >= 0 && ratio < 1))
    c.bad(kBadArgument, "`Dropout` has ratio {}; expected 0 to below 1", ratio);
  const bool masked = c.output_count() > 1 && !c.node().outputs[1].empty();
  const DType mask_dtype = c.opset() >= 10 ? kBool : c.dtype(0);
  if (!training || (ratio == 0 && !is_given)) {
    c.ignore({"seed"});
    if (!masked) return {c.value(0)};
    return {c.value(0), c.op("ones", {c.shape_value(c.shape(0))}, {{"dtype", mask_dtype}})};
  }
  const DType dtype = c.dtype(0), wide = wide_of(dtype);
  const Value share = is_given ? c.cast(c.reshape(c.value(1), {}), wide) : c.scalar(wide, ratio);
  const Value kept = c.op("greater_equal", {draw(c, "random.uniform", c.shape(0), wide), share});
  const Value factor =
      is_given ? c.cast(c.op("divide",
                             {c.scalar(wide, 1), c.op("subtract", {c.scalar(wide, 1), share})}),
                        dtype)
               : c.scalar(dtype, 1 / (1 - ratio));
  const Value scaled = c.op("multiply", {c.value(0), factor});
  const Value y = c.op("where", {kept, scaled, c.scalar(dtype, 0)});
  if (!masked) return {y};
  return {y, c.cast(kept, mask_dtype)};
}

}  // namespace

std::vector<OperatorRow> random_rows() {
  return {
      random("RandomUniform", false, false),
      random("RandomUniformLike", false, true),
      random("RandomNormal", true, false),
      random("RandomNormalLike", true, true),
      {"Bernoulli", 15, 1, 1, convert_bernoulli, "floats"},
      {"Multinomial", 7, 1, 1, convert_multinomial, "floats", "a known number of classes"},
      {"Dropout", 1, 1, 3, convert_dropout, "floats"},
  };
}

}  // namespace tenon::onnx
