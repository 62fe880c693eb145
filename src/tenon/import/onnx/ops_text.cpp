// SPDX-License-Identifier: Apache-2.0
// Operators on the contents of strings.
#include <algorithm>
#include <map>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/import/onnx/text.h"
#include "tenon/ir/text_constant.h"

namespace tenon::onnx {

Value text_table(const std::vector<std::string>& texts, const Ints& shape) {
  return make<graph::Constant>(tensor_of_texts(shape, texts));
}

namespace {

void check_text(Context& c, size_t i) {
  if (!c.dtype(i).is_string())
    c.bad(kDTypeMismatch, "operand {} of `{}` has dtype {}; expected string", i, c.node().op_type,
          c.dtype(i).str());
}

Results convert_string_concat(Context& c) {
  check_text(c, 0);
  check_text(c, 1);
  Value x = c.value(0), y = c.value(1);
  if (!arith::proves_equal(c.shape(0), c.shape(1))) {
    // The shape of both together is that of a comparison.
    const Value shape = c.shape_value(*shaped(c.op("equal", {x, y}))->shape);
    x = c.op("broadcast_to", {x, shape});
    y = c.op("broadcast_to", {y, shape});
  }
  return {c.op("string.concat", {x, y})};
}

Results convert_regex_full_match(Context& c) {
  check_text(c, 0);
  const std::string pattern = c.string_attr("pattern", "");
  return {c.op("string.regex_full_match", {c.value(0)}, {{"pattern", pattern}})};
}

Results convert_string_split(Context& c) {
  check_text(c, 0);
  const Value x = c.value(0);
  const Attrs attrs{{"delimiter", c.string_attr("delimiter", "")},
                    {"max_splits", c.int_attr("maxsplit", -1)}};
  const Value counts = c.op("string.split_counts", {x}, attrs);
  // As many as the text with most of them has; 0 where there is no text.
  const Value most = c.op("maximum", {c.op("max", {counts}), c.scalar(kInt64, 0)});
  const Dims parts = c.numbers_of(most, "number of parts");
  return {c.op("string.split", {x, c.prim(parts[0])}, attrs), counts};
}

// ---- StringNormalizer ---------------------------------------------------------------------------

Value in_case(Context& c, const std::string& action, const Value& x) {
  if (action == "NONE") return x;
  return c.op(action == "LOWER" ? "string.lower" : "string.upper", {x});
}

// Whether each word, as it is given, is none of the stop words.
Value is_no_stop_word(Context& c, const Value& words, const std::string& action,
                      const std::vector<std::string>& stop_words) {
  Value table = text_table(stop_words, {static_cast<int64_t>(stop_words.size())});
  Value compared = words;
  if (!c.flag_attr("is_case_sensitive")) {
    const std::string common = action == "UPPER" ? action : "LOWER";
    table = in_case(c, common, table);
    compared = in_case(c, common, words);
  }
  return c.op("less", {c.op("string.find", {compared, table}), c.scalar(kInt64, 0)});
}

// The words that are kept, in their order; an empty one where none is.
Value kept_words(Context& c, const Value& words, const Value& is_kept) {
  const Value places = c.op("cumsum", {c.cast(is_kept, kInt64)}, {{"axis", 0}});
  const Value kept = c.op("sum", {c.cast(is_kept, kInt64)});
  const Expr count = c.numbers_of(kept, "number of words")[0];
  // Each word that is kept goes to its place, all others behind the last.
  const Expr length = arith::simplify(max(count, int64(1)));
  const Value none =
      c.op("full", {c.shape_value({length + 1}), text_table({""}, {})}, {{"dtype", kString}});
  const Value behind = c.op("full", {c.shape_value({}), c.prim(length)}, {{"dtype", kInt64}});
  const Value place =
      c.op("where", {is_kept, c.op("subtract", {places, c.scalar(kInt64, 1)}), behind});
  const Value all = c.op("scatter_elements", {none, place, words}, {{"axis", 0}});
  return c.op("strided_slice",
              {all, c.shape_value({int64(0)}), c.shape_value({int64(0)}), c.shape_value({length})});
}

Results convert_string_normalizer(Context& c) {
  c.ignore({"locale", "is_case_sensitive"});  // of stop words; letters change in every locale alike
  check_text(c, 0);
  const std::string action = c.string_attr("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    c.bad(kBadAttribute,
          "attribute `case_change_action` of `StringNormalizer` is `{}`; expected LOWER, UPPER or "
          "NONE",
          printable(action));
  const std::vector<std::string> stop_words = c.strings_attr("stopwords", {});
  if (stop_words.empty()) return {in_case(c, action, c.value(0))};
  const int64_t ndim = c.ndim(0);
  if (ndim != 1 && ndim != 2)
    c.bad(kRankMismatch, "`StringNormalizer` of a tensor of rank {}; expected 1 or 2", ndim);
  if (ndim == 2)
    c.require(eq(c.shape(0)[0], int64(1)), kShapeMismatch,
              "the first of two dimensions of words is not 1");
  const Value words = ndim == 1 ? c.value(0) : c.reshape(c.value(0), {c.shape(0)[1]});
  const Value kept = kept_words(c, words, is_no_stop_word(c, words, action, stop_words));
  const Value result = in_case(c, action, kept);
  if (ndim == 1) return {result};
  return {c.reshape(result, {int64(1), shaped(result)->dim(0)})};
}

}  // namespace

std::vector<OperatorRow> text_rows() {
  return {
      {"RegexFullMatch", 20, 1, 1, convert_regex_full_match, "string"},
      {"StringNormalizer", 10, 1, 1, convert_string_normalizer, "string"},
      {"StringSplit", 20, 1, 1, convert_string_split, "string"},
      {"StringConcat", 20, 2, 2, convert_string_concat, "string"},
  };
}

}  // namespace tenon::onnx
