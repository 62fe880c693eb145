// SPDX-License-Identifier: Apache-2.0
// Activation functions: one operand, one curve.
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

struct Parameter {
  const char* onnx;
  const char* attr;  // of the graph's operator
  double otherwise;
};

OperatorRow curve(const char* name, const char* op, int first = 1,
                  std::vector<Parameter> parameters = {}) {
  const auto convert = [op, parameters](Context& c) -> Results {
    c.ignore({"consumed_inputs"});
    Attrs attrs;
    for (const Parameter& p : parameters) attrs.set(p.attr, c.float_attr(p.onnx, p.otherwise));
    return {c.op(op, {c.value(0)}, attrs)};
  };
  return {name, first, 1, 1, convert, "floats"};
}

Results convert_gelu(Context& c) {
  const std::string kind = c.string_attr("approximate", "none");
  if (kind != "none" && kind != "tanh") unsupported("approximate `{}`", kind);
  return {c.op(kind == "tanh" ? "nn.gelu_tanh" : "nn.gelu", {c.value(0)})};
}

Results convert_prelu(Context& c) {
  c.ignore({"consumed_inputs"});
  // Before opset 7 the slope ran over the channels.
  const bool channels = c.opset() < 7 && c.ndim(1) == 1 && c.ndim(0) > 1;
  if (channels && !is_int(c.shape(1)[0], 1))
    return {c.op("nn.prelu", {c.value(0), c.value(1)}, {{"axis", 1}})};
  const Value x = c.value(0);
  const Value is_above = c.op("greater", {x, c.scalar(c.dtype(0), 0)});
  return {c.op("where", {is_above, x, c.op("multiply", {x, c.value(1)})})};
}

// Before opset 13 everything from `axis` on was one vector.
Results convert_softmax(Context& c, const char* op) {
  const int64_t ndim = c.ndim(0);
  const bool flattens = c.opset() < 13;
  const int64_t axis = ndim == 0 ? 0 : c.axis(c.int_attr("axis", flattens ? 1 : -1), ndim);
  if (ndim == 0) c.bad(kRankMismatch, "`{}` of a tensor of rank 0", c.node().op_type);
  if (!flattens || axis == ndim - 1) return {c.op(op, {c.value(0)}, {{"axis", axis}})};
  const Dims shape = c.shape(0);
  const auto cut = shape.begin() + axis;
  const Value flat =
      c.reshape(c.value(0), {product({shape.begin(), cut}), product({cut, shape.end()})});
  return {c.reshape(c.op(op, {flat}, {{"axis", 1}}), shape)};
}

OperatorRow softmax(const char* name, const char* op) {
  return {name, 1, 1, 1, [op](Context& c) { return convert_softmax(c, op); }, "floats"};
}

}  // namespace

std::vector<OperatorRow> activation_rows() {
  return {
      curve("Celu", "nn.celu", 12, {{"alpha", "alpha", 1.0}}),
      curve("Elu", "nn.elu", 1, {{"alpha", "alpha", 1.0}}),
      curve("HardSigmoid", "nn.hardsigmoid", 1, {{"alpha", "alpha", 0.2}, {"beta", "beta", 0.5}}),
      curve("HardSwish", "nn.hardswish", 14),
      curve("LeakyRelu", "nn.leakyrelu", 1, {{"alpha", "alpha", 0.01}}),
      curve("Mish", "nn.mish", 18),
      {"Relu", 1, 1, 1,
       [](Context& c) -> Results {
         c.ignore({"consumed_inputs"});
         return {c.op("nn.relu", {c.value(0)})};
       },
       "numbers"},
      curve("Selu", "nn.selu", 1,
            {{"alpha", "alpha", 1.67326319217681884765625},
             {"gamma", "gamma", 1.05070102214813232421875}}),
      curve("Shrink", "nn.shrink", 9, {{"lambd", "lambd", 0.5}, {"bias", "bias", 0.0}}),
      curve("Softplus", "nn.softplus"),
      curve("Softsign", "nn.softsign"),
      curve("Swish", "nn.swish", 24, {{"alpha", "alpha", 1.0}}),
      curve("ThresholdedRelu", "nn.thresholdedrelu", 10, {{"alpha", "alpha", 1.0}}),
      {"Gelu", 20, 1, 1, convert_gelu, "floats"},
      {"PRelu", 1, 2, 2, convert_prelu, "floats"},
      softmax("Softmax", "nn.softmax"),
      softmax("LogSoftmax", "nn.log_softmax"),
      softmax("Hardmax", "nn.hardmax"),
  };
}

}  // namespace tenon::onnx
