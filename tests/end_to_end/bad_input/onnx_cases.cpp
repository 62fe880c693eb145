// SPDX-License-Identifier: Apache-2.0
// ONNX files: broken bytes, broken graphs, what is not supported, shapes that do not fit, and
// external data that is not where it may be.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

static std::string digits() {
  std::ifstream file(TENON_SOURCE_DIR "/examples/digits/digits.onnx", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static std::string zeros(size_t bytes) { return std::string(bytes, '\0'); }

static Case check(const std::string& name, const std::string& bytes, const std::string& says) {
  return {name, {"check", "m.onnx"}, {{"m.onnx", bytes}}, 1, says};
}

// y = x + w, w being elsewhere; `prepare` makes what is there.
static Case weights(const std::string& name, const Message& w, const std::string& says,
                    std::function<void()> prepare = {}) {
  return {name,
          {"check", "m.onnx"},
          {{"m.onnx", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {w})}},
          1,
          says,
          std::move(prepare)};
}

static void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

static std::vector<Case> broken_bytes() {
  const std::string whole = digits();
  std::string flipped = whole;
  flipped[0] = static_cast<char>(flipped[0] ^ 0x10);
  std::string renamed = whole;
  const size_t conv = renamed.find("Conv");
  renamed.replace(conv, 4, "Cpnv");
  return {
      check("Empty", "", "error[TN0501]: `m.onnx`: the file is empty; expected an ONNX model"),
      check("NotOnnx", "PK\x03\x04 something else",
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      check("TextInstead", "import torch\nprint('hello')\n",
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      check("CutInHalf", whole.substr(0, whole.size() / 2),
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      check("LastByteMissing", whole.substr(0, whole.size() - 1),
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      check("FirstBytesOnly", whole.substr(0, 7),
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      check("FirstTagFlipped", flipped, "error[TN0501]: `m.onnx`: the model states no ir_version"),
      check("OperatorNameFlipped", renamed,
            "error[TN0502]: m.onnx: one node is not supported: `Cpnv` (the operator)"),
      check("NoGraph", Message().number(1, 8).bytes(),
            "error[TN0501]: `m.onnx`: not an ONNX model: it has no graph"),
      check("LengthBeyondTheFile", std::string("\x08\x08\x3a\xff\xff\xff\xff\x0f", 8),
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      {"DoesNotExist",
       {"check", "missing.onnx"},
       {},
       1,
       "error[TN0002]: cannot open `missing.onnx`: No such file or directory"},
      {"IsAFolder",
       {"check", "m.onnx"},
       {},
       1,
       "error[TN0002]: `m.onnx` is not a regular file",
       [] { std::filesystem::create_directory("m.onnx"); }},
  };
}

static std::vector<Case> broken_graphs() {
  const Message x = value("x", {2, 3}), y = value("y", {2, 3});
  const Message relu = node("Relu", {"x"}, {"y"});
  Message nested = Graph{{node("Relu", {"x"}, {"o"})}, {}, {value("o", {})}}.message();
  for (int i = 0; i < 90; ++i)
    nested = Graph{{node("If", {"c"}, {"o"}, {graph_attribute("then_branch", nested)})},
                   {},
                   {value("o", {})}}
                 .message();
  return {
      check("OpsetFromTheFuture", model(Graph{{relu}, {x}, {y}}, 999),
            "error[TN0502]: m.onnx: the model imports opset 999 of ai.onnx; expected 1 to 27"),
      check("OpsetZero", model(Graph{{relu}, {x}, {y}}, 0),
            "error[TN0502]: m.onnx: the model imports opset 0 of ai.onnx; expected 1 to 27"),
      check("IrVersionFromTheFuture", model(Graph{{relu}, {x}, {y}}, 17, 99),
            "error[TN0501]: `m.onnx`: ir_version 99; expected 1 to 64"),
      check("NoOpset", Message().number(1, 8).message(7, Graph{{relu}, {x}, {y}}.message()).bytes(),
            "error[TN0501]: `m.onnx`: the model imports no operator set"),
      check("UnknownOperators",
            model({node("Frobnicate", {"x"}, {"a"}), node("Twist", {"a"}, {"b"}, {}, "com.example"),
                   node("Frobnicate", {"b"}, {"y"})}),
            "error[TN0502]: m.onnx: 3 nodes are not supported: `Frobnicate` (the operator, 2 "
            "nodes); `com.example.Twist` (the operator)\nm.onnx: node `node_a` (Frobnicate): note: "
            "the operator\nm.onnx: node `node_b` (com.example.Twist): note: the operator\nm.onnx: "
            "node `node_y` (Frobnicate): note: the operator"),
      check("Cycle",
            model({node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}),
                   node("Relu", {"b"}, {"y"})}),
            "m.onnx: node `node_a` (Add): error[TN0501]: the node depends on its own "
            "result\nm.onnx: node `node_b` (Relu): note: through this node"),
      check("DefinedTwice", model({relu, node("Sigmoid", {"x"}, {"y"})}),
            "m.onnx: node `node_y` (Sigmoid): error[TN0501]: `y` is defined twice\nm.onnx: node "
            "`node_y` (Relu): note: first defined here"),
      check("InputDefinedAgain", model({node("Relu", {"x"}, {"x"}), relu}),
            "m.onnx: node `node_x` (Relu): error[TN0501]: `x` is an input or initialiser of the "
            "graph and defined again"),
      check("InputTwice", model(Graph{{relu}, {x, x}, {y}}),
            "error[TN0501]: m.onnx: graph input `x` is declared twice"),
      check("InitializerTwice",
            model({node("Add", {"x", "w"}, {"y"})}, {2, 3},
                  {tensor("w", {3}, zeros(12)), tensor("w", {3}, zeros(12))}),
            "error[TN0501]: m.onnx: initialiser `w` is given twice"),
      check("UndefinedInput", model({node("Add", {"x", "nowhere"}, {"y"})}),
            "m.onnx: node `node_y` (Add): error[TN0501]: input `nowhere` is defined by no node, "
            "initialiser or graph input"),
      check("UndefinedOutput", model({node("Relu", {"x"}, {"z"})}),
            "error[TN0501]: m.onnx: graph output `y` is defined nowhere"),
      check("NoOutputs", model(Graph{{relu}, {x}, {}}),
            "error[TN0501]: m.onnx: the graph has no outputs"),
      check("ShapesDiffer",
            model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {4}, zeros(16))}),
            "m.onnx: node `node_y` (Add): error[TN0101]: `add` cannot broadcast shapes (2, 3) and "
            "(4,): dimensions 3 and 4 differ"),
      check("MatMulInnerDimensions",
            model({node("MatMul", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {4, 5}, zeros(80))}),
            "m.onnx: node `node_y` (MatMul): error[TN0101]: `matmul` inner dimensions differ: 3 "
            "and 4\nm.onnx: node `x` (graph input): note: left operand is R.Tensor((2, 3), "
            "\"float32\")\nm.onnx: node `w` (initializer): note: right operand is R.Tensor((4, 5), "
            "\"float32\")"),
      check(
          "TypesDiffer",
          model({node("Add", {"x", "w"}, {"y"})}, {2, 3},
                {tensor("w", {3}, zeros(24), kOnnxInt64)}),
          "m.onnx: node `node_y` (Add): error[TN0102]: operands of `add` have dtypes float32 and "
          "int64\nm.onnx: node `x` (graph input): note: `lhs` is R.Tensor((2, 3), "
          "\"float32\")\nm.onnx: node `w` (initializer): note: `rhs` is R.Tensor((3,), \"int64\")"),
      check("AxisOutOfRange", model({node("Softmax", {"x"}, {"y"}, {attribute("axis", 7)})}),
            "m.onnx: node `node_y` (Softmax): error[TN0104]: `Softmax` has axis 7; expected -2 "
            "to 1 for a tensor of rank 2"),
      check(
          "PermutationThatIsNone",
          model({node("Transpose", {"x"}, {"y"}, {attribute("perm", Dims{0, 0})})}),
          "m.onnx: node `node_y` (Transpose): error[TN0104]: axis 0 is given twice to `Transpose`"),
      check("AttributeOfAnotherKind",
            model({node("Softmax", {"x"}, {"y"}, {attribute("axis", std::string("one"))})}),
            "m.onnx: node `node_y` (Softmax): error[TN0104]: attribute `axis` of `Softmax` is a "
            "string; expected an integer"),
      check("AttributeTwice",
            model({node("Softmax", {"x"}, {"y"}, {attribute("axis", 1), attribute("axis", 0)})}),
            "m.onnx: node `node_y` (Softmax): error[TN0501]: attribute `axis` is given twice"),
      check("TooFewInputs", model({node("Add", {"x"}, {"y"})}),
            "m.onnx: node `node_y` (Add): error[TN0501]: `Add` has 1 inputs; expected 2"),
      check("TooManyInputs", model({node("Relu", {"x", "x", "x"}, {"y"})}),
            "m.onnx: node `node_y` (Relu): error[TN0501]: `Relu` has 3 inputs; expected 1"),
      check("ReshapeToAnotherSize",
            model({node("Reshape", {"x", "s"}, {"y"})}, {2, 3},
                  {tensor("s", {1}, std::string("\x07\0\0\0\0\0\0\0", 8), kOnnxInt64)}),
            "m.onnx: node `node_y` (Reshape): error[TN0101]: `reshape` of shape (2, 3) with 6 "
            "elements to shape (7,) with 7"),
      check("ConvOfAnotherChannelCount",
            model({node("Conv", {"x", "w"}, {"y"})}, {1, 3, 8, 8},
                  {tensor("w", {4, 5, 3, 3}, zeros(720))}),
            "m.onnx: node `node_y` (Conv): error[TN0101]: `nn.conv2d` of data with 3 channels; the "
            "kernel takes 5 in 1 groups\nm.onnx: node `x` (graph input): note: data is "
            "R.Tensor((1, 3, 8, 8), \"float32\")\nm.onnx: node `w` (initializer): note: kernel is "
            "R.Tensor((4, 5, 3, 3), \"float32\")"),
      check("ConvWithStrideZero",
            model({node("Conv", {"x", "w"}, {"y"}, {attribute("strides", Dims{0, 0})})},
                  {1, 1, 8, 8}, {tensor("w", {1, 1, 3, 3}, zeros(36))}),
            "m.onnx: node `node_y` (Conv): error[TN0104]: attribute `strides` of `Conv` is (0, 0); "
            "expected at least 1"),
      check("PoolWindowTooLarge",
            model({node("MaxPool", {"x"}, {"y"}, {attribute("kernel_shape", Dims{9, 9})})},
                  {1, 1, 4, 4}),
            "m.onnx: node `node_y` (MaxPool): error[TN0101]: a window of `nn.max_pool2d` covers 9, "
            "more than the 4 of its axis with padding"),
      check("ShapeOverflows",
            model({node("Relu", {"x"}, {"y"})}, {int64_t{1} << 40, int64_t{1} << 40}),
            "m.onnx: node `x` (graph input): error[TN0109]: shape (1099511627776, 1099511627776) "
            "has more than 2^62 elements"),
      {"ShapeOfAnotherRank",
       {"run", "m.onnx", "--shape", "x=1,2,3"},
       {{"m.onnx", model({node("Relu", {"x"}, {"y"})}, {2, 3})}},
       1,
       "input `x` has rank 2; the shape given, (1, 2, 3), has rank 3"},
      {"ShapeOfAnotherExtent",
       {"run", "m.onnx", "--shape", "x=5,?"},
       {{"m.onnx", model({node("Relu", {"x"}, {"y"})}, {2, 3})}},
       1,
       "dimension 0 of input `x` is 2; the shape given has 5"},
      {"GenerateWithoutTokens",
       {"generate", "m.onnx"},
       {{"m.onnx", model({node("Relu", {"x"}, {"y"})}, {2, 3})}},
       1,
       "no input is a cache of which an output is the grown one"},
      check("TensorShapeOverflows",
            model({node("Add", {"x", "w"}, {"y"})}, {2, 3},
                  {tensor("w", {int64_t{1} << 32, int64_t{1} << 32}, zeros(4))}),
            "m.onnx: node `w` (tensor): error[TN0109]: shape (4294967296, 4294967296) has more "
            "than 2^62 elements"),
      check("TensorOfFewerBytes",
            model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {2, 3}, zeros(20))}),
            "m.onnx: node `w` (tensor): error[TN0504]: raw_data has 20 bytes; a tensor of shape "
            "(2, 3) and type float32 has 24"),
      check("TensorWithNegativeDimension",
            model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {-2, 3}, zeros(24))}),
            "m.onnx: node `w` (tensor): error[TN0504]: shape (-2, 3) has a negative dimension"),
      check("TensorOfUnknownType",
            model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {2, 3}, zeros(24), 77)}),
            "m.onnx: node `w` (tensor): error[TN0504]: a tensor's element type is 77; expected 1 "
            "to 26"),
      check(
          "TensorOfStrings",
          model({node("Add", {"x", "w"}, {"y"})}, {2, 3},
                {tensor("w", {2, 3}, zeros(24), kOnnxString)}),
          "m.onnx: node `w` (tensor): error[TN0504]: string_data has 0 elements; a tensor of shape "
          "(2, 3) and type string has 6"),
      check("ExpandToMoreThanMemory",
            model({node("Expand", {"x", "s"}, {"y"})}, {1},
                  {tensor("s", {2}, std::string("\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x20", 16),
                          kOnnxInt64)}),
            "m.onnx: node `node_y` (Expand): error[TN0109]: shape (2305843009213693952, "
            "2305843009213693952) has more than 2^62 elements"),
      check("GraphsTooDeep",
            model(Graph{{node("If", {"c"}, {"y"},
                              {graph_attribute("then_branch", nested),
                               graph_attribute("else_branch", nested)})},
                        {x, value("c", {}, 9)},
                        {y}}),
            "error[TN0501]: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no "
            "protobuf message ModelProto"),
      check("ControlCharactersInNames", model({node("Add", {"x", "no\x1b[31m\nwhere"}, {"y"})}),
            "m.onnx: node `node_y` (Add): error[TN0501]: input `no\\x1b[31m\\x0awhere` is defined "
            "by no node, initialiser or graph input"),
  };
}

static std::vector<Case> external_data() {
  const auto secret = [] { write("../secret", zeros(24)); };
  return {
      weights("DataMissing", external("w", {2, 3}, "w.bin"),
              "m.onnx: node `w` (tensor): error[TN0503]: cannot open external data `w.bin`: No "
              "such file or directory"),
      weights("DataInTheFolderAbove", external("w", {2, 3}, "../secret"),
              "m.onnx: node `w` (tensor): error[TN0503]: the location `../secret` of external data "
              "contains `..`; expected a path below the model's directory",
              secret),
      weights("DataAboveByDetour", external("w", {2, 3}, "sub/../../secret"),
              "m.onnx: node `w` (tensor): error[TN0503]: the location `sub/../../secret` of "
              "external data contains `..`; expected a path below the model's directory",
              [=] {
                secret();
                std::filesystem::create_directory("sub");
              }),
      weights("DataAtAnAbsolutePath", external("w", {2, 3}, "/etc/passwd"),
              "m.onnx: node `w` (tensor): error[TN0503]: the location `/etc/passwd` of external "
              "data is absolute; expected a path below the model's directory"),
      weights("DataBehindASymlink", external("w", {2, 3}, "w.bin"),
              "m.onnx: node `w` (tensor): error[TN0503]: external data `w.bin` is reached through "
              "a symbolic link; expected a regular file below the model's directory",
              [=] {
                secret();
                std::filesystem::create_symlink("../secret", "w.bin");
              }),
      weights("DataInASymlinkedFolder", external("w", {2, 3}, "sub/secret"),
              "m.onnx: node `w` (tensor): error[TN0503]: external data `sub/secret` is reached "
              "through a symbolic link; expected a regular file below the model's directory",
              [=] {
                secret();
                std::filesystem::create_symlink("..", "sub");
              }),
      weights("DataBehindAHardLink", external("w", {2, 3}, "w.bin"),
              "m.onnx: node `w` (tensor): error[TN0503]: external data `w.bin` has 2 hard links; "
              "expected 1 (another may lie outside the model's directory)",
              [=] {
                secret();
                std::filesystem::create_hard_link("../secret", "w.bin");
              }),
      weights(
          "DataIsAFolder", external("w", {2, 3}, "w.bin"),
          "m.onnx: node `w` (tensor): error[TN0503]: external data `w.bin` is not a regular file",
          [] { std::filesystem::create_directory("w.bin"); }),
      weights("DataTooShort", external("w", {2, 3}, "w.bin"),
              "m.onnx: node `w` (tensor): error[TN0503]: external data `w.bin` has 20 bytes; "
              "expected 24 bytes from offset 0",
              [] { write("w.bin", zeros(20)); }),
      weights("DataOfAnotherLength", external("w", {2, 3}, "w.bin", "", "20"),
              "m.onnx: node `w` (tensor): error[TN0503]: external data of 20 bytes; a tensor of "
              "shape (2, 3) and type float32 has 24",
              [] { write("w.bin", zeros(24)); }),
      weights("DataAtANegativeOffset", external("w", {2, 3}, "w.bin", "-8"),
              "m.onnx: node `w` (tensor): error[TN0503]: the offset of external data is `-8`; "
              "expected a number below 2^63",
              [] { write("w.bin", zeros(24)); }),
      weights("DataAtAHugeOffset", external("w", {2, 3}, "w.bin", "9223372036854775800"),
              "m.onnx: node `w` (tensor): error[TN0503]: external data `w.bin` has 24 bytes; "
              "expected 24 bytes from offset 9223372036854775800",
              [] { write("w.bin", zeros(24)); }),
      weights("DataWithoutAPlace", external("w", {2, 3}, ""),
              "m.onnx: node `w` (tensor): error[TN0503]: the location `` of external data is "
              "empty; expected a path below the model's directory"),
  };
}

std::vector<Case> onnx_cases() {
  std::vector<Case> all = broken_bytes();
  for (const auto& more : {broken_graphs(), external_data()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tenon::bad_input
