// SPDX-License-Identifier: Apache-2.0
// Normalisations.
#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

Value vector_of(const Expr& extent, DType dtype, double value) {
  const auto n = as_int(extent);
  if (!n) unsupported("normalisation over a symbolic dimension without a scale");
  Elements all{dtype, {*n}, {}};
  all.values.assign(static_cast<size_t>(*n), imm(dtype, value));
  return make<graph::Constant>(tensor_of(all));
}

// By the batch's own statistics, over all axes but the channels; opset 8 and before may have
// statistics for each element of the batch's items instead. Results: the data, the moved mean and
// variance, and where older forms ask for them those of the batch.
Results trained_batch_norm(Context& c, bool by_channel, double epsilon) {
  const double momentum = c.float_attr("momentum", 0.9);
  const DType dtype = c.dtype(0), stored = c.dtype(3);
  const DType wide = dtype == kFloat64 || stored == kFloat64 ? kFloat64 : kFloat32;
  std::vector<int64_t> axes = {0};
  Dims vector(static_cast<size_t>(c.ndim(0)), int64(1));
  for (int64_t d = 2; by_channel && d < c.ndim(0); ++d) axes.push_back(d);
  vector[1] = c.shape(0)[1];
  const auto spread = [&](const Value& value) {
    return by_channel ? c.reshape(value, vector) : value;
  };
  const Value x = c.cast(c.value(0), wide);
  const Value mean = c.op("mean", {x}, {{"axis", axes}});
  const Value centred = c.op("subtract", {x, spread(mean)});
  const Value variance = c.op("mean", {c.op("square", {centred})}, {{"axis", axes}});
  const Value scale = c.op(
      "divide",
      {c.cast(c.value(1), wide), c.op("sqrt", {c.op("add", {variance, c.scalar(wide, epsilon)})})});
  Value y = c.op("multiply", {centred, spread(scale)});
  y = c.cast(c.op("add", {y, spread(c.cast(c.value(2), wide))}), dtype);
  const auto moved = [&](size_t old, const Value& now) {
    const Value kept = c.op("multiply", {c.cast(c.value(old), wide), c.scalar(wide, momentum)});
    const Value added = c.op("multiply", {now, c.scalar(wide, 1 - momentum)});
    return c.cast(c.op("add", {kept, added}), stored);
  };
  Results results = {y, moved(3, mean), moved(4, variance)};
  if (c.opset() < 14) {
    results.push_back(c.cast(mean, stored));
    results.push_back(c.cast(variance, stored));
  }
  return results;
}

Results convert_batch_norm(Context& c) {
  c.ignore({"momentum", "consumed_inputs"});
  bool training = c.opset() < 7 ? !c.flag_attr("is_test") : c.flag_attr("training_mode");
  for (size_t i = 1; c.opset() < 14 && i < c.output_count(); ++i)
    training = training || !c.node().outputs[i].empty();
  const bool by_channel = c.opset() >= 9 || c.flag_attr("spatial", true);
  if (c.ndim(0) < 2)
    c.bad(kRankMismatch, "`BatchNormalization` of a tensor of rank {}; expected at least 2",
          c.ndim(0));
  const double epsilon = c.float_attr("epsilon", 1e-5);
  if (training) return trained_batch_norm(c, by_channel, epsilon);
  const DType dtype = c.dtype(0);
  std::vector<Value> args = {c.value(0)};
  for (size_t i = 1; i < 5; ++i) args.push_back(c.cast(c.value(i), dtype));
  if (!by_channel) {
    const Value root = c.op("sqrt", {c.op("add", {args[4], c.scalar(dtype, epsilon)})});
    const Value scaled =
        c.op("multiply", {c.op("subtract", {args[0], args[3]}), c.op("divide", {args[1], root})});
    return {c.op("add", {scaled, args[2]})};
  }
  const Value all =
      c.op("nn.batch_norm", args, {{"axis", 1}, {"epsilon", epsilon}, {"training", false}});
  return {c.builder().emit(make<graph::TupleGetItem>(all, 0, c.origin()))};
}

Results convert_layer_norm(Context& c) {
  c.ignore({"stash_type"});
  const int64_t ndim = c.ndim(0), axis = c.axis(c.int_attr("axis", -1), ndim);
  const double epsilon = c.float_attr("epsilon", 1e-5);
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < ndim; ++d) axes.push_back(d);
  const bool statistics = c.output_count() > 1;
  const bool plain =
      !statistics && c.ndim(1) == ndim - axis && (!c.has(2) || c.ndim(2) == ndim - axis);
  if (plain) {
    std::vector<Value> args = {c.value(0), c.value(1)};
    if (c.has(2)) args.push_back(c.value(2));
    return {
        c.op("nn.layer_norm", args, {{"axes", axes}, {"epsilon", epsilon}, {"center", c.has(2)}})};
  }
  // With the mean and the inverse deviation as results, or a scale that is broadcast.
  const DType dtype = c.dtype(0), wide = dtype.bits < 32 ? kFloat32 : dtype;
  const Value x = c.cast(c.value(0), wide);
  const Attrs reduce{{"axis", axes}, {"keepdims", true}};
  const Value mean = c.op("mean", {x}, reduce);
  const Value d = c.op("subtract", {x, mean});
  const Value variance = c.op("mean", {c.op("square", {d})}, reduce);
  const Value inverse = c.op("rsqrt", {c.op("add", {variance, c.scalar(wide, epsilon)})});
  Value y = c.cast(c.op("multiply", {d, inverse}), dtype);
  y = c.op("multiply", {y, c.value(1)});
  if (c.has(2)) y = c.op("add", {y, c.value(2)});
  return {y, mean, inverse};
}

Results convert_rms_norm(Context& c) {
  c.ignore({"stash_type"});
  const int64_t ndim = c.ndim(0), axis = c.axis(c.int_attr("axis", -1), ndim);
  const double epsilon = c.float_attr("epsilon", 1e-5);
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < ndim; ++d) axes.push_back(d);
  if (c.ndim(1) == ndim - axis)
    return {c.op("nn.rms_norm", {c.value(0), c.value(1)}, {{"axes", axes}, {"epsilon", epsilon}})};
  const DType dtype = c.dtype(0), wide = dtype.bits < 32 ? kFloat32 : dtype;
  const Value x = c.cast(c.value(0), wide);
  const Value squares = c.op("mean", {c.op("square", {x})}, {{"axis", axes}, {"keepdims", true}});
  const Value inverse = c.op("rsqrt", {c.op("add", {squares, c.scalar(wide, epsilon)})});
  return {c.op("multiply", {c.cast(c.op("multiply", {x, inverse}), dtype), c.value(1)})};
}

Results convert_instance_norm(Context& c) {
  c.ignore({"consumed_inputs"});
  return {c.op("nn.instance_norm", {c.value(0), c.value(1), c.value(2)},
               {{"epsilon", c.float_attr("epsilon", 1e-5)}})};
}

Results convert_group_norm(Context& c) {
  c.ignore({"stash_type"});
  const int64_t groups = c.int_attr("num_groups");
  if (groups < 1) c.bad(kBadAttribute, "attribute `num_groups` is {}; expected 1 or more", groups);
  const double epsilon = c.float_attr("epsilon", 1e-5);
  if (c.ndim(0) < 2)
    c.bad(kRankMismatch, "`GroupNormalization` of a tensor of rank {}; expected at least 2",
          c.ndim(0));
  if (c.opset() >= 21)
    return {c.op("nn.group_norm", {c.value(0), c.value(1), c.value(2)},
                 {{"num_groups", groups}, {"epsilon", epsilon}})};
  // Opset 18: scale and bias are one for each group.
  const Expr channels = c.shape(0)[1];
  const Value one = vector_of(channels, c.dtype(0), 1);
  const Value zero = vector_of(channels, c.dtype(0), 0);
  const Value normal = c.op("nn.group_norm", {c.value(0), one, zero},
                            {{"num_groups", groups}, {"epsilon", epsilon}});
  Dims grouped = c.shape(0);
  grouped[1] = arith::simplify(floordiv(channels, groups));
  grouped.insert(grouped.begin() + 1, int64(groups));
  Dims vector(grouped.size(), int64(1));
  vector[1] = int64(groups);
  const Value scaled =
      c.op("multiply", {c.reshape(normal, grouped), c.reshape(c.value(1), vector)});
  return {c.reshape(c.op("add", {scaled, c.reshape(c.value(2), vector)}), c.shape(0))};
}

Results convert_lrn(Context& c) {
  return {c.op("nn.lrn", {c.value(0)},
               {{"size", c.int_attr("size")},
                {"alpha", c.float_attr("alpha", 1e-4)},
                {"beta", c.float_attr("beta", 0.75)},
                {"bias", c.float_attr("bias", 1.0)}})};
}

Results convert_lp_normalization(Context& c) {
  const int64_t axis = c.axis(c.int_attr("axis", -1), c.ndim(0)), p = c.int_attr("p", 2);
  if (p != 1 && p != 2) c.bad(kBadAttribute, "attribute `p` is {}; expected 1 or 2", p);
  const Value x = c.value(0);
  const Value powers = c.op(p == 1 ? "abs" : "square", {x});
  Value norm = c.op("sum", {powers}, {{"axis", std::vector<int64_t>{axis}}, {"keepdims", true}});
  if (p == 2) norm = c.op("sqrt", {norm});
  // A vector of zeros stays one.
  const DType dtype = c.dtype(0);
  const Value is_zero = c.op("equal", {norm, c.scalar(dtype, 0)});
  norm = c.op("where", {is_zero, c.scalar(dtype, 1), norm});
  return {c.op("divide", {x, norm})};
}

Results convert_mvn(Context& c) {
  const auto axes = c.axes(c.ints_attr("axes", {0, 2, 3}), c.ndim(0));
  const Attrs reduce{{"axis", axes}, {"keepdims", true}};
  const DType dtype = c.dtype(0);
  const Value x = c.value(0);
  const Value centred = c.op("subtract", {x, c.op("mean", {x}, reduce)});
  const Value deviation = c.op("sqrt", {c.op("mean", {c.op("square", {centred})}, reduce)});
  return {c.op("divide", {centred, c.op("add", {deviation, c.scalar(dtype, 1e-9)})})};
}

}  // namespace

std::vector<OperatorRow> norm_rows() {
  return {
      {"BatchNormalization", 1, 5, 5, convert_batch_norm, "floats"},
      {"LayerNormalization", 1, 2, 3, convert_layer_norm, "floats"},
      {"RMSNormalization", 23, 2, 2, convert_rms_norm, "floats"},
      {"InstanceNormalization", 1, 3, 3, convert_instance_norm, "floats"},
      {"GroupNormalization", 18, 3, 3, convert_group_norm, "floats"},
      {"LRN", 1, 1, 1, convert_lrn, "floats"},
      {"LpNormalization", 1, 1, 1, convert_lp_normalization, "floats"},
      {"MeanVarianceNormalization", 9, 1, 1, convert_mvn, "floats"},
  };
}

}  // namespace tenon::onnx
