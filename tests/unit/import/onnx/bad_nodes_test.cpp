// SPDX-License-Identifier: Apache-2.0
// Single nodes whose operands and attributes do not go together: each is refused with its text.
#include <gmock/gmock.h>

#include <map>
#include <variant>

#include "model_builder.h"

namespace tenon::onnx {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using Texts = std::vector<std::string>;
using AttributeValue = std::variant<int64_t, float, std::string, Ints, Floats, Texts>;

struct Operand {
  std::vector<std::string> dims;
  int type = 1;  // TensorProto's; 1: float
};

struct BadNode {
  const char* op;
  std::vector<Operand> operands;
  std::vector<std::pair<const char*, AttributeValue>> attributes;
  const char* says;
  int64_t opset = 24;
};

void set(pb::NodeProto& node, const char* name, const AttributeValue& value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  if (const auto* v = std::get_if<int64_t>(&value)) {
    a->set_type(pb::AttributeProto::INT);
    a->set_i(*v);
  } else if (const auto* v = std::get_if<float>(&value)) {
    a->set_type(pb::AttributeProto::FLOAT);
    a->set_f(*v);
  } else if (const auto* v = std::get_if<std::string>(&value)) {
    a->set_type(pb::AttributeProto::STRING);
    a->set_s(*v);
  } else if (const auto* v = std::get_if<Ints>(&value)) {
    a->set_type(pb::AttributeProto::INTS);
    for (const int64_t item : *v) a->add_ints(item);
  } else if (const auto* v = std::get_if<Floats>(&value)) {
    a->set_type(pb::AttributeProto::FLOATS);
    for (const float item : *v) a->add_floats(item);
  } else if (const auto* v = std::get_if<Texts>(&value)) {
    a->set_type(pb::AttributeProto::STRINGS);
    for (const std::string& item : *v) a->add_strings(item);
  }
}

void expect_refused(const char* domain, int64_t version, const std::vector<BadNode>& nodes) {
  for (const BadNode& bad : nodes) {
    SCOPED_TRACE(std::string(bad.op) + ": " + bad.says);
    ModelBuilder m(bad.opset);
    if (*domain) m.import_opset(domain, version);
    std::vector<std::string> names;
    for (const Operand& operand : bad.operands) {
      names.push_back("x" + std::to_string(names.size()));
      m.input(names.back(), operand.dims, operand.type);
    }
    pb::NodeProto& node = m.node(bad.op, names, {"y"}, "n");
    node.set_domain(domain);
    for (const auto& [name, value] : bad.attributes) set(node, name, value);
    m.output("y");
    EXPECT_THAT(error_of(m), testing::HasSubstr(bad.says));
  }
}

constexpr int kUInt8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9;

TEST(BadNodes, OfMachineLearning) {
  const std::vector<Operand> x = {{{"2", "3"}}};
  const Ints one_tree = {0, 0, 0};
  const auto tree = [&](const Ints& ids, const Ints& holds, const Ints& fails, const Texts& modes,
                        const char* says) {
    return BadNode{"TreeEnsembleRegressor",
                   x,
                   {{"nodes_treeids", one_tree},
                    {"nodes_nodeids", ids},
                    {"nodes_featureids", Ints{0, 0, 0}},
                    {"nodes_truenodeids", holds},
                    {"nodes_falsenodeids", fails},
                    {"nodes_modes", modes},
                    {"nodes_values", Floats{0.5F, 0, 0}},
                    {"target_treeids", Ints{0}},
                    {"target_nodeids", Ints{1}},
                    {"target_ids", Ints{0}},
                    {"target_weights", Floats{1}}},
                   says};
  };
  const Texts stump = {"BRANCH_LEQ", "LEAF", "LEAF"};
  expect_refused(
      "ai.onnx.ml", 3,
      {{"Scaler",
        x,
        {{"offset", Floats{1, 2}}},
        "attribute `offset` of `Scaler` has 2 elements; expected 1 or 3"},
       {"Normalizer",
        x,
        {{"norm", "L7"}},
        "attribute `norm` of `Normalizer` is `L7`; expected MAX, L1 or L2"},
       {"Normalizer", {{{"2", "3", "4"}}}, {}, "a tensor of rank 3; expected 1 or 2"},
       {"Imputer", x, {}, "`Imputer` of dtype float32 has no attribute `imputed_value_floats`"},
       {"FeatureVectorizer",
        x,
        {{"inputdimensions", Ints{3, 1}}},
        "attribute `inputdimensions` has 2 elements; expected 1"},
       {"FeatureVectorizer",
        x,
        {{"inputdimensions", Ints{4}}},
        "operand 0 has 3 features; attribute `inputdimensions` has 4"},
       {"LabelEncoder",
        {{{"2"}, kInt64}},
        {{"keys_int64s", Ints{1, 2}}, {"values_floats", Floats{1}}},
        "`LabelEncoder` has 2 keys and 1 values"},
       {"LabelEncoder",
        x,
        {{"keys_int64s", Ints{1}}, {"values_floats", Floats{1}}},
        "`LabelEncoder` of dtype float32 has keys of dtype int64"},
       {"LabelEncoder",
        x,
        {{"values_floats", Floats{1}}},
        "`LabelEncoder` has no attribute `keys_"},
       {"LinearRegressor",
        x,
        {{"coefficients", Floats{1, 2, 3}}, {"targets", int64_t{2}}},
        "`LinearRegressor` has 3 coefficients for 2 targets"},
       {"LinearRegressor",
        x,
        {{"coefficients", Floats{1, 2, 3}}, {"intercepts", Floats{1, 2}}},
        "`LinearRegressor` has 2 intercepts for 1 targets"},
       {"LinearRegressor",
        x,
        {{"coefficients", Floats{1, 2, 3}}, {"post_transform", "WISH"}},
        "attribute `post_transform` of `LinearRegressor` is `WISH`; expected NONE, SOFTMAX, "
        "LOGISTIC, SOFTMAX_ZERO or PROBIT"},
       {"LinearRegressor",
        {{{"2", "3", "1"}}},
        {{"coefficients", Floats{1, 2, 3}}},
        "features of rank 3; expected 1 or 2"},
       {"LinearClassifier",
        x,
        {{"coefficients", Floats{1, 2, 3}}, {"classlabels_ints", Ints{4}}},
        "a single label"},
       {"LinearClassifier",
        x,
        {{"coefficients", Floats(9)},
         {"classlabels_ints", Ints{4, 5, 6}},
         {"intercepts", Floats{1, 2}}},
        "`LinearClassifier` has 2 intercepts for 3 labels"},
       {"SVMRegressor",
        x,
        {{"kernel_type", "CUBE"}},
        "attribute `kernel_type` of `SVMRegressor` is `CUBE`; expected LINEAR, POLY, RBF or "
        "SIGMOID"},
       {"SVMRegressor",
        x,
        {{"kernel_params", Floats{1, 2}}},
        "attribute `kernel_params` of `SVMRegressor` has 2 elements; expected 3"},
       {"SVMRegressor",
        x,
        {{"rho", Floats{1, 2}}},
        "attribute `rho` of `SVMRegressor` has 2 elements; expected 1"},
       {"SVMRegressor",
        x,
        {{"rho", Floats{1}},
         {"n_supports", int64_t{2}},
         {"support_vectors", Floats(6)},
         {"coefficients", Floats{1}}},
        "`SVMRegressor` has 1 coefficients for 2 support vectors"},
       {"SVMRegressor",
        x,
        {{"rho", Floats{1}},
         {"n_supports", int64_t{4}},
         {"support_vectors", Floats(6)},
         {"kernel_type", "RBF"}},
        "`SVMRegressor` has 6 numbers for 4 support vectors"},
       {"TreeEnsembleRegressor",
        x,
        {{"n_targets", int64_t{0}}},
        "attribute `n_targets` of `TreeEnsembleRegressor` is 0; expected at least 1"},
       tree({0, 1, 1}, {1, 0, 0}, {2, 0, 0}, stump,
            "tree 0 of `TreeEnsembleRegressor` has node 1 twice"),
       tree({0, 1, 2}, {1, 0, 0}, {7, 0, 0}, stump,
            "tree 0 of `TreeEnsembleRegressor` has no node 7"),
       tree({0, 1, 2}, {0, 0, 0}, {2, 0, 0}, stump,
            "node 0 of a tree of `TreeEnsembleRegressor` is below itself"),
       tree({0, 1, 2}, {1, 0, 0}, {2, 0, 0}, {"BRANCH_LIKE", "LEAF", "LEAF"},
            "attribute `nodes_modes` of `TreeEnsembleRegressor` has `BRANCH_LIKE`; expected "
            "BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ or LEAF"),
       {"TreeEnsembleRegressor",
        x,
        {{"aggregate_function", "MOST"}},
        "attribute `aggregate_function` of `TreeEnsembleRegressor` is `MOST`; expected SUM, "
        "AVERAGE, MIN or MAX"}});
}

TEST(BadNodes, Quantised) {
  const Operand scale{{}}, zero{{}, kUInt8}, bytes{{"2", "4"}, kUInt8};
  expect_refused("", 0,
                 {{"QuantizeLinear",
                   {{{"2", "4"}}, {{"2", "2"}}},
                   {{"block_size", int64_t{-1}}},
                   "attribute `block_size` of `QuantizeLinear` is -1; expected a size"},
                  {"QuantizeLinear",
                   {{{"2", "4"}}, {{"2", "2"}}},
                   {},
                   "the scale of `QuantizeLinear` has rank 2; expected"},
                  {"QuantizeLinear",
                   {{{"2", "4"}}, scale, zero},
                   {{"output_dtype", int64_t{kInt8}}},
                   "has a zero point of type"},
                  {"QuantizeLinear",
                   {{{"2", "4"}}, scale},
                   {{"precision", int64_t{kInt32}}},
                   "attribute `precision` of `QuantizeLinear` is"}});
  expect_refused("com.microsoft", 1,
                 {{"QLinearAdd",
                   {bytes, {{}, kInt32}, zero, bytes, scale, zero, scale, zero},
                   {},
                   "operand 1 of `QLinearAdd`, a scale, has dtype int32; expected a float"},
                  {"QLinearConcat",
                   {scale, zero, bytes, scale, zero, bytes},
                   {{"axis", int64_t{0}}},
                   "`QLinearConcat` has 6 operands; expected 2 and 3 for each part"},
                  {"QLinearGlobalAveragePool",
                   {bytes, scale, zero, scale, zero},
                   {},
                   "operand 0 of `QLinearGlobalAveragePool` has rank 2; expected at least 3"},
                  {"QGemm",
                   {{{"4"}, kUInt8}, scale, zero, {{"4", "2"}, kUInt8}, scale, zero},
                   {},
                   "operand 0 of `QGemm` has rank 1; expected 2"}});
}

TEST(BadNodes, OfQuantisedRecurrences) {
  const Operand x = {{"5", "1", "4"}}, w = {{"1", "4", "12"}, kInt8}, r = {{"1", "3", "12"}, kInt8},
                b = {{"1", "24"}}, lengths = {{"1"}, kInt32}, state = {{"1", "1", "3"}},
                peepholes = {{"1", "9"}}, one = {{"1"}}, zero = {{"1"}, kInt8};
  const auto operands = [&](const std::map<size_t, Operand>& other) {
    std::vector<Operand> all = {x, w, r, b, lengths, state, state, peepholes, one, zero, one, zero};
    for (const auto& [i, operand] : other) all[i] = operand;
    return all;
  };
  const auto bad = [&](const std::map<size_t, Operand>& other, const char* says) {
    return BadNode{"DynamicQuantizeLSTM", operands(other), {{"hidden_size", int64_t{3}}}, says};
  };
  expect_refused(
      "com.microsoft", 1,
      {bad({{1, {{"4", "12"}, kInt8}}},
           "operand 1 of `DynamicQuantizeLSTM` has rank 2; expected 3"),
       bad({{1, {{"1", "4", "12"}}}},
           "operand 1 of `DynamicQuantizeLSTM` has dtype float32; expected int8 or uint8"),
       bad({{1, {{"1", "5", "12"}, kInt8}}},
           "operand 1 of `DynamicQuantizeLSTM` has shape (1, 5, 12); expected (1, 4, 12)"),
       bad({{2, {{"1", "4", "16"}, kInt8}}},
           "attribute `hidden_size` of `DynamicQuantizeLSTM` is 3; operand R has 4 units"),
       bad({{8, {{"3"}}}},
           "operand 8 of `DynamicQuantizeLSTM`, a scale or zero point, has shape (3,); expected "
           "one "
           "for each of 1 directions or of their 12 columns"),
       bad({{9, {{"1"}, kUInt8}}},
           "operand 9 of `DynamicQuantizeLSTM`, a zero point, has dtype uint8; its weights have "
           "int8")});
}

TEST(BadNodes, OfQuantisedAttention) {
  const auto bad = [](const Operand& x, const Operand& w, const std::vector<Operand>& behind,
                      const char* says) {
    std::vector<Operand> all = {x, w, {{"6"}}, {{}}, {{}}};
    all.insert(all.end(), behind.begin(), behind.end());
    return BadNode{"QAttention", all, {{"num_heads", int64_t{2}}}, says};
  };
  const Operand x = {{"1", "3", "2"}, kUInt8}, w = {{"2", "6"}, kInt8};
  expect_refused("com.microsoft", 1,
                 {bad({{"1", "3", "2"}}, w, {},
                      "operand 0 of `QAttention` has dtype float32; expected int8 or uint8"),
                  bad(x, {{"2", "7"}, kInt8}, {},
                      "`QAttention` has weights of 7 columns for queries, keys and values"),
                  bad(x, w, {{{"1"}, kInt32}, {{}, kUInt8}, {{}, kInt8}, {{"2", "1", "2", "5"}}},
                      "the past of `QAttention` has rank 4; expected 5")});
}

TEST(BadNodes, OfContribForms) {
  const Operand table = {{"8", "16"}, kUInt8}, at = {{"2"}, kInt32}, scales = {{"8", "2"}};
  const auto gather = [&](const std::vector<std::pair<const char*, AttributeValue>>& attributes,
                          const char* says) {
    return BadNode{"GatherBlockQuantized", {table, at, scales}, attributes, says};
  };
  expect_refused(
      "com.microsoft", 1,
      {gather(
           {{"block_size", int64_t{24}}},
           "attribute `block_size` of `GatherBlockQuantized` is 24; expected a power of 2 from 16"),
       gather({{"bits", int64_t{3}}},
              "attribute `bits` of `GatherBlockQuantized` is 3; expected 4 or 8"),
       gather({{"gather_axis", int64_t{1}}},
              "`GatherBlockQuantized` gathers along axis 1, which has the blocks"),
       gather({{"gather_axis", int64_t{1}}, {"quantize_axis", int64_t{0}}},
              "`GatherBlockQuantized` of numbers in halves of bytes has blocks along axis 0; "
              "expected the last"),
       {"FusedConv",
        {{{"1", "2", "5"}}, {{"3", "2", "1"}}},
        {{"activation", std::string("Mish")}},
        "activation `Mish`"}});
}

TEST(BadNodes, OfTransformers) {
  expect_refused("com.microsoft", 1,
                 {{"EmbedLayerNormalization",
                   {{{"4"}, kInt32},
                    {{"4"}, kInt32},
                    {{"9", "8"}},
                    {{"5", "8"}},
                    {{"2", "8"}},
                    {{"8"}},
                    {{"8"}}},
                   {},
                   "operand 0 of `EmbedLayerNormalization` has rank 1; expected 2"}});
  expect_refused(
      "", 0,
      {{"LinearAttention",
        {{{"2", "4"}}, {{"2", "4"}}, {{"2", "4"}}},
        {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}, {"update_rule", "linear"}},
        "operand 0 of `LinearAttention` has rank 2; expected",
        27}});
}

TEST(BadNodes, OfShapesAndImages) {
  const std::vector<Operand> x = {{{"2", "3"}}};
  expect_refused(
      "", 0,
      {{"Trilu",
        {{{"2", "3"}}, {{"2"}, kInt64}},
        {},
        "operand `k` of `Trilu` has 2 elements; expected 1"},
       {"Trilu", {{{"3"}}, {{}, kInt64}}, {}, "`Trilu` of a tensor of rank 1; expected 2 or more"},
       {"TopK",
        {{{"2", "3"}}, {{"2"}, kInt64}},
        {},
        "operand `K` of `TopK` has 2 elements; expected 1"},
       {"CumSum",
        {{{"2", "3"}}, {{"2"}, kInt64}},
        {},
        "operand `axis` of `CumSum` has 2 elements; expected 1"},
       {"ReduceSum",
        {{{"2", "3"}}, {{"3"}, kInt64}},
        {},
        "operand `axes` of `ReduceSum` has 3 axes for a tensor of rank 2"},
       {"ReduceSum",
        {{{"2", "2", "2", "2", "2", "2"}}, {{"3"}, kInt64}},
        {},
        "operand `axes` known only at run time, which may be one of 120 lists and more"},
       {"Det", {{{"3"}}}, {}, "`Det` of a tensor of rank 1; expected at least 2"},
       {"Cast",
        x,
        {{"to", int64_t{24}}, {"round_mode", "away"}},
        "attribute `round_mode` of `Cast` is `away`; expected up, down or nearest"},
       {"If", {{{"2"}, kBool}}, {}, "`If` has no attribute `then_branch`, a graph"},
       {"ConstantOfShape", {{{"2"}, kInt64}}, {{"value", int64_t{1}}}, "expected a tensor"}});
}

TEST(BadNodes, OfTexts) {
  const std::vector<Operand> words = {{{"3"}, kString}};
  const auto tf_idf = [&](const std::vector<std::pair<const char*, AttributeValue>>& changed,
                          const char* says) {
    BadNode node{"TfIdfVectorizer", words, {}, says};
    std::map<std::string, AttributeValue> all = {{"mode", "TF"},
                                                 {"min_gram_length", int64_t{1}},
                                                 {"max_gram_length", int64_t{1}},
                                                 {"max_skip_count", int64_t{0}},
                                                 {"ngram_counts", Ints{0}},
                                                 {"ngram_indexes", Ints{0, 1}},
                                                 {"pool_strings", Texts{"a", "b"}}};
    for (const auto& [name, value] : changed) all[name] = value;
    for (const char* name : {"mode", "min_gram_length", "max_gram_length", "max_skip_count",
                             "ngram_counts", "ngram_indexes", "pool_strings", "weights"})
      if (all.contains(name)) node.attributes.emplace_back(name, all.at(name));
    return node;
  };
  expect_refused(
      "", 0,
      {{"StringConcat",
        {{{"3"}, kString}, {{"3"}}},
        {},
        "operand 1 of `StringConcat` has dtype float32; expected string"},
       {"Less",
        {{{"3"}, kString}, {{"3"}, kString}},
        {},
        "operands of `less` have dtype string; expected a number"},
       {"StringNormalizer",
        words,
        {{"case_change_action", "TITLE"}},
        "attribute `case_change_action` of `StringNormalizer` is `TITLE`; expected LOWER, UPPER or "
        "NONE"},
       {"StringNormalizer",
        {{{}, kString}},
        {{"stopwords", Texts{"a"}}},
        "`StringNormalizer` of a tensor of rank 0; expected 1 or 2"},
       {"StringNormalizer",
        {{{"2", "3"}, kString}},
        {{"stopwords", Texts{"a"}}},
        "the first of two dimensions of words is not 1"},
       tf_idf({{"mode", "FT"}},
              "attribute `mode` of `TfIdfVectorizer` is `FT`; expected TF, IDF or TFIDF"),
       tf_idf({{"min_gram_length", int64_t{2}}},
              "`TfIdfVectorizer` of 2 to 1 symbols and 0 skips; expected at least 1, at most 64"),
       tf_idf({{"weights", Floats{1}}}, "`TfIdfVectorizer` has 1 weights of 2 n-grams"),
       tf_idf({{"ngram_counts", Ints{0, 1}}},
              "attribute `ngram_counts` of `TfIdfVectorizer` gives the 2-grams of a pool of 2 the "
              "places 1 to 2"),
       tf_idf({{"ngram_indexes", Ints{0}}},
              "`TfIdfVectorizer` has 2 n-grams and 1 indexes of them"),
       tf_idf({{"ngram_indexes", Ints{0, -1}}},
              "attribute `ngram_indexes` of `TfIdfVectorizer` has -1"),
       tf_idf({{"ngram_indexes", Ints{1, 1}}}, "two n-grams of one index")});
  expect_refused("ai.onnx.ml", 3,
                 {{"LabelEncoder", words, {}, "`LabelEncoder` has no attribute `keys_...`"},
                  {"OneHotEncoder",
                   words,
                   {{"cats_int64s", Ints{1}}},
                   "`OneHotEncoder` of dtype string has no categories of that type"}});
}

TEST(BadNodes, OfSupportVectors) {
  const std::vector<Operand> x = {{{"2", "3"}}};
  const auto svc = [&](const Ints& per_class, size_t coefficients, const Floats& rho,
                       const Floats& sigmoids, const char* says) {
    return BadNode{"SVMClassifier",
                   x,
                   {{"classlabels_ints", Ints{0, 1}},
                    {"vectors_per_class", per_class},
                    {"coefficients", Floats(coefficients, 1.0F)},
                    {"support_vectors", Floats(6, 1.0F)},
                    {"rho", rho},
                    {"prob_a", sigmoids},
                    {"prob_b", sigmoids},
                    {"kernel_type", "LINEAR"}},
                   says};
  };
  expect_refused(
      "ai.onnx.ml", 1,
      {svc({1, -1}, 2, {0}, {}, "attribute `vectors_per_class` of `SVMClassifier` has -1"),
       svc({1, 1}, 3, {0}, {}, "`SVMClassifier` has 3 coefficients for 2 vectors of 2 classes"),
       svc({1, 1}, 2, {}, {}, "`SVMClassifier` has 2 classes, 2 labels and 0 values `rho`"),
       svc({1, 1}, 2, {0}, {1, 2},
           "`SVMClassifier` has 2 and 2 probability coefficients for 1 pairs"),
       svc({}, 6, {}, {}, "`SVMClassifier` has no attribute `rho`"),
       svc({}, 6, {0}, {1}, "probabilities without support vectors")});
}

TEST(BadNodes, OfMaps) {
  const std::vector<Operand> map = {{{"n"}, kInt64}, {{"n"}}};
  expect_refused(
      "ai.onnx.ml", 1,
      {{"ZipMap",
        {{{"2", "3", "4"}}},
        {{"classlabels_int64s", Ints{1}}},
        "`ZipMap` of a tensor of rank 3; expected 1 or 2"},
       {"ZipMap",
        {{{"2", "3"}}},
        {},
        "`ZipMap` has 0 and 0 keys as `classlabels_strings` and `classlabels_int64s`; expected one "
        "of them"},
       {"ZipMap",
        {{{"2", "3"}}},
        {{"classlabels_int64s", Ints{1}}},
        "the columns of `ZipMap` are not as many as its 1 keys"},
       {"DictVectorizer",
        map,
        {{"string_vocabulary", Texts{"a"}}},
        "`DictVectorizer` of a map of int64 has a vocabulary of string"},
       {"CastMap", {{{"2", "2"}, kInt64}, {{"2"}}}, {}, "keys of a map of rank 2; expected 1"},
       {"CastMap", {{{"2"}, kInt64}, {{"3"}}}, {}, "a map has not as many values as keys"},
       {"CastMap",
        map,
        {{"cast_to", "TO_BOOL"}},
        "attribute `cast_to` of `CastMap` is `TO_BOOL`; expected TO_FLOAT, TO_INT64 or TO_STRING"},
       {"CastMap",
        map,
        {{"map_form", "HEAP"}},
        "attribute `map_form` of `CastMap` is `HEAP`; expected DENSE or SPARSE"},
       {"CastMap",
        map,
        {{"map_form", "SPARSE"}, {"max_map", int64_t{0}}},
        "attribute `max_map` of `CastMap` is 0; expected at least 1"}});
}

TEST(BadNodes, OfImagesAndSignals) {
  const Operand numbers = {{"2"}, kInt64};
  expect_refused(
      "", 24,
      {{"Upsample",
        {{{"2", "3"}}},
        {{"height_scale", 2.0F}, {"width_scale", 2.0F}},
        "`Upsample` of a tensor of rank 2; expected 4",
        1},
       {"Upsample",
        {{{"1", "1", "2", "3"}}},
        {},
        "`Upsample` has no attribute `height_scale`, a float",
        1},
       {"ImageDecoder",
        {{{"8"}, kUInt8}},
        {{"pixel_format", "CMYK"}},
        "attribute `pixel_format` of `ImageDecoder` is `CMYK`; expected RGB, BGR or Grayscale"},
       {"Col2Im",
        {{{"1", "5", "5"}}, numbers, numbers},
        {{"strides", Ints{0, 1}}},
        "`Col2Im` has a stride of 0"},
       {"HannWindow", {{{}, kInt64}}, {{"output_datatype", int64_t{99}}}, "output_datatype 99"},
       {"QuantizeLinear",
        {{{"4"}}, {{}}, {{}, kInt8}},
        {{"output_dtype", int64_t{kUInt8}}},
        "`QuantizeLinear` with output_dtype uint8 has a zero point of type int8"},
       {"TfIdfVectorizer",
        {{{"2"}, kInt64}},
        {{"mode", "TF"},
         {"min_gram_length", int64_t{0}},
         {"max_gram_length", int64_t{1}},
         {"max_skip_count", int64_t{0}},
         {"ngram_counts", Ints{0}},
         {"ngram_indexes", Ints{0}},
         {"pool_int64s", Ints{1}}},
        "`TfIdfVectorizer` of 0 to 1 symbols and 0 skips; expected at least 1, at most 64"},
       {"TfIdfVectorizer",
        {{{"2", "2", "2"}, kInt64}},
        {{"mode", "TF"},
         {"min_gram_length", int64_t{1}},
         {"max_gram_length", int64_t{1}},
         {"max_skip_count", int64_t{0}},
         {"ngram_counts", Ints{0}},
         {"ngram_indexes", Ints{0}},
         {"pool_int64s", Ints{1}}},
        "`TfIdfVectorizer` of a tensor of rank 3; expected 1 or 2"}});
}

TEST(BadNodes, OfAttention) {
  const Operand rows = {{"1", "2", "8"}}, total = {{}, kInt32}, lengths = {{"1"}, kInt32};
  const std::vector<Operand> groups = {
      rows, rows, rows, {{"1", "2", "0", "4"}}, {{"1", "2", "0", "4"}}, lengths, total};
  const auto group = [&](std::vector<std::pair<const char*, AttributeValue>> more,
                         const char* says) {
    more.insert(more.end(), {{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
    return BadNode{"GroupQueryAttention", groups, more, says};
  };
  expect_refused("com.microsoft", 1,
                 {group({{"k_quant_type", "PER_TENSOR"}}, "a quantised cache"),
                  group({{"sliding_window_cache", int64_t{1}}}, "sliding_window_cache"),
                  group({{"qk_output", int64_t{1}}}, "qk_output"),
                  {"GroupQueryAttention",
                   {rows,
                    rows,
                    rows,
                    {{"1", "2", "0", "4"}},
                    {{"1", "2", "0", "4"}},
                    lengths,
                    {{"2"}, kInt32}},
                   {{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}},
                   "`GroupQueryAttention` has 2 total lengths; expected 1"},
                  {"Attention",
                   {rows, {{"8", "7"}}, {{"7"}}},
                   {{"num_heads", int64_t{2}}},
                   "`Attention` has weights of 7 columns for queries, keys and values"},
                  {"Attention",
                   {rows, {{"8", "24"}}, {{"24"}}},
                   {{"num_heads", int64_t{2}}, {"past_present_share_buffer", int64_t{1}}},
                   "past_present_share_buffer"},
                  {"MatMulNBits",
                   {rows, {{"4", "1", "16"}, kUInt8}, {{"4"}}},
                   {{"N", int64_t{4}},
                    {"K", int64_t{8}},
                    {"block_size", int64_t{32}},
                    {"weight_prepacked", int64_t{1}}},
                   "weights packed for a device"}});
  expect_refused("ai.onnx.preview", 1,
                 {{"FlexAttention",
                   {rows, rows, rows},
                   {},
                   "operand 0 of `FlexAttention` has rank 3; expected 4"}});
}

TEST(BadNodes, OfClassifiers) {
  const std::vector<Operand> x = {{{"2", "3"}}};
  expect_refused("ai.onnx.ml", 5,
                 {{"LinearClassifier",
                   x,
                   {{"coefficients", Floats{1, 2, 3}}},
                   "`LinearClassifier` has 0 and 0 labels as `classlabels_ints` and "
                   "`classlabels_strings`; expected one of them"},
                  {"TreeEnsemble",
                   x,
                   {{"n_targets", int64_t{0}}},
                   "attribute `n_targets` of `TreeEnsemble` is 0; expected at least 1"},
                  {"TreeEnsemble",
                   x,
                   {{"aggregate_function", int64_t{9}}},
                   "attribute `aggregate_function` of `TreeEnsemble` has 9; expected 0 to 3"}});
}

TEST(BadNodes, OfQuantisedConvolutions) {
  const Operand number = {{}}, zero = {{}, kUInt8};
  expect_refused(
      "", 24,
      {{"QLinearConv",
        {{{"1", "1", "4", "4"}, kUInt8},
         number,
         zero,
         {{"2", "1", "3", "3"}, kUInt8},
         number,
         zero,
         number,
         zero,
         {{"2"}}},
        {},
        "the bias of `QLinearConv` has dtype float32 and rank 1; expected int32 and 1"}});
}

TEST(BadNodes, MapsGoToVectors) {
  ModelBuilder m;
  m.import_opset("ai.onnx.ml", 1);
  m.input("x", {"2", "2"});
  pb::NodeProto& zip = m.node("ZipMap", {"x"}, {"z"}, "zip");
  zip.set_domain("ai.onnx.ml");
  set(zip, "classlabels_int64s", Ints{1, 2});
  m.node("Identity", {"z"}, {"y"}, "n");
  m.output("y");
  EXPECT_THAT(
      error_of(m),
      testing::HasSubstr("operand `z` of `Identity` is a map; expected DictVectorizer or CastMap"));
}

}  // namespace
}  // namespace tenon::onnx
