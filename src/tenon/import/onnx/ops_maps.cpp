// SPDX-License-Identifier: Apache-2.0
// Maps of ai.onnx.ml, which are pairs of tensors (maps.h).
#include <algorithm>
#include <map>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/ml_scores.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/import/onnx/text.h"

namespace tenon::onnx {

namespace {

// A list of keys that an attribute gives: texts or numbers.
struct Keys {
  std::vector<std::string> texts;
  Ints numbers;
  int64_t size() const {
    return static_cast<int64_t>(texts.empty() ? numbers.size() : texts.size());
  }
};

Keys keys_of(Context& c, const char* texts, const char* numbers) {
  Keys out{c.strings_attr(texts, {}), c.ints_attr(numbers, {})};
  if (out.texts.empty() == out.numbers.empty())
    c.bad(kBadAttribute, "`{}` has {} and {} keys as `{}` and `{}`; expected one of them",
          c.node().op_type, out.texts.size(), out.numbers.size(), texts, numbers);
  return out;
}

// A map for each row: all have the same keys.
Results convert_zip_map(Context& c) {
  const Keys keys = keys_of(c, "classlabels_strings", "classlabels_int64s");
  const int64_t ndim = c.ndim(0), size = keys.size();
  if (ndim != 1 && ndim != 2)
    c.bad(kRankMismatch, "`ZipMap` of a tensor of rank {}; expected 1 or 2", ndim);
  c.require(eq(c.shape(0).back(), int64(size)), kShapeMismatch,
            fmt::format("the columns of `ZipMap` are not as many as its {} keys", size));
  const Value table =
      keys.texts.empty() ? c.ints_constant(keys.numbers) : text_table(keys.texts, {size});
  const Expr rows = ndim == 1 ? Expr(int64(1)) : c.shape(0)[0];
  return {table, c.reshape(c.value(0), {rows, int64(size)})};
}

// `slots` elements, of which those at `places` are the values and all others nothing (0, ""); a
// place of `slots` is none.
Value placed(Context& c, const Value& values, const Value& places, int64_t slots) {
  const DType dtype = shaped(values)->dtype;
  const Value nothing = dtype.is_string() ? text_table({""}, {}) : c.scalar(dtype, 0);
  const Value none = c.op("full", {c.shape_value({int64(slots + 1)}), nothing}, {{"dtype", dtype}});
  const Value all = c.op("scatter_elements", {none, places, values}, {{"axis", 0}});
  return c.op("strided_slice", {all, c.shape_value({int64(0)}), c.shape_value({int64(0)}),
                                c.shape_value({int64(slots)})});
}

void check_map(Context& c) {
  for (size_t i = 0; i < 2; ++i)
    if (c.ndim(i) != 1)
      c.bad(kRankMismatch, "{} of a map of rank {}; expected 1", i == 0 ? "keys" : "values",
            c.ndim(i));
  c.require(eq(c.shape(0)[0], c.shape(1)[0]), kShapeMismatch,
            "a map has not as many values as keys");
}

Results convert_dict_vectorizer(Context& c) {
  check_map(c);
  const Keys words = keys_of(c, "string_vocabulary", "int64_vocabulary");
  const DType dtype = words.texts.empty() ? kInt64 : kString;
  if (c.dtype(0) != dtype)
    c.bad(kDTypeMismatch, "`DictVectorizer` of a map of {} has a vocabulary of {}",
          c.dtype(0).str(), dtype.str());
  // A slot for each word, whatever its places in the vocabulary.
  std::map<std::string, int64_t> of_texts;
  std::map<int64_t, int64_t> of_numbers;
  for (const std::string& text : words.texts) of_texts.emplace(text, 0);
  for (const int64_t number : words.numbers) of_numbers.emplace(number, 0);
  Ints slots, keys, columns;
  std::vector<std::string> texts;
  for (auto& [text, slot] : of_texts) {
    slot = static_cast<int64_t>(texts.size());
    texts.push_back(text);
  }
  for (auto& [number, slot] : of_numbers) {
    slot = static_cast<int64_t>(keys.size());
    slots.push_back(slot);
    keys.push_back(number);
  }
  for (const std::string& text : words.texts) columns.push_back(of_texts.at(text));
  for (const int64_t number : words.numbers) columns.push_back(of_numbers.at(number));
  const auto count = static_cast<int64_t>(std::max(texts.size(), keys.size()));
  Value places;
  if (dtype.is_string()) {
    const Value found = c.op("string.find", {c.value(0), text_table(texts, {count})});
    const Value is_none = c.op("less", {found, c.scalar(kInt64, 0)});
    places = c.op("where", {is_none, c.scalar(kInt64, static_cast<double>(count)), found});
  } else {
    places = c.op("lookup", {c.value(0), c.ints_constant(keys), c.ints_constant(slots),
                             c.scalar(kInt64, static_cast<double>(count))});
  }
  const Value all = placed(c, c.value(1), places, count);
  const Value row = c.op("take", {all, c.ints_constant(columns)}, {{"axis", 0}});
  return {c.reshape(row, {int64(1), int64(words.size())})};
}

DType cast_target(Context& c) {
  const std::string to = c.string_attr("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return kFloat32;
  if (to == "TO_INT64") return kInt64;
  if (to == "TO_STRING") return kString;
  c.bad(kBadAttribute,
        "attribute `cast_to` of `CastMap` is `{}`; expected TO_FLOAT, TO_INT64 or TO_STRING",
        printable(to));
}

Results convert_cast_map(Context& c) {
  check_map(c);
  const DType to = cast_target(c);
  const std::string form = c.string_attr("map_form", "DENSE");
  const int64_t slots = c.int_attr("max_map", 1);
  const Value keys = c.value(0), values = c.cast(c.value(1), to);
  if (form == "DENSE") {
    const Value order = c.op("argsort", {keys}, {{"axis", 0}, {"dtype", kInt64}});
    return {c.reshape(c.op("take", {values, order}, {{"axis", 0}}), {int64(1), c.shape(0)[0]})};
  }
  if (form != "SPARSE")
    c.bad(kBadAttribute, "attribute `map_form` of `CastMap` is `{}`; expected DENSE or SPARSE",
          printable(form));
  if (slots < 1 || slots > (int64_t{1} << 31))
    c.bad(kBadAttribute, "attribute `max_map` of `CastMap` is {}; expected at least 1", slots);
  // A key beyond the last slot is left out, one below 0 is an index out of range.
  const Value most = c.scalar(kInt64, static_cast<double>(slots)),
              beyond = c.scalar(kInt64, static_cast<double>(slots + 1));
  const Value is_negative = c.op("less", {keys, c.scalar(kInt64, 0)});
  const Value places = c.op("where", {is_negative, beyond, c.op("minimum", {keys, most})});
  return {c.reshape(placed(c, values, places, slots), {int64(1), int64(slots)})};
}

}  // namespace

std::vector<OperatorRow> map_rows() {
  const char* domain = "ai.onnx.ml";
  return {
      {"ZipMap", 1, 1, 1, convert_zip_map, "float32", "maps are pairs of tensors", domain},
      {"DictVectorizer", 1, 2, 2, convert_dict_vectorizer, "numbers, string",
       "maps are pairs of tensors", domain},
      {"CastMap", 1, 2, 2, convert_cast_map, "float32, string", "maps are pairs of tensors",
       domain},
  };
}

}  // namespace tenon::onnx
