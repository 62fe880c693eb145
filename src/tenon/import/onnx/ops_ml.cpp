// SPDX-License-Identifier: Apache-2.0
// Models and feature transformations of ai.onnx.ml, except trees (ops_trees.cpp).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "tenon/import/onnx/ml_scores.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/import/onnx/text.h"
#include "tenon/ir/text_constant.h"

namespace tenon::onnx {

namespace {

Value tuple_of(std::vector<Value> values) { return make<graph::Tuple>(std::move(values)); }

// ---- elements -----------------------------------------------------------------------------------

Results convert_array_feature_extractor(Context& c) {
  if (c.ndim(0) == 0) unsupported("a tensor of rank 0");
  const Expr count = graph::product(c.shape(1));
  const Value index = c.reshape(c.value(1), {count});
  const Value taken = c.op("take", {c.value(0), index}, {{"axis", c.ndim(0) - 1}});
  return {c.ndim(0) == 1 ? c.reshape(taken, {int64(1), count}) : taken};
}

Results convert_binarizer(Context& c) {
  const DType dtype = c.dtype(0);
  double threshold = c.float_attr("threshold", 0);
  if (dtype.is_integer()) {
    // Of integers, x > t is x > floor(t); a bound outside of the type decides all.
    threshold = std::floor(threshold);
    const double end = std::ldexp(1.0, dtype.bits - 1);
    if (threshold >= end || threshold < -end)
      return {c.op("full_like", {c.value(0), c.scalar(dtype, threshold < 0 ? 1 : 0)})};
  }
  return {c.cast(c.op("greater", {c.value(0), c.scalar(dtype, threshold)}), dtype)};
}

// One number for all features, or one for each.
Value per_feature(Context& c, const char* name, const std::vector<double>& values, DType dtype) {
  const Expr features = c.shape(0).back();
  const auto count = static_cast<int64_t>(values.size());
  if (count != 1 && as_int(features) && *as_int(features) != count)
    c.bad(kBadAttribute, "attribute `{}` of `{}` has {} elements; expected 1 or {}", name,
          c.node().op_type, count, str(features));
  return float_table(dtype, values, {count});
}

Results convert_scaler(Context& c) {
  if (c.ndim(0) == 0) unsupported("a tensor of rank 0");
  const DType dtype = c.dtype(0) == kFloat64 ? kFloat64 : kFloat32;
  Value x = c.cast(c.value(0), dtype);
  const std::vector<double> offset = c.floats_attr("offset", {}),
                            scale = c.floats_attr("scale", {});
  if (!offset.empty()) x = c.op("subtract", {x, per_feature(c, "offset", offset, dtype)});
  if (!scale.empty()) x = c.op("multiply", {x, per_feature(c, "scale", scale, dtype)});
  return {c.cast(x, kFloat32)};
}

Results convert_normalizer(Context& c) {
  const std::string norm = c.string_attr("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    c.bad(kBadAttribute, "attribute `norm` of `Normalizer` is `{}`; expected MAX, L1 or L2",
          printable(norm));
  if (c.ndim(0) != 1 && c.ndim(0) != 2)
    unsupported("a tensor of rank {}; expected 1 or 2", c.ndim(0));
  const Value x = c.cast(c.value(0), kFloat32);
  const Attrs along{{"axis", Ints{c.ndim(0) - 1}}, {"keepdims", true}};
  Value divisor;
  if (norm == "MAX") divisor = c.op("max", {x}, along);
  if (norm == "L1") divisor = c.op("sum", {c.op("abs", {x})}, along);
  if (norm == "L2") divisor = c.op("sqrt", {c.op("sum", {c.op("multiply", {x, x})}, along)});
  const Value is_zero = c.op("equal", {divisor, c.scalar(kFloat32, 0)});
  return {c.op("divide", {x, c.op("where", {is_zero, c.scalar(kFloat32, 1), divisor})})};
}

Results convert_imputer(Context& c) {
  if (c.ndim(0) == 0) unsupported("a tensor of rank 0");
  const DType dtype = c.dtype(0);
  const bool is_float = dtype.is_float();
  const std::vector<double> floats = c.floats_attr("imputed_value_floats", {});
  const Ints ints = c.ints_attr("imputed_value_int64s", {});
  const double old_float = c.float_attr("replaced_value_float", 0);
  const int64_t old_int = c.int_attr("replaced_value_int64", 0);
  if (is_float ? floats.empty() : ints.empty())
    c.bad(kBadAttribute, "`Imputer` of dtype {} has no attribute `{}`", dtype.str(),
          is_float ? "imputed_value_floats" : "imputed_value_int64s");
  if (!is_float) {
    const auto count = static_cast<int64_t>(ints.size());
    const Value replaced = int_table(dtype, {old_int}, {1});
    return {c.op("where", {c.op("equal", {c.value(0), replaced}), int_table(dtype, ints, {count}),
                           c.value(0)})};
  }
  const Value x = c.value(0);
  const Value found =
      std::isnan(old_float) ? c.op("isnan", {x}) : c.op("equal", {x, c.scalar(dtype, old_float)});
  return {c.op("where", {found, per_feature(c, "imputed_value_floats", floats, dtype), x})};
}

Results convert_feature_vectorizer(Context& c) {
  const Ints widths = c.ints_attr("inputdimensions", {});
  if (!widths.empty() && widths.size() != c.input_count())
    c.bad(kBadAttribute, "attribute `inputdimensions` has {} elements; expected {}", widths.size(),
          c.input_count());
  std::vector<Value> parts;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.ndim(i) != 1 && c.ndim(i) != 2) unsupported("an operand of rank {}", c.ndim(i));
    const Expr width = c.shape(i).back();
    if (!widths.empty() && as_int(width) && *as_int(width) != widths[i])
      c.bad(kBadAttribute, "operand {} has {} features; attribute `inputdimensions` has {}", i,
            str(width), widths[i]);
    Value part = c.cast(c.value(i), kFloat32);
    if (c.ndim(i) == 1) part = c.reshape(part, {int64(1), width});
    parts.push_back(part);
  }
  return {c.op("concat", {tuple_of(std::move(parts))}, {{"axis", 1}})};
}

// ---- tables of keys -----------------------------------------------------------------------------

// A list of an encoder: a tensor, or attributes of one dtype.
struct Column {
  DType dtype = kVoid;
  std::vector<double> floats = {};
  Ints ints = {};
  std::vector<std::string> texts = {};

  size_t size() const {
    return dtype.is_string() ? texts.size() : dtype.is_float() ? floats.size() : ints.size();
  }
  Value table(const std::optional<Ints>& shape = std::nullopt) const {
    const Ints dims = shape.value_or(Ints{static_cast<int64_t>(size())});
    if (dtype.is_string()) return text_table(texts, dims);
    return dtype.is_float() ? float_table(dtype, floats, dims) : int_table(dtype, ints, dims);
  }
  /// The elements at `places`.
  Column at(const std::vector<size_t>& places) const {
    Column out{dtype};
    for (const size_t i : places) {
      if (dtype.is_string())
        out.texts.push_back(texts[i]);
      else if (dtype.is_float())
        out.floats.push_back(floats[i]);
      else
        out.ints.push_back(ints[i]);
    }
    return out;
  }
};

Column column_of(const Tensor& tensor) {
  if (!tensor.data) unsupported("a table, a tensor of {}", tensor.unsupported);
  Column out{tensor.data->dtype};
  if (out.dtype != kFloat32 && out.dtype != kFloat64 && out.dtype != kInt64 &&
      out.dtype != kInt32 && out.dtype != kInt16 && !out.dtype.is_string())
    unsupported("a table of {}", out.dtype.str());
  for (int64_t i = 0; i < tensor.data->elements(); ++i) {
    if (out.dtype.is_string())
      out.texts.push_back(text_at(*tensor.data, i));
    else if (out.dtype.is_float())
      out.floats.push_back(tensor.data->at_float(i));
    else
      out.ints.push_back(tensor.data->at_int(i));
  }
  return out;
}

Column column_attr(Context& c, const std::string& prefix) {
  if (c.has_attr(prefix + "_tensor")) return column_of(c.tensor_attr(prefix + "_tensor"));
  if (c.has_attr(prefix + "_int64s")) return {kInt64, {}, c.ints_attr(prefix + "_int64s", {}), {}};
  if (c.has_attr(prefix + "_floats")) return {kFloat32, c.floats_attr(prefix + "_floats", {})};
  if (c.has_attr(prefix + "_strings"))
    return {kString, {}, {}, c.strings_attr(prefix + "_strings", {})};
  c.bad(kBadAttribute, "`{}` has no attribute `{}_...`", c.node().op_type, prefix);
}

// The order in which `keys` rise; of equal ones the last alone.
template <typename T>
std::vector<size_t> rising(const std::vector<T>& keys) {
  std::vector<size_t> order;
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == keys[i]) order.push_back(i);
  std::ranges::sort(
      order, [&](size_t a, size_t b) { return std::pair(keys[a], a) < std::pair(keys[b], b); });
  std::vector<size_t> out;
  for (const size_t i : order) {
    if (!out.empty() && keys[out.back()] == keys[i]) out.pop_back();
    out.push_back(i);
  }
  return out;
}

// The value of the key that equals each element of x, or `otherwise`, of one element.
Value looked_up(Context& c, const Value& x, const Column& keys, const Column& values,
                const Column& otherwise) {
  if (keys.size() != values.size())
    c.bad(kBadAttribute, "`{}` has {} keys and {} values", c.node().op_type, keys.size(),
          values.size());
  if (shaped(x)->dtype != keys.dtype)
    c.bad(kDTypeMismatch, "`{}` of dtype {} has keys of dtype {}", c.node().op_type,
          shaped(x)->dtype.str(), keys.dtype.str());
  if (keys.dtype.is_string()) {
    // A place of -1 is the last: there stands what no key equals.
    Column all = values;
    all.floats.insert(all.floats.end(), otherwise.floats.begin(), otherwise.floats.end());
    all.ints.insert(all.ints.end(), otherwise.ints.begin(), otherwise.ints.end());
    all.texts.insert(all.texts.end(), otherwise.texts.begin(), otherwise.texts.end());
    return c.op("take", {all.table(), c.op("string.find", {x, keys.table()})}, {{"axis", 0}});
  }
  std::optional<size_t> nan;
  for (size_t i = 0; i < keys.floats.size(); ++i)
    if (std::isnan(keys.floats[i])) nan = i;
  const std::vector<size_t> order = keys.dtype.is_float() ? rising(keys.floats) : rising(keys.ints);
  const Value found = c.op(
      "lookup", {x, keys.at(order).table(), values.at(order).table(), otherwise.table(Ints{})});
  return nan ? c.op("where", {c.op("isnan", {x}), values.at({*nan}).table(Ints{}), found}) : found;
}

Results convert_label_encoder(Context& c) {
  const int64_t of_ints = c.int_attr("default_int64", -1);
  const std::string of_texts = c.string_attr("default_string", "_Unused");
  if (c.opset() < 2) {
    const Column texts{kString, {}, {}, c.strings_attr("classes_strings", {})};
    Column numbers{kInt64, {}, Ints(texts.size())};
    std::iota(numbers.ints.begin(), numbers.ints.end(), int64_t{0});
    if (c.dtype(0).is_string())
      return {looked_up(c, c.value(0), texts, numbers, {kInt64, {}, {of_ints}})};
    return {looked_up(c, c.value(0), numbers, texts, {kString, {}, {}, {of_texts}})};
  }
  Column keys = column_attr(c, "keys"), values = column_attr(c, "values");
  // Of equal keys the last counts since version 4, the first before.
  if (c.opset() < 4 && keys.size() == values.size()) {
    std::vector<size_t> backwards(keys.size());
    std::iota(backwards.rbegin(), backwards.rend(), size_t{0});
    keys = keys.at(backwards);
    values = values.at(backwards);
  }
  const double of_floats = c.float_attr("default_float", -0.0);
  Column otherwise{values.dtype};
  if (values.dtype.is_string())
    otherwise.texts = {of_texts};
  else if (values.dtype.is_float())
    otherwise.floats = {of_floats};
  else
    otherwise.ints = {of_ints};
  if (c.has_attr("default_tensor")) {
    otherwise = column_of(c.tensor_attr("default_tensor"));
    if (otherwise.size() != 1 || otherwise.dtype != values.dtype)
      c.bad(kBadAttribute,
            "attribute `default_tensor` of `LabelEncoder` has {} elements of dtype {}; expected "
            "one of {}",
            otherwise.size(), otherwise.dtype.str(), values.dtype.str());
  }
  return {looked_up(c, c.value(0), keys, values, otherwise)};
}

Results convert_category_mapper(Context& c) {
  const Column numbers{kInt64, {}, c.ints_attr("cats_int64s", {})},
      texts{kString, {}, {}, c.strings_attr("cats_strings", {})};
  const int64_t of_ints = c.int_attr("default_int64", -1);
  const std::string of_texts = c.string_attr("default_string", "_Unused");
  if (c.dtype(0).is_string())
    return {looked_up(c, c.value(0), texts, numbers, {kInt64, {}, {of_ints}})};
  return {looked_up(c, c.value(0), numbers, texts, {kString, {}, {}, {of_texts}})};
}

Results convert_one_hot_encoder(Context& c) {
  const bool is_text = c.dtype(0).is_string();
  Column categories{is_text ? kString : kInt64};
  if (is_text)
    categories.texts = c.strings_attr("cats_strings", {});
  else
    categories.ints = c.ints_attr("cats_int64s", {});
  const bool zeros = c.flag_attr("zeros", true);
  const auto count = static_cast<int64_t>(categories.size());
  if (count == 0)
    c.bad(kBadAttribute, "`OneHotEncoder` of dtype {} has no categories of that type",
          c.dtype(0).str());
  const Value x = is_text ? c.value(0) : c.cast(c.value(0), kInt64);
  Ints places(categories.size());
  std::iota(places.begin(), places.end(), int64_t{0});
  const Value place =
      looked_up(c, x, categories, {kInt64, {}, places}, {kInt64, {}, {zeros ? -1 : count}});
  Dims shape = c.shape(0);
  shape.push_back(int64(1));
  if (!zeros) {
    // A category that is not listed is an index outside of the axis.
    std::vector<double> unit(static_cast<size_t>(count * count));
    for (int64_t i = 0; i < count; ++i) unit[static_cast<size_t>(i * count + i)] = 1;
    return {c.op("take", {float_table(kFloat32, unit, {count, count}), place}, {{"axis", 0}})};
  }
  const Value equal = c.op("equal", {c.reshape(place, shape), int_table(kInt64, places, {count})});
  return {c.cast(equal, kFloat32)};
}

// ---- linear models ------------------------------------------------------------------------------

// x W^T + b of (rows, features), W of `targets` rows.
Value linear(Context& c, const Value& x, const std::vector<double>& coefficients,
             const std::vector<double>& intercepts, int64_t targets) {
  const DType dtype = shaped(x)->dtype;
  const auto count = static_cast<int64_t>(coefficients.size());
  if (targets < 1 || count % targets != 0)
    c.bad(kBadAttribute, "`{}` has {} coefficients for {} targets", c.node().op_type, count,
          targets);
  const int64_t features = count / targets;
  std::vector<double> turned(coefficients.size());
  for (int64_t t = 0; t < targets; ++t)
    for (int64_t f = 0; f < features; ++f)
      turned[static_cast<size_t>(f * targets + t)] =
          coefficients[static_cast<size_t>(t * features + f)];
  const Value product = c.op("matmul", {x, float_table(dtype, turned, {features, targets})});
  if (intercepts.empty()) return product;
  if (static_cast<int64_t>(intercepts.size()) != targets)
    c.bad(kBadAttribute, "`{}` has {} intercepts for {} targets", c.node().op_type,
          intercepts.size(), targets);
  return c.op("add", {product, float_table(dtype, intercepts, {targets})});
}

// Features as floats: of float64 in that.
Value float_rows(Context& c) {
  return c.cast(feature_rows(c), c.dtype(0) == kFloat64 ? kFloat64 : kFloat32);
}

Results convert_linear_regressor(Context& c) {
  const int64_t targets = c.int_attr("targets", 1);
  const std::vector<double> coefficients = c.floats_attr("coefficients", {}),
                            intercepts = c.floats_attr("intercepts", {});
  const std::string transform = post_transform(c);
  const Value scores = linear(c, float_rows(c), coefficients, intercepts, targets);
  return {transformed(c, c.cast(scores, kFloat32), transform)};
}

Results convert_linear_classifier(Context& c) {
  c.ignore({"multi_class"});
  const Labels labels = class_labels(c, "classlabels_ints", "classlabels_strings");
  const std::vector<double> coefficients = c.floats_attr("coefficients", {}),
                            intercepts = c.floats_attr("intercepts", {});
  const std::string transform = post_transform(c);
  const int64_t classes =
      intercepts.empty() ? labels.count : static_cast<int64_t>(intercepts.size());
  if (labels.count < 2) unsupported("a single label");
  if (classes != labels.count && (classes != 1 || labels.count != 2))
    c.bad(kBadAttribute, "`LinearClassifier` has {} intercepts for {} labels", classes,
          labels.count);
  Value scores = c.cast(linear(c, float_rows(c), coefficients, intercepts, classes), kFloat32);
  if (classes != 1)
    return {labels_at(c, labels, winner(c, scores)), transformed(c, scores, transform)};
  const Value above = c.op("greater", {scores, c.scalar(kFloat32, 0)});
  const Value index = c.reshape(c.cast(above, kInt64), {shaped(scores)->dim(0)});
  return {labels_at(c, labels, index),
          with_second_class(c, scores, SecondClass::kComplement, transform)};
}

// ---- support vectors ----------------------------------------------------------------------------

struct Kernel {
  std::string type;
  double gamma = 0, coef0 = 0, degree = 0;
};

Kernel kernel_of(Context& c) {
  Kernel out{c.string_attr("kernel_type", "LINEAR")};
  for (const char* known : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    if (out.type != known) continue;
    const std::vector<double> params = c.floats_attr("kernel_params", {});
    if (!params.empty() && params.size() != 3)
      c.bad(kBadAttribute, "attribute `kernel_params` of `{}` has {} elements; expected 3",
            c.node().op_type, params.size());
    if (params.size() == 3) {
      out.gamma = params[0];
      out.coef0 = params[1];
      out.degree = params[2];
    }
    return out;
  }
  c.bad(kBadAttribute,
        "attribute `kernel_type` of `{}` is `{}`; expected LINEAR, POLY, RBF or "
        "SIGMOID",
        c.node().op_type, printable(out.type));
}

// The kernel of each row with each of `count` vectors: (rows, count).
Value kernel_with(Context& c, const Value& x, const Kernel& kernel,
                  const std::vector<double>& vectors, int64_t count) {
  const DType dtype = shaped(x)->dtype;
  const auto number = [&](double value) { return c.scalar(dtype, value); };
  if (kernel.type == "RBF") {
    const auto all = static_cast<int64_t>(vectors.size());
    if (count < 1 || all % count != 0)
      c.bad(kBadAttribute, "`{}` has {} numbers for {} support vectors", c.node().op_type, all,
            count);
    const Expr rows = shaped(x)->dim(0), features = shaped(x)->dim(1);
    // Vectors stand side by side: a feature of all of them is read at once.
    const int64_t width = all / count;
    std::vector<double> columns(vectors.size());
    for (int64_t i = 0; i < all; ++i)
      columns[static_cast<size_t>(i % width * count + i / width)] = vectors[static_cast<size_t>(i)];
    const Value each = c.reshape(x, {rows, features, int64(1)});
    const Value d = c.op("subtract", {each, float_table(dtype, columns, {width, count})});
    const Value squares = c.op("sum", {c.op("multiply", {d, d})}, {{"axis", Ints{1}}});
    return c.op("exp", {c.op("multiply", {squares, number(-kernel.gamma)})});
  }
  const Value dot = linear(c, x, vectors, {}, count);
  if (kernel.type == "LINEAR") return dot;
  const Value inner =
      c.op("add", {c.op("multiply", {dot, number(kernel.gamma)}), number(kernel.coef0)});
  if (kernel.type == "SIGMOID") return c.op("tanh", {inner});
  return c.op("power", {inner, number(kernel.degree)});
}

Results convert_svm_regressor(Context& c) {
  const Kernel kernel = kernel_of(c);
  const std::vector<double> coefficients = c.floats_attr("coefficients", {}),
                            vectors = c.floats_attr("support_vectors", {}),
                            rho = c.floats_attr("rho", {});
  const int64_t supports = c.int_attr("n_supports", 0);
  const bool is_one_class = c.flag_attr("one_class");
  const std::string transform = post_transform(c);
  if (rho.size() != 1)
    c.bad(kBadAttribute, "attribute `rho` of `SVMRegressor` has {} elements; expected 1",
          rho.size());
  const Value x = float_rows(c);
  // Without support vectors the coefficients are those of the features.
  const Value kernels = supports > 0 ? kernel_with(c, x, kernel, vectors, supports) : x;
  if (supports > 0 && static_cast<int64_t>(coefficients.size()) != supports)
    c.bad(kBadAttribute, "`SVMRegressor` has {} coefficients for {} support vectors",
          coefficients.size(), supports);
  Value score = c.cast(linear(c, kernels, coefficients, rho, 1), kFloat32);
  if (is_one_class) {
    const Value above = c.op("greater", {score, c.scalar(kFloat32, 0)});
    score = c.op("where", {above, c.scalar(kFloat32, 1), c.scalar(kFloat32, -1)});
  }
  return {transformed(c, score, transform)};
}

// The scores of the pairs (i, j), i < j, in order: coefficients stand in a row for each other class.
struct Pairs {
  std::vector<std::array<int64_t, 2>> classes;
  std::vector<double> weights;  // (vectors, pairs)
};

Pairs pairs_of(Context& c, const Ints& per_class, const std::vector<double>& coefficients) {
  const auto classes = static_cast<int64_t>(per_class.size());
  int64_t vectors = 0;
  Ints first;
  for (const int64_t count : per_class) {
    if (count < 0 || count > (int64_t{1} << 31))
      c.bad(kBadAttribute, "attribute `vectors_per_class` of `SVMClassifier` has {}", count);
    first.push_back(vectors);
    vectors += count;
  }
  if (static_cast<int64_t>(coefficients.size()) != (classes - 1) * vectors)
    c.bad(kBadAttribute, "`SVMClassifier` has {} coefficients for {} vectors of {} classes",
          coefficients.size(), vectors, classes);
  Pairs out;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j) out.classes.push_back({i, j});
  const size_t count = out.classes.size();
  out.weights.resize(static_cast<size_t>(vectors) * count);
  for (size_t pair = 0; pair < count; ++pair) {
    const auto [i, j] = out.classes[pair];
    const auto take = [&](int64_t of, int64_t row) {
      for (int64_t k = first[static_cast<size_t>(of)];
           k < first[static_cast<size_t>(of)] + per_class[static_cast<size_t>(of)]; ++k)
        out.weights[static_cast<size_t>(k) * count + pair] =
            coefficients[static_cast<size_t>(row * vectors + k)];
    };
    take(i, j - 1);
    take(j, i);
  }
  return out;
}

// The class that most pairs are for: each column of the tables is a class.
Value voted(Context& c, const Value& scores, const Pairs& pairs, int64_t classes) {
  const auto count = static_cast<int64_t>(pairs.classes.size());
  std::vector<double> gain(static_cast<size_t>(count * classes)),
      without(static_cast<size_t>(classes));
  for (int64_t p = 0; p < count; ++p) {
    const auto [i, j] = pairs.classes[static_cast<size_t>(p)];
    gain[static_cast<size_t>(p * classes + i)] = 1;
    gain[static_cast<size_t>(p * classes + j)] = -1;
    without[static_cast<size_t>(j)] += 1;
  }
  const Value for_first = c.cast(c.op("greater", {scores, c.scalar(kFloat32, 0)}), kFloat32);
  const Value moved = c.op("matmul", {for_first, float_table(kFloat32, gain, {count, classes})});
  return winner(c, c.op("add", {moved, float_table(kFloat32, without, {classes})}));
}

// The probabilities of classes from the scores of pairs, by Platt's sigmoids.
Value probabilities(Context& c, const Value& scores, const Pairs& pairs, int64_t classes,
                    const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<int64_t>(pairs.classes.size());
  if (static_cast<int64_t>(a.size()) != count || a.size() != b.size())
    c.bad(kBadAttribute, "`SVMClassifier` has {} and {} probability coefficients for {} pairs",
          a.size(), b.size(), count);
  const Value inner = c.op("add", {c.op("multiply", {scores, float_table(kFloat32, a, {count})}),
                                   float_table(kFloat32, b, {count})});
  Value first = c.op("sigmoid", {c.op("negative", {inner})});
  first = c.op("clip", {first, c.prim(imm(kFloat32, 1e-7)), c.prim(imm(kFloat32, 1 - 1e-7))});
  const Value second = c.op("subtract", {c.scalar(kFloat32, 1), first});
  const Value both = c.op("concat", {tuple_of({first, second})}, {{"axis", 1}});
  Ints places(static_cast<size_t>(classes * classes));  // on the diagonal any
  for (int64_t p = 0; p < count; ++p) {
    const auto [i, j] = pairs.classes[static_cast<size_t>(p)];
    places[static_cast<size_t>(i * classes + j)] = p;
    places[static_cast<size_t>(j * classes + i)] = count + p;
  }
  const Value all = c.op("take", {both, c.ints_constant(places)}, {{"axis", 1}});
  const Value matrix = c.reshape(all, {shaped(scores)->dim(0), int64(classes), int64(classes)});
  return c.op("pairwise_coupling", {matrix});
}

Results convert_svm_classifier(Context& c) {
  const Labels labels = class_labels(c, "classlabels_ints", "classlabels_strings");
  const Kernel kernel = kernel_of(c);
  const std::vector<double> coefficients = c.floats_attr("coefficients", {}),
                            vectors = c.floats_attr("support_vectors", {}),
                            rho = c.floats_attr("rho", {}), a = c.floats_attr("prob_a", {}),
                            b = c.floats_attr("prob_b", {});
  const Ints per_class = c.ints_attr("vectors_per_class", {});
  const std::string transform = post_transform(c);
  if (labels.count < 2) unsupported("a single label");
  const Value x = float_rows(c);
  if (per_class.empty()) {  // a row of coefficients for each class
    if (rho.empty()) c.bad(kBadAttribute, "`SVMClassifier` has no attribute `rho`");
    if (!a.empty()) unsupported("probabilities without support vectors");
    const std::vector<double> same(static_cast<size_t>(labels.count), rho[0]);
    const Value scores = c.cast(linear(c, x, coefficients, same, labels.count), kFloat32);
    return {labels_at(c, labels, winner(c, scores)), transformed(c, scores, transform)};
  }
  const auto classes = static_cast<int64_t>(per_class.size());
  const int64_t total = std::accumulate(per_class.begin(), per_class.end(), int64_t{0});
  const Pairs pairs = pairs_of(c, per_class, coefficients);
  const auto count = static_cast<int64_t>(pairs.classes.size());
  if (classes != labels.count || static_cast<int64_t>(rho.size()) != count)
    c.bad(kBadAttribute, "`SVMClassifier` has {} classes, {} labels and {} values `rho`", classes,
          labels.count, rho.size());
  const Value kernels = kernel_with(c, x, kernel, vectors, total);
  const DType dtype = shaped(kernels)->dtype;
  Value scores = c.op("matmul", {kernels, float_table(dtype, pairs.weights, {total, count})});
  scores = c.op("add", {scores, float_table(dtype, rho, {count})});
  scores = c.cast(scores, kFloat32);
  // Also where there are probabilities, whose greatest may be another.
  const Value label = labels_at(c, labels, voted(c, scores, pairs, classes));
  if (!a.empty())
    return {label, transformed(c, probabilities(c, scores, pairs, classes, a, b), transform)};
  if (classes > 2) return {label, transformed(c, scores, transform)};
  const SecondClass how = transform == "NONE" ? SecondClass::kNegative : SecondClass::kComplement;
  return {label, with_second_class(c, scores, how, transform)};
}

}  // namespace

std::vector<OperatorRow> ml_rows() {
  const std::string domain = "ai.onnx.ml";
  return {
      {"ArrayFeatureExtractor", 1, 2, 2, convert_array_feature_extractor, "all", "", domain},
      {"Binarizer", 1, 1, 1, convert_binarizer, "numbers", "", domain},
      {"Scaler", 1, 1, 1, convert_scaler, "numbers", "", domain},
      {"Normalizer", 1, 1, 1, convert_normalizer, "numbers", "", domain},
      {"Imputer", 1, 1, 1, convert_imputer, "numbers", "", domain},
      {"FeatureVectorizer", 1, 1, -1, convert_feature_vectorizer, "numbers", "", domain},
      {"LabelEncoder", 1, 1, 1, convert_label_encoder, "numbers, string", "", domain},
      {"CategoryMapper", 1, 1, 1, convert_category_mapper, "int64, string", "", domain},
      {"OneHotEncoder", 1, 1, 1, convert_one_hot_encoder, "numbers, string", "", domain},
      {"LinearRegressor", 1, 1, 1, convert_linear_regressor, "numbers", "", domain},
      {"LinearClassifier", 1, 1, 1, convert_linear_classifier, "numbers", "", domain},
      {"SVMClassifier", 1, 1, 1, convert_svm_classifier, "numbers", "", domain},
      {"SVMRegressor", 1, 1, 1, convert_svm_regressor, "numbers", "", domain},
  };
}

}  // namespace tenon::onnx
