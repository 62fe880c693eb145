// SPDX-License-Identifier: Apache-2.0
// Inputs of `tenon run`, and the files that they come from.
#include <filesystem>

#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

// y = relu(x) + z, of float32 (2, 3) and (batch, 3).
static std::string network() {
  Message shape =
      Message().message(1, Message().text(2, "batch")).message(1, Message().number(1, 3));
  const Message z = Message().text(1, "z").message(
      2, Message().message(1, Message().number(1, kOnnxFloat).message(2, shape)));
  const Message w = Message().text(1, "w").message(
      2, Message().message(1, Message().number(1, kOnnxFloat).message(2, shape)));
  return model(Graph{{node("Relu", {"x"}, {"y"}), node("Add", {"z", "w"}, {"s"})},
                     {value("x", {2, 3}), z, w},
                     {value("y", {2, 3}), value("s", {})}});
}

static std::string npy(const std::string& header, size_t bytes) {
  std::string padded = header;
  padded.resize((header.size() + 10 + 63) / 64 * 64 - 10 - 1, ' ');
  padded += '\n';
  std::string out("\x93NUMPY\x01\0", 8);
  out += static_cast<char>(padded.size() & 255);
  out += static_cast<char>(padded.size() >> 8);
  return out + padded + std::string(bytes, '\0');
}
static std::string npy(const std::string& descr, const std::string& shape, size_t bytes,
                       const std::string& order = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }",
             bytes);
}

static Case run(const std::string& name, const std::string& file, const std::string& says) {
  return {
      name, {"run", "m.onnx", "-i", "x=x.npy"}, {{"m.onnx", network()}, {"x.npy", file}}, 1, says};
}

std::vector<Case> tensor_cases() {
  const std::string good = npy("<f4", "(2, 3)", 24);
  return {
      run("NpyEmpty", "", "error[TN0504]: x.npy: not a .npy file"),
      run("NpyBadMagic", "\x93NUMPZ" + good.substr(6), "error[TN0504]: x.npy: not a .npy file"),
      run("NpyOfTheFuture", good.substr(0, 6) + "\x09" + good.substr(7),
          "error[TN0001]: x.npy: .npy format 9; expected 1 to 3"),
      run("NpyHeaderCut", good.substr(0, 40), "error[TN0504]: x.npy: ends inside its header"),
      run("NpyHeaderLongerThanTheFile", good.substr(0, 8) + "\xff\xff" + good.substr(10, 60),
          "error[TN0504]: x.npy: ends inside its header"),
      run("NpyElementsCut", good.substr(0, good.size() - 1),
          "error[TN0504]: x.npy: 23 bytes of elements; float32 (2, 3) needs 24"),
      run("NpyElementsTooMany", good + "more",
          "error[TN0504]: x.npy: 28 bytes of elements; float32 (2, 3) needs 24"),
      run("NpyObjects", npy("|O", "(2, 3)", 48),
          "error[TN0001]: x.npy: elements of NumPy type `|O`; expected little-endian numbers, "
          "bools or texts"),
      run("NpyStrings", npy("<U4", "(2, 3)", 96),
          "error[TN0601]: input `x` is string (2, 3); the program takes float32 (2, 3)"),
      run("NpyBigEndian", npy(">f4", "(2, 3)", 24),
          "error[TN0001]: x.npy: elements of NumPy type `>f4`; expected little-endian numbers, "
          "bools or texts"),
      run("NpyStructured",
          npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", 24),
          "error[TN0001]: x.npy: a structured array; expected one of numbers"),
      run("NpyTypeThatIsNoText", npy("{'descr': 4, 'fortran_order': False, 'shape': (2, 3), }", 24),
          "error[TN0504]: x.npy: the header of the .npy file has a `descr` that is no string"),
      run("NpyHugeShape", npy("<f4", "(4294967296, 4294967296)", 24),
          "error[TN0109]: x.npy: shape (4294967296, 4294967296) has more than 2^62 elements"),
      run("NpyLargerThanTheFile", npy("<f4", "(1000000, 1000000)", 24),
          "error[TN0504]: x.npy: 24 bytes of elements; float32 (1000000, 1000000) needs "
          "4000000000000"),
      run("NpyNegativeShape", npy("<f4", "(-2, -3)", 24),
          "error[TN0504]: x.npy: the header of the .npy file has a shape that is no tuple of "
          "sizes"),
      run("NpyDimensionOf100Digits", npy("<f4", "(" + std::string(100, '9') + ",)", 24),
          "does not fit 64 bits"),
      run("NpyHeaderIsCode", npy("__import__('os').system('true')", 24),
          "error[TN0504]: x.npy: the header of the .npy file has no dictionary"),
      run("NpyNoShape", npy("{'descr': '<f4', 'fortran_order': False}", 24),
          "error[TN0504]: x.npy: the header of the .npy file has no `descr`, `fortran_order` or "
          "`shape`"),
      run("NpyOrderIsNeither", npy("<f4", "(2, 3)", 24, "Maybe"),
          "error[TN0504]: x.npy: the header of the .npy file has a `fortran_order` that is neither "
          "True nor False"),
      run("InputOfAnotherShape", npy("<f4", "(3, 2)", 24),
          "error[TN0601]: input `x` is float32 (3, 2); the program takes float32 (2, 3)"),
      run("InputOfAnotherRank", npy("<f4", "(6,)", 24),
          "error[TN0601]: input `x` is float32 (6,); the program takes float32 (2, 3)"),
      run("InputOfAnotherType", npy("<f8", "(2, 3)", 48),
          "error[TN0601]: input `x` is float64 (2, 3); the program takes float32 (2, 3)"),
      {"InputInColumns",
       {"run", "m.onnx", "-i", "x=x.npy"},
       {{"m.onnx", network()}, {"x.npy", npy("<f4", "(3, 2)", 24, "True")}},
       1,
       "error[TN0601]: input `x` is float32 (3, 2); the program takes float32 (2, 3)"},
      {"InputUnknown",
       {"run", "m.onnx", "-i", "q=x.npy"},
       {{"m.onnx", network()}, {"x.npy", good}},
       1,
       "error[TN0601]: no input is named `q`; the program takes `x`, `z`, `w`"},
      {"InputFileMissing",
       {"run", "m.onnx", "-i", "x=no.npy"},
       {{"m.onnx", network()}},
       1,
       "error[TN0002]: cannot read `no.npy`: No such file or directory"},
      {"InputOfNoKnownKind",
       {"run", "m.onnx", "-i", "x=x.csv"},
       {{"m.onnx", network()}, {"x.csv", "1,2"}},
       1,
       "error[TN0002]: x.csv: expected a `.npy` or ONNX `.pb` file"},
      {"InputTwice",
       {"run", "m.onnx", "-i", "x=x.npy", "-i", "x=x.npy"},
       {{"m.onnx", network()}, {"x.npy", good}},
       2,
       "error: --input x=x.npy: the input is given twice"},
      {"InputWithoutAFile",
       {"run", "m.onnx", "-i", "x"},
       {{"m.onnx", network()}},
       2,
       "error: --input x: expected NAME=VALUE"},
      {"SymbolsDisagree",
       {"run", "m.onnx", "-i", "z=z.npy", "-i", "w=w.npy"},
       {{"m.onnx", network()},
        {"z.npy", npy("<f4", "(4, 3)", 48)},
        {"w.npy", npy("<f4", "(5, 3)", 60)}},
       1,
       "error[TN0601]: dimension `batch` is 5 in input `w` float32 (batch, 3) and 4 in input `z`"},
      {"SymbolUnknown",
       {"run", "m.onnx", "--dim", "depth=3"},
       {{"m.onnx", network()}},
       2,
       "error: --dim depth=3: no input has a dimension `depth`"},
      {"SymbolNegative",
       {"run", "m.onnx", "--dim", "batch=-3"},
       {{"m.onnx", network()}},
       2,
       "error: --dim batch=-3: expected a number from 0 to 1099511627776"},
      {"SymbolTooLarge",
       {"run", "m.onnx", "--dim", "batch=4611686018427387904"},
       {{"m.onnx", network()}},
       2,
       "error: --dim batch=4611686018427387904: expected a number from 0 to 1099511627776"},
      {"SymbolBeyondMemory",
       {"run", "m.onnx", "--dim", "batch=100000000000"},
       {{"m.onnx", network()}},
       1,
       "error[TN0003]: an input of shape (100000000000, 3) would take more than 64 GiB"},
      {"PbTruncated",
       {"run", "m.onnx", "-i", "x=x.pb"},
       {{"m.onnx", network()},
        {"x.pb", tensor("x", {2, 3}, std::string(24, 'a')).bytes().substr(0, 20)}},
       1,
       "error[TN0501]: `x.pb`: not a tensor, truncated, or damaged: its bytes are no protobuf "
       "message TensorProto"},
      {"PbOfFewerBytes",
       {"run", "m.onnx", "-i", "x=x.pb"},
       {{"m.onnx", network()}, {"x.pb", tensor("x", {2, 3}, std::string(20, 'a')).bytes()}},
       1,
       "x.pb: node `x` (tensor): error[TN0504]: raw_data has 20 bytes; a tensor of shape (2, 3) "
       "and type float32 has 24"},
      {"PbOfStrings",
       {"run", "m.onnx", "-i", "x=x.pb"},
       {{"m.onnx", network()}, {"x.pb", tensor("x", {2, 3}, "six", kOnnxString).bytes()}},
       1,
       "x.pb: node `x` (tensor): error[TN0504]: string_data has 0 elements; a tensor of shape (2, "
       "3) "
       "and type string has 6"},
      {"OutputsIntoAFile",
       {"run", "m.onnx", "-o", "m.onnx"},
       {{"m.onnx", network()}},
       1,
       "error[TN0002]: cannot create `m.onnx`: Not a directory"},
  };
}

}  // namespace tenon::bad_input
