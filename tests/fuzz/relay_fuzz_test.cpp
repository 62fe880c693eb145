// SPDX-License-Identifier: Apache-2.0
// Relay text, its metadata, and files of parameters.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz.h"
#include "readers/readers.h"
#include "tenon/import/relay/read_relay.h"

namespace tenon::fuzz {
namespace {

// The texts of the golden tests, up to what is expected of them.
std::vector<std::string> texts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(TENON_SOURCE_DIR "/tests/golden/relay/print"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    out.push_back(text.substr(0, text.find("// EXPECT")));
  }
  return out;
}

const std::vector<std::string> kWords = {"(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "%x",
                                         "%0",
                                         "%0.1",
                                         "@main",
                                         "def @f(",
                                         "fn (",
                                         "let %a = ",
                                         "if (",
                                         "} else {",
                                         " = ",
                                         ";",
                                         ",",
                                         ": ",
                                         "->",
                                         "Tensor[(",
                                         "float32",
                                         "int64",
                                         "?",
                                         "1f",
                                         "-1",
                                         "0",
                                         "2147483647",
                                         "9223372036854775807i64",
                                         "1e999f",
                                         "inff",
                                         "nan",
                                         "True",
                                         "None",
                                         "\"",
                                         "/*",
                                         "*/",
                                         "/* ty=",
                                         "span=",
                                         "//",
                                         "#[metadata]",
                                         "#[version = \"0.0.5\"]",
                                         "meta[relay.Constant][0]",
                                         "nn.dense(",
                                         "reshape(",
                                         "newshape=",
                                         "axis=",
                                         "strides=",
                                         "padding=[",
                                         "nn.conv2d(",
                                         "strided_slice(",
                                         "take(",
                                         "concatenate(",
                                         "split(",
                                         "call_lowered(@f, (",
                                         "free_var %y: float32;",
                                         "@T.prim_func\ndef f():\n",
                                         "match (",
                                         "type L { }",
                                         "\"b64ndarrays\"",
                                         "\"root\"",
                                         "\"nodes\"",
                                         "((((((((((((((((",
                                         "[[[[[[[[[[[[[[[[",
                                         "--------",
                                         std::string(1, '\0'),
                                         "\xff",
                                         "::",
                                         ".0.0.0"};

TEST(Fuzz, Relay) {
  expect_only_diagnostics(texts(), {.name = "relay", .seconds = 6, .words = kWords},
                          readers().at("relay"));
}

std::string params_file() {
  std::ifstream file(TENON_SOURCE_DIR "/tests/end_to_end/relay/block.params", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Fuzz, RelayParams) {
  expect_only_diagnostics(
      {params_file()},
      {.name = "params",
       .seconds = 2,
       .words = {std::string(8, '\xff'), std::string(8, '\0'), std::string("\0\0\0\0\0\0\0\x40", 8),
                 std::string("\x3f\xa1\xb4\x96\xf0\x40\xe5\xdd", 8)}},
      readers().at("params"));
}

TEST(Fuzz, DeepRelay) {
  const auto repeat = [](const std::string& text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += text;
    return out;
  };
  const std::string head = "def @main(%x: Tensor[(4), float32]) {\n";
  for (const size_t n : {150, 1000, 100000}) {
    const std::string cases[] = {
        head + repeat("(", n) + "%x" + repeat(")", n) + "}",
        head + repeat("exp(", n) + "%x" + repeat(")", n) + "}",
        head + "%x" + repeat(" + %x", n) + "}",
        head + repeat("-", n) + "%x}",
        head + "%x" + repeat("(%x)", n) + "}",
        head + "%x" + repeat(".0", n) + "}",
        head + "(%x)" + repeat(" .0", n) + "}",
        head + repeat("fn (%x: float32) {", n) + "%x" + repeat("}", n) + "}",
        head + repeat("if (%x) {", n) + "%x",
        head + repeat("{", n) + "%x",
        head + repeat("let %a = exp(%x); ", n) + "%a}",
        head + repeat("%0 = (%x, %x); ", n) + "%0}",
        head + "%0 = %x; " + repeat("%0 = (%0, %0); ", std::min<size_t>(n, 2000)) + "%0}",
        head + "reshape(%x, newshape=" + repeat("[", n),
        "def @main(%x: " + repeat("(", n) + "float32" + repeat(",)", n) + ") { %x }",
        "def @main(%x: " + repeat("fn (", n),
        repeat("def @f() {", n),
        repeat("/* ", n),
        repeat("#[metadata]", n),
        repeat("[", n),
    };
    for (const std::string& text : cases) {
      try {
        relay::read_relay(text);
      } catch (const CompileError&) {
      }
    }
    std::string functions;
    for (size_t i = 0; i < std::min<size_t>(n, 3000); ++i)
      functions +=
          "def @f" + std::to_string(i) + "(%x: float32) { @f" + std::to_string(i + 1) + "(%x) }\n";
    functions += "def @f" + std::to_string(std::min<size_t>(n, 3000)) + "(%x: float32) { %x }\n";
    (void)relay::read_relay(functions);
  }
}

}  // namespace
}  // namespace tenon::fuzz
