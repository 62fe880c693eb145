// SPDX-License-Identifier: Apache-2.0
// ONNX models with functions of their own, and nodes whose operators a file of kernels declares.
#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

namespace {

// FunctionProto of domain `mine`.
Message function(const std::string& name, const Names& inputs, const Names& outputs,
                 const std::vector<Message>& nodes) {
  Message out = Message().text(1, name);
  for (const std::string& input : inputs) out.text(4, input);
  for (const std::string& output : outputs) out.text(5, output);
  for (const Message& one : nodes) out.message(7, one);
  return out.message(9, Message().text(1, "").number(2, 17))
      .message(9, Message().text(1, "mine").number(2, 1))
      .text(10, "mine");
}

// x of two floats, nodes, and y; with `functions`, and operator set `mine` among its own.
std::string model_of(const std::vector<Message>& nodes, const std::vector<Message>& functions = {},
                     const std::vector<Message>& more = {}) {
  std::vector<Message> inputs = {value("x", {2})};
  inputs.insert(inputs.end(), more.begin(), more.end());
  Message out = Message().number(1, 8).message(8, Message().text(1, "").number(2, 17));
  out.message(8, Message().text(1, "mine").number(2, 1));
  out.message(7, Graph{nodes, inputs, {value("y", {})}}.message());
  for (const Message& one : functions) out.message(25, one);
  return out.bytes();
}

Case with_functions(const std::string& name, const std::string& model, const std::string& says) {
  return {name, {"check", "m.onnx"}, {{"m.onnx", model}}, 1, says};
}

// A model of one node `mine::Scale`, which a graph function declares.
Case declared(const std::string& name, const Message& node, const std::string& defaults,
              const std::string& says) {
  const std::string kernels =
      "@R.function\ndef scale(x: R.Tensor((\"n\",), \"float32\"), w: R.Tensor((\"n\",), "
      "\"float32\"), by: R.Prim(\"float32\")):\n    R.func_attr({\"op\": \"mine::Scale\"" +
      defaults + "})\n    y = R.add(x, w)\n    return y\n";
  return {name,
          {"run", "m.onnx", "--kernels", "k.py"},
          {{"m.onnx", model_of({node})}, {"k.py", kernels}},
          1,
          says};
}

}  // namespace

std::vector<Case> onnx_function_cases() {
  const Message twice = function("Twice", {"a"}, {"b"}, {node("Add", {"a", "a"}, {"b"})});
  std::vector<Message> chain;
  for (int i = 0; i < 80; ++i)
    chain.push_back(function("F" + std::to_string(i), {"a"}, {"b"},
                             {node("F" + std::to_string(i + 1), {"a"}, {"b"}, {}, "mine")}));
  chain.push_back(function("F80", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"})}));
  const Message call = node("Twice", {"x"}, {"y"}, {}, "mine");
  const Message damaged = Message()
                              .text(1, "Twice")
                              .text(4, "a")
                              .text(5, "b")
                              .message(7, node("Add", {"a", "a"}, {"b"}))
                              .text(11, "\x0a\xff")
                              .text(10, "mine");
  const std::string by = ", \"op_attrs\": {\"by\": 2.0}";
  return {
      with_functions("FunctionDefinedTwice", model_of({call}, {twice, twice}),
                     "error[TN0501]: m.onnx: function `Twice` is defined twice"),
      with_functions("FunctionOfAnotherCount",
                     model_of({node("Twice", {"x", "x"}, {"y"}, {}, "mine")}, {twice}),
                     "m.onnx: node `node_y` (mine.Twice): error[TN0501]: function `Twice` is "
                     "called with 2 inputs and 1 outputs; it has 1 and 1"),
      with_functions("FunctionsThatNestTooDeep",
                     model_of({node("F0", {"x"}, {"y"}, {}, "mine")}, chain),
                     "m.onnx: node `node_b` (mine.F32): error[TN0003]: functions call one another "
                     "more than 32 deep"),
      with_functions("FunctionWithADamagedAttribute", model_of({call}, {damaged}),
                     "error[TN0501]: `m.onnx`: function `Twice` has a damaged attribute"),
      with_functions(
          "OperatorSetThatIsNotImported",
          Message()
              .number(1, 8)
              .message(8, Message().text(1, "mine").number(2, 1))
              .message(7, Graph{{node("Relu", {"x"}, {"y"})}, {value("x", {2})}, {value("y", {})}}
                              .message())
              .bytes(),
          "m.onnx: node `node_y` (Relu): error[TN0501]: operator set `ai.onnx` is not imported"),
      declared("DeclaredWithThreeInputs", node("Scale", {"x", "x", "x"}, {"y"}, {}, "mine"), by,
               "m.onnx: node `node_y` (mine.Scale): error[TN0501]: `mine.Scale` has 3 inputs; it "
               "is declared with 2"),
      declared("DeclaredWithAnInputLeftOut", node("Scale", {"x", ""}, {"y"}, {}, "mine"), by,
               "error[TN0502]: m.onnx: one node is not supported: `mine.Scale` (operand `w` left "
               "out, which has no default in the declaration of `mine.Scale`)"),
      declared("DeclaredWithAnotherAttribute",
               node("Scale", {"x", "x"}, {"y"}, {attribute("colour", 3)}, "mine"), by,
               "m.onnx: node `node_y` (mine.Scale): error[TN0104]: `mine.Scale` has attribute "
               "`colour`, which its declaration does not have"),
      declared("DeclaredWithoutItsAttribute", node("Scale", {"x", "x"}, {"y"}, {}, "mine"), "",
               "m.onnx: node `node_y` (mine.Scale): error[TN0104]: `mine.Scale` has no attribute "
               "`by`, and its declaration no default"),
      declared(
          "DeclaredWithADefaultOfText", node("Scale", {"x", "x"}, {"y"}, {}, "mine"),
          ", \"op_attrs\": {\"by\": \"two\"}",
          "k.py:2:5: error[TN0104]: the default of `by` is \"two\"; it is R.Prim(\"float32\")"),
  };
}

}  // namespace tenon::bad_input
