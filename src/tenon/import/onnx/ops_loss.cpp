// SPDX-License-Identifier: Apache-2.0
// Losses of classification.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// Of log probabilities (n, classes, ...) at the classes `target` (n, ...): each with its class's
// weight, 0 for the class that is ignored; averaged by the weights, summed, or left alone.
Value log_likelihood_loss(Context& c, const Value& log_probability, size_t target, size_t weight) {
  const DType dtype = shaped(log_probability)->dtype;
  const std::string reduction = c.string_attr("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    c.bad(kBadAttribute, "attribute `reduction` of `{}` is `{}`; expected mean, sum or none",
          c.node().op_type, reduction);
  Value classes = c.cast(c.value(target), kInt64);
  Value ignored;
  if (c.has_attr("ignore_index")) {
    const Value index = c.scalar(kInt64, static_cast<double>(c.int_attr("ignore_index")));
    ignored = c.op("equal", {classes, index});
    classes = c.op("where", {ignored, c.scalar(kInt64, 0), classes});
  }
  const Dims shape = *shaped(classes)->shape;
  Dims column = shape;
  column.insert(column.begin() + 1, int64(1));
  const Value picked = c.reshape(
      c.op("gather_elements", {log_probability, c.reshape(classes, column)}, {{"axis", 1}}), shape);
  Value weights;
  if (c.has(weight)) {
    weights = c.op("take", {c.value(weight), classes}, {{"axis", 0}});
  } else if (ignored || reduction == "mean") {
    weights = c.op("ones", {c.shape_value(shape)}, {{"dtype", dtype}});
  }
  if (ignored) weights = c.op("where", {ignored, c.scalar(dtype, 0), weights});
  Value loss = c.op("negative", {picked});
  if (weights) loss = c.op("multiply", {loss, weights});
  if (reduction == "none") return loss;
  loss = c.op("sum", {loss});
  return reduction == "sum" ? loss : c.op("divide", {loss, c.op("sum", {weights})});
}

void check_ranks(Context& c) {
  if (c.ndim(0) < 2 || c.ndim(1) != c.ndim(0) - 1)
    c.bad(kRankMismatch, "`{}` of scores of rank {} and classes of rank {}", c.node().op_type,
          c.ndim(0), c.ndim(1));
}

Results convert_nll(Context& c) {
  check_ranks(c);
  return {log_likelihood_loss(c, c.value(0), 1, 2)};
}

Results convert_softmax_cross_entropy(Context& c) {
  check_ranks(c);
  const Value log_probability = c.op("nn.log_softmax", {c.value(0)}, {{"axis", 1}});
  return {log_likelihood_loss(c, log_probability, 1, 2), log_probability};
}

}  // namespace

std::vector<OperatorRow> loss_rows() {
  return {
      {"NegativeLogLikelihoodLoss", 12, 2, 3, convert_nll, "floats"},
      {"SoftmaxCrossEntropyLoss", 12, 2, 3, convert_softmax_cross_entropy, "floats"},
  };
}

}  // namespace tenon::onnx
