// SPDX-License-Identifier: Apache-2.0
// The family of attention: what is refused, and symbolic lengths. Values are cases of tests/onnx/.
#include "model_builder.h"

namespace tenon::onnx {
namespace {

using Node = pb::NodeProto;
using More = std::function<void(ModelBuilder&, Node&)>;

void set_text(Node& node, const std::string& name, const std::string& value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(pb::AttributeProto::STRING);
  a->set_s(value);
}

/// One node whose inputs `a`, `b`, ... have these shapes; no shape: left out.
ModelBuilder one(const std::string& op, const std::vector<std::vector<std::string>>& shapes,
                 const More& more = {}, const std::string& domain = "", int64_t opset = 27) {
  ModelBuilder m(opset);
  m.import_opset("com.microsoft", 1);
  std::vector<std::string> inputs;
  for (const auto& shape : shapes) {
    inputs.push_back(shape.empty() ? "" : std::string(1, static_cast<char>('a' + inputs.size())));
    if (!shape.empty()) m.input(inputs.back(), shape);
  }
  Node& node = m.node(op, inputs, {"y"}, "n");
  node.set_domain(domain);
  if (more) more(m, node);
  m.output("y");
  return m;
}

std::string error_with(const std::string& op, const std::vector<std::vector<std::string>>& shapes,
                       const More& more = {}, const std::string& domain = "") {
  return error_of(one(op, shapes, more, domain));
}

More ints(const std::vector<std::pair<std::string, int64_t>>& attributes) {
  return [attributes](ModelBuilder&, Node& node) {
    for (const auto& [name, value] : attributes) set_int(node, name, value);
  };
}

void expect_says(const std::string& error, const std::string& words) {
  EXPECT_NE(error.find(words), std::string::npos) << error;
}

const std::vector<std::string> kHeads = {"2", "4", "3", "8"};

TEST(Attention, RefusesWhatItsOperandsContradict) {
  const std::vector<std::string> rows = {"2", "3", "8"}, past = {"2", "4", "5", "8"};
  expect_says(error_with("Attention", {kHeads, rows, rows}),
              "TN0103: n: operand 1 of `Attention` has rank 3; expected 4, as the first");
  expect_says(error_with("Attention", {{"2", "3"}, {"2", "3"}, {"2", "3"}}),
              "operand 0 of `Attention` has rank 2; expected 3 or 4");
  expect_says(error_with("Attention", {kHeads, kHeads, kHeads, {}, past}),
              "`Attention` has one of past_key and past_value; expected both or none");
  expect_says(error_with("Attention", {kHeads, kHeads, kHeads, {}, past, past, {"2"}}),
              "`Attention` has both a past and nonpad_kv_seqlen");
  expect_says(
      error_with("Attention", {rows, rows, rows}, ints({{"q_num_heads", 3}, {"kv_num_heads", 2}})),
      "`Attention` divides 8 into 3 heads");
  const std::vector<std::string> three = {"2", "3", "3", "8"};
  expect_says(error_with("Attention", {kHeads, three, three}),
              "`Attention` has 4 heads of queries and 3 of keys; expected a multiple");
  expect_says(error_with("Attention", {kHeads, kHeads, kHeads, {"3", "4"}}),
              "the mask of `Attention` has 4 columns; expected at most 3");
  const std::vector<std::string> two = {"2", "2", "3", "8"};
  expect_says(error_with("Attention", {kHeads, two, two, {"1", "1", "1", "1", "3"}}),
              "a mask of `Attention` has rank 5; expected at most 4");
}

TEST(Attention, RefusesAttributesOfNoMeaning) {
  const std::vector<std::vector<std::string>> all = {kHeads, kHeads, kHeads};
  expect_says(error_with("Attention", all, ints({{"left_window_size", -2}})),
              "a window of `Attention` has size -2; expected -1 or more");
  expect_says(error_with("Attention", all, ints({{"qk_matmul_output_mode", 4}})),
              "attribute `qk_matmul_output_mode` is 4; expected 0 to 3");
  expect_says(error_with("Attention", all, ints({{"softmax_precision", 7}})),
              "attribute `softmax_precision` is int64; expected a floating-point type");
}

TEST(Attention, LengthsMayBeSymbols) {
  const std::vector<std::string> query = {"b", "s", "64"}, next = {"b", "s", "16"},
                                 past = {"b", "2", "p", "8"};
  const auto main =
      import_main(one("Attention", {query, next, next, {}, past, past},
                      ints({{"q_num_heads", 8}, {"kv_num_heads", 2}, {"is_causal", 1}})));
  EXPECT_EQ(graph::str(main->result), "R.Tensor((b, s, 64), \"float32\")");
}

// A run checks that one number is a multiple of the other.
TEST(Attention, NumbersOfHeadsMayBeSymbols) {
  const std::vector<std::string> query = {"2", "h", "3", "d"}, group = {"2", "g", "3", "d"};
  const auto main = import_main(one("Attention", {query, group, group}));
  EXPECT_EQ(graph::str(main->result), "R.Tensor((2, h, 3, d), \"float32\")");
}

TEST(Attention, AMaskMayNameTheLengthsOtherwise) {
  const std::vector<std::string> query = {"b", "4", "s", "8"}, next = {"b", "4", "t", "8"};
  const auto main = import_main(one("Attention", {query, next, next, {"batch", "1", "from", "to"}},
                                    ints({{"is_causal", 1}})));
  EXPECT_EQ(graph::str(main->result), "R.Tensor((b, 4, s, 8), \"float32\")");
  expect_says(error_with("Attention", {kHeads, kHeads, kHeads, {"2", "3"}}),
              "a mask of `Attention` has shape (2, 3); expected that of scores, (2, 4, 3, 3)");
}

TEST(RotaryEmbedding, RefusesAnglesThatDoNotFit) {
  expect_says(error_with("RotaryEmbedding", {{"2", "3"}, {"9", "2"}, {"9", "2"}}),
              "`RotaryEmbedding` of a tensor of rank 2; expected 3 or 4");
  expect_says(error_with("RotaryEmbedding", {kHeads, {"2", "3", "3"}, {"2", "3", "3"}}),
              "`RotaryEmbedding` has angles of shape (2, 3, 3); expected 4 for each row");
  expect_says(error_with("RotaryEmbedding", {kHeads, {"2", "3", "3"}, {"2", "3", "3"}},
                         ints({{"rotary_embedding_dim", 3}})),
              "`RotaryEmbedding` turns 3 elements of heads of 8; expected an even number of them");
}

TEST(LinearAttention, NeedsTheOperandsOfItsRule) {
  const std::vector<std::string> rows = {"2", "3", "8"};
  const More heads = ints({{"q_num_heads", 2}, {"kv_num_heads", 2}});
  expect_says(error_with("LinearAttention", {rows, rows, rows}, heads),
              "`LinearAttention` with update rule gated_delta has no operand `decay`");
  expect_says(error_with("LinearAttention", {rows, rows, rows, {}, rows},
                         [&](ModelBuilder& m, Node& node) {
                           heads(m, node);
                           set_text(node, "update_rule", "linear");
                         }),
              "`LinearAttention` with update rule linear has an operand `decay`");
  expect_says(error_with("LinearAttention", {rows, rows, rows},
                         [&](ModelBuilder& m, Node& node) {
                           heads(m, node);
                           set_text(node, "update_rule", "other");
                         }),
              "attribute `update_rule` is `other`; expected linear, gated, delta or gated_delta");
}

TEST(CausalConv, RefusesOtherActivations) {
  const std::vector<std::string> x = {"2", "3", "4"};
  expect_says(error_with("CausalConvWithState", {x, {"3", "1", "0"}}),
              "`CausalConvWithState` has a weight of 0 taps");
  expect_says(error_with("CausalConvWithState", {x, {"3", "1"}}),
              "`CausalConvWithState` has operands of rank 3 and 2; expected 3");
  expect_says(error_with("CausalConvWithState", {x, {"3", "1", "2"}},
                         [](ModelBuilder&, Node& node) { set_text(node, "activation", "relu"); }),
              "attribute `activation` is `relu`; expected none, silu or swish");
}

TEST(TensorScatter, RefusesTheBatchAndWhatDoesNotFit) {
  expect_says(error_with("TensorScatter", {{"2", "3"}, {"2", "3"}}, ints({{"axis", 0}})),
              "`tensor_scatter` has axis 0, the batch");
  expect_says(error_with("TensorScatter", {{"2", "3"}, {"2", "4"}}, ints({{"axis", 1}})),
              "`tensor_scatter` writes 4 elements along an axis of 3");
  expect_says(error_with("TensorScatter", {{"2", "3"}, {"2", "1"}},
                         [](ModelBuilder&, Node& node) {
                           set_int(node, "axis", 1);
                           set_text(node, "mode", "round");
                         }),
              "attribute `mode` of `tensor_scatter` is \"round\"");
}

TEST(Transformer, RefusesFormsWithTheirNames) {
  const std::vector<std::string> rows = {"2", "3", "8"}, weights = {"8", "24"};
  const auto says = [&](const std::string& op, const std::vector<std::vector<std::string>>& shapes,
                        const std::string& words, const More& more = ints({{"num_heads", 2}})) {
    expect_says(error_with(op, shapes, more, "com.microsoft"), words);
  };
  says("Attention", {rows, {"8", "23"}}, "`Attention` has weights of 23 columns");
  says("Attention", {rows, weights, {}, {"2", "1", "4", "4"}}, "a mask of rank 4");
  says("Attention", {rows, weights, {}, {"8"}}, "a mask of shape (8,)");
  says("Attention", {rows, weights, {}, {}, {"2", "2", "4", "4"}},
       "the past of `Attention` has rank 4; expected 5");
  says("Attention", {rows, weights}, "do_rotary", ints({{"num_heads", 2}, {"do_rotary", 1}}));
  says("MultiHeadAttention", {rows, rows}, "`MultiHeadAttention` has a key and no value");
  says("MultiHeadAttention", {rows, rows, rows, {}, {}, {}, kHeads},
       "`MultiHeadAttention` has one of past_key and past_value; expected both");
  says("GroupQueryAttention", {rows, rows, rows, {}, {}, {"2"}, {"1"}},
       "operand `total_sequence_length`", ints({{"num_heads", 2}, {"kv_num_heads", 2}}));
  says("RotaryEmbedding", {rows, {"1"}, {"9", "2"}, {"9", "2"}}, "is_packed_batching",
       ints({{"is_packed_batching", 1}}));
}

TEST(FlexAttention, ItsGraphsKeepTheType) {
  const auto with_graph = [](const std::string& op, size_t inputs) {
    return [op, inputs](ModelBuilder&, Node& node) {
      auto* a = node.add_attribute();
      a->set_name("score_mod");
      a->set_type(pb::AttributeProto::GRAPH);
      for (size_t i = 0; i < inputs; ++i)
        ModelBuilder::declare(*a->mutable_g()->add_input(), "s" + std::to_string(i), {});
      ModelBuilder::add_node(*a->mutable_g(), op, {"s0"}, {"t"}, "inside");
      ModelBuilder::declare(*a->mutable_g()->add_output(), "t", {});
    };
  };
  const auto error = [&](const std::string& op, size_t inputs) {
    ModelBuilder m =
        one("FlexAttention", {kHeads, kHeads, kHeads}, with_graph(op, inputs), "ai.onnx.preview");
    m.import_opset("ai.onnx.preview", 1);
    return error_of(m);
  };
  EXPECT_EQ(error("Tanh", 1), "");
  expect_says(error("Shape", 1),
              "graph `score_mod` of `FlexAttention` gives R.Tensor((4,), \"int64\"); expected "
              "R.Tensor((2, 4, 3, 3), \"float32\")");
  expect_says(error("Tanh", 2),
              "a graph of `ai.onnx.preview.FlexAttention` has 2 inputs; expected 1");
  expect_says(error("Unknown", 1), "a graph with nodes that are not supported");
}

TEST(MatMulNBits, RefusesShapesThatAreNotThoseOfItsAttributes) {
  const auto says = [](const std::vector<std::vector<std::string>>& shapes, int64_t bits,
                       const std::string& words) {
    expect_says(error_with("MatMulNBits", shapes,
                           ints({{"K", 32}, {"N", 4}, {"block_size", 16}, {"bits", bits}}),
                           "com.microsoft"),
                words);
  };
  says({{"2", "31"}, {"4", "2", "8"}, {"4", "2"}}, 4,
       "operand 0 of `MatMulNBits` has shape (2, 31); expected rows of 32");
  says({{"2", "32"}, {"4", "2", "7"}, {"4", "2"}}, 4,
       "operand 1 of `MatMulNBits` has shape (4, 2, 7); expected (4, 2, 8)");
  says({{"2", "32"}, {"4", "2", "8"}, {"4", "2"}}, 5, "(5 bits)");
  says({{"2", "32"}, {"4", "2", "8"}, {"4", "2"}, {}, {"32"}}, 4, "operand `g_idx`");
  expect_says(error_with("MatMulNBits", {{"2", "32"}, {"4", "2", "8"}, {"4", "2"}},
                         ints({{"K", 32}, {"N", 4}, {"block_size", 12}}), "com.microsoft"),
              "`MatMulNBits` of 32 x 4 in blocks of 12");
}

}  // namespace
}  // namespace tenon::onnx
