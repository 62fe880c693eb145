// SPDX-License-Identifier: Apache-2.0
// `tenon reduce` and `tenon bisect`, on faults that are made for it: kernels and rewriters of one's
// own that compute something else, and commands that fail on what stands in a model.
#include <nlohmann/json.hpp>

#include "command.h"

namespace {

namespace fs = std::filesystem;
using tenon::testing_command::read;

// A chain in which one operator matters.
constexpr const char* kChain = R"py(
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((6, 10), "float32"), w: R.Tensor((10, 12), "float32")) -> R.Tuple(R.Tensor((6, 12), "float32"), R.Tensor((6, 10), "float32")):
        with R.dataflow():
            a: R.Tensor((6, 10), "float32") = R.exp(x)
            b: R.Tensor((6, 10), "float32") = R.add(a, x)
            c: R.Tensor((6, 10), "float32") = R.nn.softmax(b, axis=-1)
            d: R.Tensor((6, 12), "float32") = R.matmul(c, w)
            e: R.Tensor((6, 12), "float32") = R.nn.relu(d)
            f: R.Tensor((6, 12), "float32") = R.sqrt(e)
            g: R.Tensor((6, 10), "float32") = R.negative(b)
            R.output(f, g)
        return (f, g)
)py";

// Says that sqrt(x) is x * x.
constexpr const char* kWrongRewriter = R"py(
@R.rewriter
class Wrong:
    @R.function
    def pattern(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        with R.dataflow():
            y = R.sqrt(x)
            R.output(y)
        return y

    @R.function
    def replacement(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        with R.dataflow():
            y = R.multiply(x, x)
            R.output(y)
        return y
)py";

class ReduceTest : public tenon::testing_command::CommandTest {
 protected:
  ReduceTest() : CommandTest("reduce", "") {}
  void SetUp() override {
    CommandTest::SetUp();
    // What is printed to show a fault again begins with `tenon`.
    const std::string path = fs::path(TENON_BINARY).parent_path().string() + ":";
    if (const char* old = std::getenv("PATH"); std::string(old).rfind(path, 0) != 0)
      setenv("PATH", (path + old).c_str(), 1);
    write("chain.py", kChain);
    write("wrong.py", kWrongRewriter);
  }
  nlohmann::json json(const std::string& arguments, int status = 0) {
    const auto outcome = tenon(arguments + " --json");
    EXPECT_EQ(outcome.status, status) << outcome.out << outcome.err;
    const auto parsed = nlohmann::json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << outcome.out << outcome.err;
    return parsed;
  }
  std::string file(const std::string& name) const { return read(folder_ + "/" + name); }
};

TEST_F(ReduceTest, AModuleKeepsWhatTheCommandNeeds) {
  const auto result = json("reduce chain.py --fails '! grep -q nn.softmax'");
  const std::string text = file("chain.reduced.tvmscript");
  EXPECT_NE(text.find("R.nn.softmax"), std::string::npos) << text;
  for (const char* gone : {"R.exp", "R.matmul", "R.sqrt", "R.negative", "(6, ", "w:"})
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << "\n" << text;
  EXPECT_EQ(result["after"], "1 function, 1 binding");
  // The command that is printed shows it again.
  EXPECT_NE(shell(result["command"]).status, 0);
}

TEST_F(ReduceTest, AWrongResultIsReducedWithItsPasses) {
  const auto result = json(
      "reduce chain.py --wrong --passes 'InlineFunctions, RewritePatterns(file=\"wrong.py\"), "
      "DeadCodeElimination'");
  const std::string text = file("chain.reduced.tvmscript");
  EXPECT_NE(text.find("R.sqrt"), std::string::npos) << text;
  EXPECT_EQ(text.find("R.matmul"), std::string::npos) << text;
  const std::string command = result["command"];
  EXPECT_NE(command.find("--compare --passes 'RewritePatterns(file=\"wrong.py\")'"),
            std::string::npos)
      << command;
}

TEST_F(ReduceTest, ANetworkThatCannotBeImportedStaysANetwork) {
  // The file ends inside of a tensor: there is no module to reduce.
  const std::string digits = read(TENON_SOURCE_DIR "/examples/digits/digits_b1.onnx");
  write("cut.onnx", digits.substr(0, digits.size() / 2));
  const auto whole = tenon("check cut.onnx");
  ASSERT_EQ(whole.status, 1);
  const auto result = json("reduce cut.onnx --fails 'tenon check' --time-limit 20");
  const std::string reduced = file("cut.reduced.onnx");
  EXPECT_LT(reduced.size(), digits.size() / 10) << result.dump(2);
  EXPECT_EQ(tenon("check cut.reduced.onnx").status, 1);
}

TEST_F(ReduceTest, ATextThatCannotBeParsedStaysAText) {
  write("broken.py", std::string(kChain) + "\n    def f(:\n        pass\n");
  const auto result = json("reduce broken.py --fails 'tenon check'");
  EXPECT_LT(file("broken.reduced.py").size(), 200u) << file("broken.reduced.py");
  const auto again = tenon("check broken.reduced.py"), first = tenon("check broken.py");
  EXPECT_EQ(again.status, 1);
  const auto code = [](const std::string& text) { return text.substr(text.find("error["), 13); };
  EXPECT_EQ(code(again.err), code(first.err));
}

TEST_F(ReduceTest, WhatDoesNotFailIsSaid) {
  expect_error("reduce chain.py --wrong", 1, "nothing to reduce: `tenon run chain.py --compare`");
  expect_error("reduce chain.py --crashes --passes Nothing", 1,
               "expected a signal, an internal error or the time limit");
  expect_error("reduce chain.py", 2, "expected one of --fails CMD, --wrong and --crashes");
  expect_error("reduce chain.py --fails false --target c", 2, "--target is an option");
}

TEST_F(ReduceTest, BisectNamesThePass) {
  const auto result =
      json("bisect chain.py --passes 'InlineFunctions, RewritePatterns(file=\"wrong.py\")'", 1);
  EXPECT_EQ(result["pass"], "RewritePatterns(file=\"wrong.py\")");
  EXPECT_EQ(result["number"], 2);
  EXPECT_EQ(result["functions"], std::vector<std::string>{"main"});
  const std::string text = file("chain.bisected.tvmscript");
  EXPECT_NE(text.find("R.sqrt"), std::string::npos) << text;
  EXPECT_EQ(result["after"], "1 function, 1 binding") << text;
  EXPECT_EQ(shell(result["command"]).status, 70);
}

TEST_F(ReduceTest, BisectNamesNothingWhereAllIsRight) {
  const auto outcome = tenon("bisect chain.py");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("every pass and the generated code compute what"), std::string::npos)
      << outcome.out;
}

TEST_F(ReduceTest, RunComparesWithTheInterpreter) {
  EXPECT_EQ(tenon("run chain.py --compare").status, 0);
  expect_error("run chain.py --compare --passes 'RewritePatterns(file=\"wrong.py\")'", 1,
               "error[TN0903]: chain.py: output `output_0` is not what the interpreter computes");
  ASSERT_EQ(tenon("compile chain.py -o chain.so").status, 0);
  expect_error("run chain.so --compare", 2,
               "error[TN0011]: --compare would have no effect with a compiled .so");
}

}  // namespace
