// SPDX-License-Identifier: Apache-2.0
// Binary files: ONNX networks, tensors of ONNX and NumPy.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "../end_to_end/bad_input/onnx_bytes.h"
#include "fuzz.h"
#include "readers/readers.h"

namespace tenon::fuzz {
namespace {

using namespace bad_input;

std::string source_file(const std::string& name) {
  std::ifstream file(TENON_SOURCE_DIR "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ints(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 8};
}

std::vector<std::string> networks() {
  const std::string zeros(4096, '\0');
  const auto weights = [&](const std::string& name, const Dims& dims) {
    int64_t bytes = 4;
    for (const int64_t dim : dims) bytes *= dim;
    return tensor(name, dims, zeros.substr(0, static_cast<size_t>(bytes)));
  };
  const Message then = Graph{{node("Relu", {"x"}, {"t"})}, {}, {value("t", {2, 3})}}.message();
  const Message otherwise = Graph{{node("Neg", {"x"}, {"e"})}, {}, {value("e", {2, 3})}}.message();
  return {
      model({node("Conv", {"x", "w"}, {"a"},
                  {attribute("strides", Dims{2, 2}), attribute("pads", Dims{1, 1, 1, 1})}),
             node("MaxPool", {"a"}, {"b"}, {attribute("kernel_shape", Dims{2, 2})}),
             node("Flatten", {"b"}, {"c"}), node("Softmax", {"c"}, {"y"}, {attribute("axis", 1)})},
            {1, 3, 8, 8}, {weights("w", {4, 3, 3, 3})}),
      model({node("Reshape", {"x", "s"}, {"a"}),
             node("Transpose", {"a"}, {"b"}, {attribute("perm", Dims{1, 0})}),
             node("Slice", {"b", "z", "o"}, {"c"}),
             node("Concat", {"c", "c"}, {"d"}, {attribute("axis", 0)}),
             node("Pad", {"d", "p"}, {"e"}), node("ReduceSum", {"e"}, {"y"})},
            {2, 3},
            {tensor("s", {2}, ints({3, 2}), kOnnxInt64), tensor("z", {2}, ints({0, 0}), kOnnxInt64),
             tensor("o", {2}, ints({1, 2}), kOnnxInt64),
             tensor("p", {4}, ints({1, 0, 0, 1}), kOnnxInt64)}),
      model({node("Shape", {"x"}, {"a"}), node("Gather", {"a", "i"}, {"b"}),
             node("ConstantOfShape", {"b"}, {"c"}), node("Expand", {"x", "a"}, {"d"}),
             node("Tile", {"d", "r"}, {"e"}), node("MatMul", {"e", "w"}, {"y"}),
             node("Range", {"q", "q", "q"}, {"unused"})},
            {2, 3},
            {tensor("i", {1}, ints({1}), kOnnxInt64), tensor("r", {2}, ints({1, 1}), kOnnxInt64),
             tensor("q", {}, ints({1}), kOnnxInt64), weights("w", {3, 4})}),
      model(Graph{
          {node("If", {"c"}, {"y"},
                {graph_attribute("then_branch", then), graph_attribute("else_branch", otherwise)})},
          {value("x", {2, 3}), value("c", {}, 9)},
          {value("y", {2, 3})}}),
  };
}

const std::vector<std::string> kWords = {
    "Add",
    "Conv",
    "Reshape",
    "Expand",
    "Tile",
    "Resize",
    "Slice",
    "Pad",
    "Gather",
    "Squeeze",
    "Split",
    "Loop",
    "Scan",
    "axis",
    "perm",
    "to",
    "Cast",
    "w",
    "x",
    "y",
    std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10),      // a field of 2^63 - 1
    std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),  // of -1
    std::string("\x0a\xff\xff\xff\xff\x07", 6),
    std::string("\x0a\x00", 2),  // lengths
    std::string(8, '\xff'),
    std::string(8, '\0'),
    std::string("\0\0\0\0\0\0\0\x40", 8)};

TEST(Fuzz, Onnx) {
  expect_only_diagnostics(networks(), {.name = "onnx", .seconds = 5, .words = kWords},
                          readers().at("onnx"));
}

TEST(Fuzz, OnnxOfDigits) {
  expect_only_diagnostics({source_file("examples/digits/digits.onnx")},
                          {.name = "digits", .seconds = 3, .least_refused = 0.01, .words = kWords},
                          readers().at("onnx"));
}

TEST(Fuzz, OnnxTensor) {
  const std::string raw(24, 'a');
  expect_only_diagnostics(
      {tensor("x", {2, 3}, raw).bytes(), tensor("x", {3}, raw, kOnnxInt64).bytes()},
      {.name = "pb", .seconds = 2, .words = kWords}, readers().at("tensor"));
}

TEST(Fuzz, Npy) {
  const auto npy = [](std::string header, size_t bytes) {
    header.resize(117, ' ');
    return std::string("\x93NUMPY\x01\0\x76\0", 10) + header + "\n" + std::string(bytes, 'a');
  };
  expect_only_diagnostics(
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24),
       npy("{'descr': '|b1', 'fortran_order': True, 'shape': (5,), }", 5),
       npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 8)},
      {.name = "npy",
       .seconds = 2,
       .words = {"(", ")", "{", "}", "'", ",", ":", "True", "False", "'descr'", "'shape'", "|O",
                 ">f4", "<c16", "<f2", "9999999999", "-", "[('a', '<f4')]", "\\"}},
      readers().at("npy"));
}

}  // namespace
}  // namespace tenon::fuzz
