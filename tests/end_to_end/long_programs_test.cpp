// SPDX-License-Identifier: Apache-2.0
// Programs of many thousand operators, and of deep nests, with the stack that a shell gives: what
// is as long as the input is iterated, what nests too deep is refused.
#include "command.h"

namespace {

using tenon::testing_command::Said;

constexpr const char* kHead =
    "from tenon.script import ir as I, relax as R, tir as T\n"
    "@I.ir_module\n"
    "class Module:\n";

class LongProgramsTest : public tenon::testing_command::CommandTest {
 protected:
  LongProgramsTest() : CommandTest("long_programs") {}

  Said tenon(const std::string& command, const std::string& script) const {
    write("program.py", kHead + script);
    return shell("ulimit -s 8192; timeout 600 " TENON_BINARY " " + command + " " + folder_ +
                 "/program.py");
  }
  /// The mean of the only output of a run of `main`, whose body is given.
  double mean_of_run(const std::string& signature, const std::string& body) const {
    const Said outcome = tenon("run --threads 1", "    @R.function\n    def main" + signature +
                                                      ":\n        with R.dataflow():\n" + body);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    const size_t outputs = outcome.text.find("\noutputs\n");
    const size_t mean = outcome.text.find("mean ", outputs);
    if (outputs == std::string::npos || mean == std::string::npos) {
      ADD_FAILURE() << outcome.text;
      return 0;
    }
    return std::atof(outcome.text.c_str() + mean + 5);
  }
};

std::string line(int i, const std::string& value) {
  return "            x" + std::to_string(i) + " = " + value + "\n";
}
std::string x(int i) { return "x" + std::to_string(i); }
std::string result(int i) {
  return "            R.output(x" + std::to_string(i) + ")\n        return x" + std::to_string(i) +
         "\n";
}

TEST_F(LongProgramsTest, AChainThatFuses) {
  constexpr int kLength = 20000;
  std::string body;
  for (int i = 0; i < kLength; ++i)
    body += line(i + 1, "R.add(" + x(i) + ", R.const(1, \"float32\"))");
  EXPECT_NEAR(mean_of_run("(x0: R.Tensor((1, 8), \"float32\"))", body + result(kLength)), kLength,
              1);
}

TEST_F(LongProgramsTest, AChainThatDoesNot) {
  constexpr int kLength = 5000;
  std::string body;
  for (int i = 0; i < kLength; ++i) body += line(i + 1, "R.nn.softmax(" + x(i) + ")");
  EXPECT_NEAR(mean_of_run("(x0: R.Tensor((1, 8), \"float32\"))", body + result(kLength)), 0.125,
              1e-6);
}

TEST_F(LongProgramsTest, AChainOfChangingShapes) {
  constexpr int kRounds = 300, kShapes = 20;
  std::string body;
  int n = 0;
  for (int i = 1; i <= kRounds; ++i) {
    const int width = 8 + i % kShapes;
    body += line(n + 1, "R.concat((" + x(n) + ", " + x(n) + ", " + x(n) + "), axis=1)");
    body += line(n + 2, "R.strided_slice(" + x(n + 1) + ", axes=[1], begin=[0], end=[" +
                            std::to_string(width) + "])");
    body += line(n + 3, "R.nn.softmax(" + x(n + 2) + ")");
    n += 3;
  }
  EXPECT_NEAR(mean_of_run("(x0: R.Tensor((1, 8), \"float32\"))", body + result(n)),
              1.0 / (8 + kRounds % kShapes), 1e-6);
}

// ---- nests

std::string nested_branches(int depth) {
  std::string text =
      "    @R.function\n    def main(x: R.Tensor((8,), \"float32\"), c: R.Tensor((), \"bool\")) -> "
      "R.Tensor((8,), \"float32\"):\n";
  std::string pad(8, ' ');
  for (int i = 0; i < depth; ++i) {
    text += pad + "if c:\n";
    pad += "    ";
  }
  text += pad + "y: R.Tensor((8,), \"float32\") = R.nn.relu(x)\n";
  for (int i = 0; i < depth; ++i) {
    pad.resize(pad.size() - 4);
    text += pad + "else:\n" + pad + "    y: R.Tensor((8,), \"float32\") = R.negative(x)\n";
  }
  return text + "        return y\n";
}

TEST_F(LongProgramsTest, NestedBranches) {
  const Said shallow = tenon("run", nested_branches(60));
  EXPECT_EQ(shallow.status, 0) << shallow.text;
  const Said deep = tenon("run", nested_branches(350));
  EXPECT_EQ(deep.status, 1) << deep.text;
  EXPECT_NE(deep.text.find("error[TN0205]"), std::string::npos) << deep.text;
}

TEST_F(LongProgramsTest, NestedCalls) {
  const auto calls = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) {
      const std::string name = i == 0 ? "main" : "f" + std::to_string(i);
      text += "    @T.prim_func" + std::string(i ? "(private=True)" : "") + "\n    def " + name +
              "(a: T.Buffer((8,), \"float32\")):\n";
      text += i + 1 < depth ? "        T.call_tir(cls.f" + std::to_string(i + 1) + ", a[0:8])\n"
                            : "        a[0] = T.float32(1)\n";
    }
    return text;
  };
  EXPECT_EQ(tenon("check", calls(100)).status, 0);
  const Said deep = tenon("check", calls(20000));
  EXPECT_EQ(deep.status, 1);
  EXPECT_NE(deep.text.find("error[TN0205]: calls nest 129 deep from `f19871` on; expected at most "
                           "128"),
            std::string::npos)
      << deep.text.substr(0, 1000);
}

}  // namespace
