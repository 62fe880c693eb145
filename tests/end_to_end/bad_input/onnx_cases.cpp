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
      check("Empty", "", ""),
      check("NotOnnx", "PK\x03\x04 something else", ""),
      check("TextInstead", "import torch\nprint('hello')\n", ""),
      check("CutInHalf", whole.substr(0, whole.size() / 2), ""),
      check("LastByteMissing", whole.substr(0, whole.size() - 1), ""),
      check("FirstBytesOnly", whole.substr(0, 7), ""),
      check("FirstTagFlipped", flipped, ""),
      check("OperatorNameFlipped", renamed, ""),
      check("NoGraph", Message().number(1, 8).bytes(), ""),
      check("LengthBeyondTheFile", std::string("\x08\x08\x3a\xff\xff\xff\xff\x0f", 8), ""),
      {"DoesNotExist", {"check", "missing.onnx"}, {}, 1, ""},
      {"IsAFolder", {"check", "m.onnx"}, {}, 1, "", [] { std::filesystem::create_directory("m.onnx"); }},
  };
}

static std::vector<Case> broken_graphs() {
  const Message x = value("x", {2, 3}), y = value("y", {2, 3});
  const Message relu = node("Relu", {"x"}, {"y"});
  Message nested = Graph{{node("Relu", {"x"}, {"o"})}, {}, {value("o", {})}}.message();
  for (int i = 0; i < 90; ++i)
    nested = Graph{{node("If", {"c"}, {"o"}, {graph_attribute("then_branch", nested)})}, {}, {value("o", {})}}.message();
  return {
      check("OpsetFromTheFuture", model(Graph{{relu}, {x}, {y}}, 999), ""),
      check("OpsetZero", model(Graph{{relu}, {x}, {y}}, 0), ""),
      check("IrVersionFromTheFuture", model(Graph{{relu}, {x}, {y}}, 17, 99), ""),
      check("NoOpset", Message().number(1, 8).message(7, Graph{{relu}, {x}, {y}}.message()).bytes(), ""),
      check("UnknownOperators",
            model({node("Frobnicate", {"x"}, {"a"}), node("Twist", {"a"}, {"b"}, {}, "com.example"),
                   node("Frobnicate", {"b"}, {"y"})}), ""),
      check("Cycle", model({node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}),
                            node("Relu", {"b"}, {"y"})}), ""),
      check("DefinedTwice", model({relu, node("Sigmoid", {"x"}, {"y"})}), ""),
      check("InputDefinedAgain", model({node("Relu", {"x"}, {"x"}), relu}), ""),
      check("InputTwice", model(Graph{{relu}, {x, x}, {y}}), ""),
      check("InitializerTwice", model({node("Add", {"x", "w"}, {"y"})}, {2, 3},
            {tensor("w", {3}, zeros(12)), tensor("w", {3}, zeros(12))}), ""),
      check("UndefinedInput", model({node("Add", {"x", "nowhere"}, {"y"})}), ""),
      check("UndefinedOutput", model({node("Relu", {"x"}, {"z"})}), ""),
      check("NoOutputs", model(Graph{{relu}, {x}, {}}), ""),
      check("ShapesDiffer", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {4}, zeros(16))}), ""),
      check("MatMulInnerDimensions", model({node("MatMul", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {4, 5}, zeros(80))}), ""),
      check("TypesDiffer", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {3}, zeros(24), kInt64)}), ""),
      check("AxisOutOfRange", model({node("Softmax", {"x"}, {"y"}, {attribute("axis", 7)})}), ""),
      check("PermutationThatIsNone", model({node("Transpose", {"x"}, {"y"}, {attribute("perm", Dims{0, 0})})}), ""),
      check("AttributeOfAnotherKind", model({node("Softmax", {"x"}, {"y"}, {attribute("axis", std::string("one"))})}), ""),
      check("AttributeTwice", model({node("Softmax", {"x"}, {"y"}, {attribute("axis", 1), attribute("axis", 0)})}), ""),
      check("TooFewInputs", model({node("Add", {"x"}, {"y"})}), ""),
      check("TooManyInputs", model({node("Relu", {"x", "x", "x"}, {"y"})}), ""),
      check("ReshapeToAnotherSize", model({node("Reshape", {"x", "s"}, {"y"})}, {2, 3}, {tensor("s", {1}, std::string("\x07\0\0\0\0\0\0\0", 8), kInt64)}), ""),
      check("ConvOfAnotherChannelCount", model({node("Conv", {"x", "w"}, {"y"})}, {1, 3, 8, 8}, {tensor("w", {4, 5, 3, 3}, zeros(720))}), ""),
      check("ConvWithStrideZero", model({node("Conv", {"x", "w"}, {"y"}, {attribute("strides", Dims{0, 0})})}, {1, 1, 8, 8}, {tensor("w", {1, 1, 3, 3}, zeros(36))}), ""),
      check("PoolWindowTooLarge", model({node("MaxPool", {"x"}, {"y"}, {attribute("kernel_shape", Dims{9, 9})})}, {1, 1, 4, 4}), ""),
      check("ShapeOverflows", model({node("Relu", {"x"}, {"y"})}, {int64_t{1} << 40, int64_t{1} << 40}), ""),
      check("NegativeDimension", model({relu}, {-3, 2}), ""),
      check("TensorShapeOverflows", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {int64_t{1} << 32, int64_t{1} << 32}, zeros(4))}), ""),
      check("TensorOfFewerBytes", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {2, 3}, zeros(20))}), ""),
      check("TensorWithNegativeDimension", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {-2, 3}, zeros(24))}), ""),
      check("TensorOfUnknownType", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {2, 3}, zeros(24), 77)}), ""),
      check("TensorOfStrings", model({node("Add", {"x", "w"}, {"y"})}, {2, 3}, {tensor("w", {2, 3}, zeros(24), kString)}), ""),
      check("ExpandToMoreThanMemory", model({node("Expand", {"x", "s"}, {"y"})}, {1}, {tensor("s", {2}, std::string("\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x20", 16), kInt64)}), ""),
      check("GraphsTooDeep", model(Graph{{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", nested), graph_attribute("else_branch", nested)})}, {x, value("c", {}, 9)}, {y}}), ""),
      check("ControlCharactersInNames", model({node("Add", {"x", "no\x1b[31m\nwhere"}, {"y"})}), ""),
  };
}

static std::vector<Case> external_data() {
  const auto secret = [] { write("../secret", zeros(24)); };
  return {
      weights("DataMissing", external("w", {2, 3}, "w.bin"), ""),
      weights("DataInTheFolderAbove", external("w", {2, 3}, "../secret"), "", secret),
      weights("DataAboveByDetour", external("w", {2, 3}, "sub/../../secret"), "", [=] { secret(); std::filesystem::create_directory("sub"); }),
      weights("DataAtAnAbsolutePath", external("w", {2, 3}, "/etc/passwd"), ""),
      weights("DataBehindASymlink", external("w", {2, 3}, "w.bin"), "", [=] { secret(); std::filesystem::create_symlink("../secret", "w.bin"); }),
      weights("DataInASymlinkedFolder", external("w", {2, 3}, "sub/secret"), "", [=] { secret(); std::filesystem::create_symlink("..", "sub"); }),
      weights("DataBehindAHardLink", external("w", {2, 3}, "w.bin"), "", [=] { secret(); std::filesystem::create_hard_link("../secret", "w.bin"); }),
      weights("DataIsAFolder", external("w", {2, 3}, "w.bin"), "", [] { std::filesystem::create_directory("w.bin"); }),
      weights("DataTooShort", external("w", {2, 3}, "w.bin"), "", [] { write("w.bin", zeros(20)); }),
      weights("DataOfAnotherLength", external("w", {2, 3}, "w.bin", "", "20"), "", [] { write("w.bin", zeros(24)); }),
      weights("DataAtANegativeOffset", external("w", {2, 3}, "w.bin", "-8"), "", [] { write("w.bin", zeros(24)); }),
      weights("DataAtAHugeOffset", external("w", {2, 3}, "w.bin", "9223372036854775800"), "", [] { write("w.bin", zeros(24)); }),
      weights("DataWithoutAPlace", external("w", {2, 3}, ""), ""),
  };
}

std::vector<Case> onnx_cases() {
  std::vector<Case> all = broken_bytes();
  for (const auto& more : {broken_graphs(), external_data()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tenon::bad_input
