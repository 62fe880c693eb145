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
  const Value kept = c.op("sum", {c.cast(is_kept, kInt64)}, {{"keepdims", true}});
  const Value is_none_kept = c.op("equal", {kept, c.scalar(kInt64, 0)});
  const auto joined = [&](const Value& a, const Value& b) {
    return c.op("concat", {make<graph::Tuple>(std::vector<Value>{a, b})}, {{"axis", 0}});
  };
  return convert_as(c, "Compress", 9,
                    {joined(words, text_table({""}, {1})), joined(is_kept, is_none_kept)})[0];
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

// ---- TfIdfVectorizer ----------------------------------------------------------------------------

// The n-grams of the pool as a tree: a step from a node by a symbol is key node * (symbols + 1) +
// symbol + 1. A symbol of -1 is none of the pool, a node of -1 nowhere: their keys are in no table.
struct GramTree {
  std::map<std::pair<int64_t, int64_t>, int64_t> steps;
  std::map<int64_t, int64_t> ends;  // node -> n-gram
  int64_t nodes = 1, symbols = 0;

  void add(const Ints& gram, int64_t number) {
    int64_t node = 0;
    for (const int64_t symbol : gram) {
      const auto [at, is_new] = steps.try_emplace({node, symbol}, nodes);
      if (is_new) ++nodes;
      node = at->second;
    }
    ends[node] = number;
  }
  Value step(Context& c, const Value& from, const Value& symbol) const {
    Ints keys, next;
    for (const auto& [step, to] : steps) {
      keys.push_back(step.first * (symbols + 1) + step.second + 1);
      next.push_back(to);
    }
    const auto number = [&](int64_t value) { return c.scalar(kInt64, static_cast<double>(value)); };
    const Value key = c.op(
        "add", {c.op("multiply", {from, number(symbols + 1)}), c.op("add", {symbol, number(1)})});
    return c.op("lookup", {key, c.ints_constant(keys), c.ints_constant(next), number(-1)});
  }
  // The n-gram that ends at a node; `count` where none does.
  Value gram_at(Context& c, const Value& node, int64_t count) const {
    Ints keys, values;
    for (const auto& [at, number] : ends) {
      keys.push_back(at);
      values.push_back(number);
    }
    return c.op("lookup", {node, c.ints_constant(keys), c.ints_constant(values),
                           c.scalar(kInt64, static_cast<double>(count))});
  }
};

// The elements of x as numbers of the pool's symbols, -1 where they are none; `pool` likewise.
Value numbered_symbols(Context& c, const Value& x, Ints& pool, int64_t& symbols) {
  if (c.dtype(0).is_string()) {
    const std::vector<std::string> texts = c.strings_attr("pool_strings", {});
    std::map<std::string, int64_t> numbers;
    std::vector<std::string> words;
    for (const std::string& text : texts) {
      const auto [at, is_new] = numbers.try_emplace(text, static_cast<int64_t>(words.size()));
      if (is_new) words.push_back(text);
      pool.push_back(at->second);
    }
    symbols = static_cast<int64_t>(words.size());
    return c.op("string.find", {x, text_table(words, {symbols})});
  }
  const Ints values = c.ints_attr("pool_int64s", {});
  std::map<int64_t, int64_t> numbers;
  for (const int64_t value : values) numbers.emplace(value, 0);
  Ints keys, places;
  for (auto& [value, number] : numbers) {
    number = symbols++;
    keys.push_back(value);
    places.push_back(number);
  }
  for (const int64_t value : values) pool.push_back(numbers.at(value));
  return c.op("lookup", {c.cast(x, kInt64), c.ints_constant(keys), c.ints_constant(places),
                         c.scalar(kInt64, -1)});
}

// The n-grams of the pool from `least` to `most` symbols.
GramTree grams_of(Context& c, const Ints& pool, const Ints& starts, int64_t least, int64_t most,
                  int64_t count) {
  GramTree tree;
  int64_t number = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const auto length = static_cast<int64_t>(n) + 1;
    const auto size = static_cast<int64_t>(pool.size());
    const int64_t end = n + 1 < starts.size() ? starts[n + 1] : size;
    if (starts[n] < 0 || starts[n] > end || end > size || (end - starts[n]) % length != 0)
      c.bad(kBadAttribute,
            "attribute `ngram_counts` of `TfIdfVectorizer` gives the {}-grams of a "
            "pool of {} the places {} to {}",
            length, size, starts[n], end);
    for (int64_t at = starts[n]; at < end; at += length, ++number)
      if (length >= least && length <= most)
        tree.add(Ints(pool.begin() + at, pool.begin() + at + length), number);
  }
  if (number != count)
    c.bad(kBadAttribute, "`TfIdfVectorizer` has {} n-grams and {} indexes of them", number, count);
  return tree;
}

// The n-gram at each place of each row: (rows, all places of all lengths and skips).
Value found_grams(Context& c, const GramTree& tree, const Value& symbols, int64_t least,
                  int64_t most, int64_t skips, int64_t count) {
  const Dims shape = *shaped(symbols)->shape;
  const int64_t reach = (most - 1) * (skips + 1);
  // Behind the last symbol stand ones that are none, so that every n-gram begins anywhere.
  const Value behind = c.op("full", {c.shape_value({shape[0], int64(reach)}), c.scalar(kInt64, -1)},
                            {{"dtype", kInt64}});
  const Value all = reach == 0
                        ? symbols
                        : c.op("concat", {make<graph::Tuple>(std::vector<Value>{symbols, behind})},
                               {{"axis", 1}});
  const auto from = [&](int64_t offset) {
    if (reach == 0) return all;
    return c.op("strided_slice", {all, c.shape_value({int64(1)}), c.shape_value({int64(offset)}),
                                  c.shape_value({graph::simplify_dim(shape[1] + offset)})});
  };
  const Value root = c.scalar(kInt64, 0);
  std::vector<Value> found;
  for (int64_t skip = 0; skip <= skips; ++skip) {
    Value node = tree.step(c, root, from(0));
    for (int64_t length = 1; length <= most; ++length) {
      if (length > 1) node = tree.step(c, node, from((length - 1) * (skip + 1)));
      // One symbol is the same at every skip.
      if (length >= least && (length > 1 || skip == 0))
        found.push_back(tree.gram_at(c, node, count));
    }
  }
  return found.size() == 1 ? found[0]
                           : c.op("concat", {make<graph::Tuple>(std::move(found))}, {{"axis", 1}});
}

Results convert_tf_idf(Context& c) {
  const std::string mode = c.string_attr("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    c.bad(kBadAttribute, "attribute `mode` of `TfIdfVectorizer` is `{}`; expected TF, IDF or TFIDF",
          printable(mode));
  const int64_t least = c.int_attr("min_gram_length"), most = c.int_attr("max_gram_length"),
                skips = c.int_attr("max_skip_count");
  const Ints starts = c.ints_attr("ngram_counts"), slots = c.ints_attr("ngram_indexes");
  const std::vector<double> weights = c.floats_attr("weights", {});
  const auto count = static_cast<int64_t>(slots.size());
  if (least < 1 || most < least || most > 64 || skips < 0 || skips > 1024)
    c.bad(
        kBadAttribute,
        "`TfIdfVectorizer` of {} to {} symbols and {} skips; expected at least 1, at most 64, and "
        "0 to 1024 skips",
        least, most, skips);
  if (!weights.empty() && weights.size() != slots.size())
    c.bad(kBadAttribute, "`TfIdfVectorizer` has {} weights of {} n-grams", weights.size(), count);
  if (c.ndim(0) != 1 && c.ndim(0) != 2)
    c.bad(kRankMismatch, "`TfIdfVectorizer` of a tensor of rank {}; expected 1 or 2", c.ndim(0));
  const bool is_row = c.ndim(0) == 1;
  const Value x = is_row ? c.reshape(c.value(0), {int64(1), c.shape(0)[0]}) : c.value(0);
  Ints pool;
  GramTree tree;
  int64_t symbols = 0;
  const Value numbers = numbered_symbols(c, x, pool, symbols);
  tree = grams_of(c, pool, starts, least, most, count);
  tree.symbols = symbols;
  const Value found = found_grams(c, tree, numbers, least, most, skips, count);
  // How often each n-gram is there; in the last column what is none.
  const Expr rows = shaped(x)->dim(0);
  const Value zeros =
      c.op("zeros", {c.shape_value({rows, int64(count + 1)})}, {{"dtype", kFloat32}});
  const Value ones = c.op("ones", {c.shape_value(*shaped(found)->shape)}, {{"dtype", kFloat32}});
  Value counts =
      c.op("scatter_elements", {zeros, found, ones}, {{"axis", 1}, {"reduction", "add"}});
  if (mode == "IDF") {
    const Value is_there = c.op("greater", {counts, c.scalar(kFloat32, 0)});
    counts = c.cast(is_there, kFloat32);
  }
  if (mode != "TF" && !weights.empty()) {
    std::vector<float> all(weights.begin(), weights.end());
    all.push_back(0);
    counts = c.op("multiply",
                  {counts, make<graph::Constant>(TensorData::of(kFloat32, {count + 1}, all))});
  }
  // The column of each n-gram is where its index says; a column of none is 0.
  Ints columns(count == 0 ? 0 : static_cast<size_t>(std::ranges::max(slots)) + 1, count);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0 || slots[i] > (int64_t{1} << 31))
      c.bad(kBadAttribute, "attribute `ngram_indexes` of `TfIdfVectorizer` has {}", slots[i]);
    int64_t& column = columns[static_cast<size_t>(slots[i])];
    if (column != count) unsupported("two n-grams of one index");
    column = static_cast<int64_t>(i);
  }
  const Value is_gram =
      c.op("less", {c.ints_constant(columns), c.scalar(kInt64, static_cast<double>(count))});
  Value out = c.op("take", {counts, c.ints_constant(columns)}, {{"axis", 1}});
  out = c.op("where", {is_gram, out, c.scalar(kFloat32, 0)});
  return {is_row ? c.reshape(out, {int64(static_cast<int64_t>(columns.size()))}) : out};
}

}  // namespace

std::vector<OperatorRow> text_rows() {
  return {
      {"RegexFullMatch", 20, 1, 1, convert_regex_full_match, "string"},
      {"StringNormalizer", 10, 1, 1, convert_string_normalizer, "string"},
      {"StringSplit", 20, 1, 1, convert_string_split, "string"},
      {"TfIdfVectorizer", 9, 1, 1, convert_tf_idf, "int32, int64, string"},
      {"StringConcat", 20, 2, 2, convert_string_concat, "string"},
  };
}

}  // namespace tenon::onnx
