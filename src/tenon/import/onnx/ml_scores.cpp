// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/ml_scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tenon/import/onnx/text.h"

namespace tenon::onnx {

Value feature_rows(Context& c) {
  const Value x = c.value(0);
  if (c.ndim(0) == 2) return x;
  if (c.ndim(0) != 1) unsupported("features of rank {}; expected 1 or 2", c.ndim(0));
  return c.reshape(x, {int64(1), c.shape(0)[0]});
}

Value float_table(DType dtype, const std::vector<double>& values, const Ints& shape) {
  if (dtype == kFloat64) return make<graph::Constant>(TensorData::of(dtype, shape, values));
  check(dtype == kFloat32, "a table of another dtype");
  const std::vector<float> narrow(values.begin(), values.end());
  return make<graph::Constant>(TensorData::of(dtype, shape, narrow));
}

Value int_table(DType dtype, const std::vector<int64_t>& values, const Ints& shape) {
  if (dtype == kInt64) return make<graph::Constant>(TensorData::of(dtype, shape, values));
  if (dtype == kInt32) {
    const std::vector<int32_t> narrow(values.begin(), values.end());
    return make<graph::Constant>(TensorData::of(dtype, shape, narrow));
  }
  if (dtype == kInt16) {
    const std::vector<int16_t> narrow(values.begin(), values.end());
    return make<graph::Constant>(TensorData::of(dtype, shape, narrow));
  }
  check(dtype == kUInt8, "a table of another dtype");
  const std::vector<uint8_t> narrow(values.begin(), values.end());
  return make<graph::Constant>(TensorData::of(dtype, shape, narrow));
}

std::string post_transform(Context& c) {
  const std::string text = c.string_attr("post_transform", "NONE");
  for (const char* known : {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"})
    if (text == known) return text;
  c.bad(kBadAttribute,
        "attribute `post_transform` of `{}` is `{}`; expected NONE, SOFTMAX, LOGISTIC, "
        "SOFTMAX_ZERO or PROBIT",
        c.node().op_type, printable(text));
}

// sqrt(2) times the inverse of erf at 2 x - 1, by Winitzki's approximation, as ONNX's reference
// computes it.
static Value probit(Context& c, const Value& x) {
  const DType dtype = shaped(x)->dtype;
  const auto number = [&](double value) { return c.scalar(dtype, value); };
  constexpr double kA = 0.147;
  const Value y = c.op("subtract", {c.op("multiply", {x, number(2)}), number(1)});
  const Value log = c.op(
      "log", {c.op("multiply", {c.op("subtract", {number(1), y}), c.op("add", {number(1), y})})});
  const Value v =
      c.op("add", {number(2 / (std::numbers::pi * kA)), c.op("multiply", {number(0.5), log})});
  const Value root =
      c.op("sqrt",
           {c.op("subtract", {c.op("multiply", {v, v}), c.op("multiply", {number(1 / kA), log})})});
  const Value size = c.op("sqrt", {c.op("subtract", {root, v})});
  const Value scaled = c.op("multiply", {size, number(std::numbers::sqrt2)});
  return c.op("where", {c.op("less", {y, number(0)}), c.op("negative", {scaled}), scaled});
}

// A softmax whose sum leaves out scores that are 0, which stay 0.
static Value softmax_zero(Context& c, const Value& scores) {
  const DType dtype = shaped(scores)->dtype;
  const Attrs along{{"axis", Ints{1}}, {"keepdims", true}};
  const Value zero = c.op("less_equal", {c.op("abs", {scores}), c.scalar(dtype, 1e-7)});
  const Value greatest = c.op("max", {scores}, along);
  const Value exp = c.op("exp", {c.op("subtract", {scores, greatest})});
  const Value counted = c.op("where", {zero, c.scalar(dtype, 0), exp});
  return c.op("divide", {counted, c.op("sum", {counted}, along)});
}

Value transformed(Context& c, const Value& scores, const std::string& transform) {
  if (transform == "LOGISTIC") return c.op("sigmoid", {scores});
  if (transform == "SOFTMAX") return c.op("nn.softmax", {scores}, {{"axis", 1}});
  if (transform == "SOFTMAX_ZERO") return softmax_zero(c, scores);
  if (transform == "PROBIT") return probit(c, scores);
  return scores;
}

Value with_second_class(Context& c, const Value& score, SecondClass how,
                        const std::string& transform) {
  if (transform == "PROBIT") return probit(c, score);
  const bool is_logistic = transform == "LOGISTIC";
  const Value other = is_logistic || how == SecondClass::kNegative
                          ? c.op("negative", {score})
                          : c.op("subtract", {c.scalar(shaped(score)->dtype, 1), score});
  const Value both =
      c.op("concat", {make<graph::Tuple>(std::vector<Value>{other, score})}, {{"axis", 1}});
  return is_logistic ? c.op("sigmoid", {both}) : both;
}

Labels class_labels(Context& c, const std::string& ints, const std::string& strings) {
  const Ints numbers = c.ints_attr(ints, {});
  const std::vector<std::string> texts = c.strings_attr(strings, {});
  if (numbers.empty() == texts.empty())
    c.bad(kBadAttribute, "`{}` has {} and {} labels as `{}` and `{}`; expected one of them",
          c.node().op_type, numbers.size(), texts.size(), ints, strings);
  if (!texts.empty()) {
    const auto count = static_cast<int64_t>(texts.size());
    return {text_table(texts, {count}), count};
  }
  return {ConverterContext::ints_constant(numbers), static_cast<int64_t>(numbers.size())};
}

Value labels_at(Context& c, const Labels& labels, const Value& index) {
  return c.op("take", {labels.values, index}, {{"axis", 0}});
}

Value winner(Context& c, const Value& scores) {
  return c.cast(c.op("argmax", {scores}, {{"axis", 1}, {"keepdims", false}}), kInt64);
}

}  // namespace tenon::onnx
