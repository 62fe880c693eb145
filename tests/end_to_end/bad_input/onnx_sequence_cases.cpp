// SPDX-License-Identifier: Apache-2.0
// ONNX operators on signals, tables, sequences and graphs whose operands and attributes do not fit.
#include "onnx_network.h"

namespace tenon::bad_input {

namespace {

// A network with operators of another domain, too.
Case of_domain(const std::string& name, const std::string& domain, int64_t version,
               const Network& network, const std::string& says) {
  Case out = bad(name, network, says);
  out.files[0].second += Message().message(8, Message().text(1, domain).number(2, version)).bytes();
  return out;
}

std::vector<Case> signals() {
  const auto mel = [](int64_t bands, int64_t points, int64_t rate, float lowest, float highest) {
    return Network{{node("MelWeightMatrix", {"n", "p", "r", "l", "h"}, {"y"})},
                   {},
                   {ints("n", {bands}), ints("p", {points}), ints("r", {rate}),
                    floats("l", {lowest}), floats("h", {highest})}};
  };
  return {
      bad("DftOfTwoAxes",
          {{node("DFT", {"x", "", "a"}, {"y"})}, {x({4, 4, 1})}, {ints("a", {0, 1})}},
          "m.onnx: node `node_y` (DFT): error[TN0101]: operand `axis` of `DFT` has 2 elements; "
          "expected 1"),
      bad("MelOfNoBands", mel(0, 8, 8000, 0, 4000),
          "m.onnx: node `node_y` (MelWeightMatrix): error[TN0105]: `MelWeightMatrix` of 0 bands, 8 "
          "points, sample rate 8000 and edges 0 and 4000"),
      bad("MelBeyondTheSpectrum", mel(4, 8, 8000, 0, 16000),
          "m.onnx: node `node_y` (MelWeightMatrix): error[TN0105]: `MelWeightMatrix` has a band at "
          "bin 5 of a spectrum of 5"),
  };
}

std::vector<Case> tables() {
  const auto texts = [](const std::vector<Message>& attributes) {
    std::vector<Message> all = {text_attribute("mode", "TF"), attribute("ngram_counts", Dims{0}),
                                attribute("ngram_indexes", Dims{0}),
                                attribute("pool_int64s", Dims{1})};
    all.insert(all.end(), attributes.begin(), attributes.end());
    return Network{{node("TfIdfVectorizer", {"x"}, {"y"}, all)}, {x({4}, kOnnxInt64)}};
  };
  return {
      bad("GramsOfNoSymbols",
          texts({attribute("min_gram_length", 0), attribute("max_gram_length", 1),
                 attribute("max_skip_count", 0)}),
          "m.onnx: node `node_y` (TfIdfVectorizer): error[TN0104]: `TfIdfVectorizer` of 0 to 1 "
          "symbols and 0 skips; expected at least 1, at most 64, and 0 to 1024 skips"),
      of_domain("LabelsWithTwoDefaults", "ai.onnx.ml", 4,
                {{node("LabelEncoder", {"x"}, {"y"},
                       {tensor_attribute("keys_tensor", ints("k", {1, 2})),
                        tensor_attribute("values_tensor", ints("v", {3, 4})),
                        tensor_attribute("default_tensor", ints("d", {5, 6}))},
                       "ai.onnx.ml")},
                 {x({3}, kOnnxInt64)}},
                "m.onnx: node `node_y` (ai.onnx.ml.LabelEncoder): error[TN0104]: attribute "
                "`default_tensor` of `LabelEncoder` has 2 elements of dtype int64; expected one of "
                "int64"),
      bad("QuantisedToFloats",
          {{node("QLinearMatMul", {"x", "s", "z", "x", "s", "z", "s", "f"}, {"y"})},
           {x({2, 2}, kOnnxInt8)},
           {floats("s", {1}), tensor("z", {}, zeros(1), kOnnxInt8), floats("f", {0})}},
          "error[TN0502]: m.onnx: one node is not supported: `QLinearMatMul` (a result of type "
          "float32)"),
      bad("ZeroPointOfAShortFloat",
          {{node("QuantizeLinear", {"x", "s", "z"}, {"y"})},
           {x({2})},
           {floats("s", {1}), tensor("z", {1}, "\x38", 17)}},
          "m.onnx: node `node_y` (QuantizeLinear): error[TN0105]: a zero point of type "
          "float8_e4m3fn is 1; expected 0"),
      bad("TensorInSegments",
          {{node("Add", {"x", "w"}, {"y"})},
           {x({2})},
           {weight("w", {2}).message(3, Message().number(1, 0).number(2, 1))}},
          "m.onnx: node `w` (tensor): error[TN0001]: a tensor is stored in segments"),
  };
}

std::vector<Case> sequences() {
  const Message list = node("SequenceConstruct", {"x", "x"}, {"l"});
  return {
      bad("PositionsOfATensor",
          {{list, node("SequenceAt", {"l", "p"}, {"y"})}, {x({2, 3})}, {ints("p", {0, 1})}},
          "m.onnx: node `node_y` (SequenceAt): error[TN0101]: operand `position` of `SequenceAt` "
          "has 2 elements; expected 1"),
      bad("SplitBySizesOfAMatrix",
          {{node("SplitToSequence", {"x", "s"}, {"l"}),
            node("ConcatFromSequence", {"l"}, {"y"}, {attribute("axis", 0)})},
           {x({2, 3})},
           {tensor("s", {1, 2}, zeros(16), kOnnxInt64)}},
          "m.onnx: node `node_l` (SplitToSequence): error[TN0103]: operand `split` of "
          "`SplitToSequence` has rank 2; expected 0 or 1"),
  };
}

std::vector<Case> graphs() {
  const Message sum = Graph{
      {node("Add", {"a", "b"}, {"c"})},
      {value("a", {3}), value("b", {3})},
      {value("c", {})}}.message();
  const auto loop = [](const Graph& body, const Names& inputs, const Names& outputs) {
    return Network{{node("SequenceConstruct", {"x", "x"}, {"l"}),
                    node("Loop", inputs, outputs, {graph_attribute("body", body.message())}),
                    node("ConcatFromSequence", {"m"}, {"y"}, {attribute("axis", 0)})},
                   {x({2, 3})},
                   {tensor("n", {}, std::string("\2\0\0\0\0\0\0\0", 8), kOnnxInt64)}};
  };
  return {
      bad("ScanInAThirdDirection",
          {{node("Scan", {"z", "x"}, {"y"},
                 {graph_attribute("body", sum), attribute("num_scan_inputs", 1),
                  attribute("scan_input_directions", Dims{2})})},
           {value("z", {3}), x({2, 3})}},
          "m.onnx: node `node_y` (Scan): error[TN0104]: attribute `scan_input_directions` of "
          "`Scan` has 2; expected 0 or 1"),
      bad("LoopOverSequencesWithoutACondition",
          loop({{node("SequenceInsert", {"s", "x"}, {"t"})},
                {value("i", {}, kOnnxInt64), value("c", {}, kOnnxBool), value("s", {})},
                {value("t", {})}},
               {"n", "", "l"}, {"m"}),
          "m.onnx: node `node_m` (Loop): error[TN0501]: the body of `Loop` has 3 inputs and 1 "
          "outputs for 1 states and 1 results"),
      of_domain("AttentionOfKeysAlone", "com.microsoft", 1,
                {{node("GroupQueryAttention", {"x", "k", "", "", "", "l", "t"}, {"y"},
                       {attribute("num_heads", 1), attribute("kv_num_heads", 1)}, "com.microsoft")},
                 {x({1, 2, 4}), value("k", {1, 2, 4})},
                 {tensor("l", {1}, zeros(4), kOnnxInt32), tensor("t", {}, zeros(4), kOnnxInt32)}},
                "m.onnx: node `node_y` (com.microsoft.GroupQueryAttention): error[TN0501]: "
                "`GroupQueryAttention` has one of key and value alone"),
  };
}

}  // namespace

std::vector<Case> onnx_sequence_cases() {
  std::vector<Case> all;
  for (const auto& more : {signals(), tables(), sequences(), graphs()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tenon::bad_input
