// Inputs of `tenon run`, and the files that they come from.
#include <filesystem>

#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

// y = relu(x) + z, of float32 (2, 3) and (batch, 3).
static std::string network() {
  Message shape = Message()
                      .message(1, Message().text(2, "batch"))
                      .message(1, Message().number(1, 3));
  const Message z = Message().text(1, "z").message(
      2, Message().message(1, Message().number(1, kFloat).message(2, shape)));
  const Message w = Message().text(1, "w").message(
      2, Message().message(1, Message().number(1, kFloat).message(2, shape)));
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
static std::string npy(const std::string& descr, const std::string& shape, size_t bytes, const std::string& order = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }", bytes);
}

static Case run(const std::string& name, const std::string& file, const std::string& says) {
  return {name, {"run", "m.onnx", "-i", "x=x.npy"}, {{"m.onnx", network()}, {"x.npy", file}}, 1, says};
}

std::vector<Case> tensor_cases() {
  const std::string good = npy("<f4", "(2, 3)", 24);
  return {
      run("NpyEmpty", "", ""),
      run("NpyBadMagic", "\x93NUMPZ" + good.substr(6), ""),
      run("NpyOfTheFuture", good.substr(0, 6) + "\x09" + good.substr(7), ""),
      run("NpyHeaderCut", good.substr(0, 40), ""),
      run("NpyHeaderLongerThanTheFile", good.substr(0, 8) + "\xff\xff" + good.substr(10, 60), ""),
      run("NpyElementsCut", good.substr(0, good.size() - 1), ""),
      run("NpyElementsTooMany", good + "more", ""),
      run("NpyObjects", npy("|O", "(2, 3)", 48), ""),
      run("NpyStrings", npy("<U4", "(2, 3)", 96), ""),
      run("NpyBigEndian", npy(">f4", "(2, 3)", 24), ""),
      run("NpyStructured", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", 24), ""),
      run("NpyHugeShape", npy("<f4", "(4294967296, 4294967296)", 24), ""),
      run("NpyLargerThanTheFile", npy("<f4", "(1000000, 1000000)", 24), ""),
      run("NpyNegativeShape", npy("<f4", "(-2, -3)", 24), ""),
      run("NpyDimensionOf100Digits", npy("<f4", "(" + std::string(100, '9') + ",)", 24), ""),
      run("NpyHeaderIsCode", npy("__import__('os').system('true')", 24), ""),
      run("NpyNoShape", npy("{'descr': '<f4', 'fortran_order': False}", 24), ""),
      run("NpyOrderIsNeither", npy("<f4", "(2, 3)", 24, "Maybe"), ""),
      run("InputOfAnotherShape", npy("<f4", "(3, 2)", 24), ""),
      run("InputOfAnotherRank", npy("<f4", "(6,)", 24), ""),
      run("InputOfAnotherType", npy("<f8", "(2, 3)", 48), ""),
      {"InputInColumns", {"run", "m.onnx", "-i", "x=x.npy"}, {{"m.onnx", network()}, {"x.npy", npy("<f4", "(3, 2)", 24, "True")}}, 1, ""},
      {"InputUnknown", {"run", "m.onnx", "-i", "q=x.npy"}, {{"m.onnx", network()}, {"x.npy", good}}, 1, ""},
      {"InputFileMissing", {"run", "m.onnx", "-i", "x=no.npy"}, {{"m.onnx", network()}}, 1, ""},
      {"InputOfNoKnownKind", {"run", "m.onnx", "-i", "x=x.csv"}, {{"m.onnx", network()}, {"x.csv", "1,2"}}, 1, ""},
      {"InputTwice", {"run", "m.onnx", "-i", "x=x.npy", "-i", "x=x.npy"}, {{"m.onnx", network()}, {"x.npy", good}}, 2, ""},
      {"InputWithoutAFile", {"run", "m.onnx", "-i", "x"}, {{"m.onnx", network()}}, 2, ""},
      {"SymbolsDisagree", {"run", "m.onnx", "-i", "z=z.npy", "-i", "w=w.npy"}, {{"m.onnx", network()}, {"z.npy", npy("<f4", "(4, 3)", 48)}, {"w.npy", npy("<f4", "(5, 3)", 60)}}, 1, ""},
      {"SymbolUnknown", {"run", "m.onnx", "--dim", "depth=3"}, {{"m.onnx", network()}}, 2, ""},
      {"SymbolNegative", {"run", "m.onnx", "--dim", "batch=-3"}, {{"m.onnx", network()}}, 2, ""},
      {"SymbolTooLarge", {"run", "m.onnx", "--dim", "batch=4611686018427387904"}, {{"m.onnx", network()}}, 1, ""},
      {"SymbolBeyondMemory", {"run", "m.onnx", "--dim", "batch=100000000000"}, {{"m.onnx", network()}}, 1, ""},
      {"PbTruncated", {"run", "m.onnx", "-i", "x=x.pb"}, {{"m.onnx", network()}, {"x.pb", tensor("x", {2, 3}, std::string(24, 'a')).bytes().substr(0, 20)}}, 1, ""},
      {"PbOfFewerBytes", {"run", "m.onnx", "-i", "x=x.pb"}, {{"m.onnx", network()}, {"x.pb", tensor("x", {2, 3}, std::string(20, 'a')).bytes()}}, 1, ""},
      {"PbOfStrings", {"run", "m.onnx", "-i", "x=x.pb"}, {{"m.onnx", network()}, {"x.pb", tensor("x", {2, 3}, "", kString).bytes()}}, 1, ""},
      {"OutputsIntoAFile", {"run", "m.onnx", "-o", "m.onnx"}, {{"m.onnx", network()}}, 1, ""},
  };
}

}  // namespace tenon::bad_input
