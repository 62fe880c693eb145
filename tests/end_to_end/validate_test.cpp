// SPDX-License-Identifier: Apache-2.0
// --validate over functions that a model does not bring itself.
#include "command.h"

namespace {

class ValidateTest : public tenon::testing_command::CommandTest {
 protected:
  ValidateTest() : CommandTest("validate", "") {}

  // A kernel that calls `twice` of a library, then adds `plus` to each element.
  void write_module(const std::string& name, const std::string& plus) const {
    write(name,
          "from tenon.script import ir as I, tir as T\n\n@I.ir_module\nclass Module:\n"
          "    @T.prim_func\n    def main(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), "
          "\"float32\")):\n"
          "        T.evaluate(T.call_extern(\"int32\", \"twice\", x.data, y.data, 8))\n"
          "        for i in range(8):\n            y[i] = y[i] + T.float32(" +
              plus + ")\n");
  }
};

TEST_F(ValidateTest, CallsLinkedLibraries) {
  write_module("m.py", "1");
  write("twice.c",
        "int twice(const float* x, float* y, int n) {\n"
        "  for (int i = 0; i < n; ++i) y[i] = 2 * x[i];\n  return 0;\n}\n");
  const auto run = tenon("run m.py --link twice.c --validate");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("validated"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("TN05"), std::string::npos) << run.err;
  // It is called, not passed over: one that computes something else each time is noticed.
  write("drifts.c",
        "int twice(const float* x, float* y, int n) {\n  static int calls;\n  ++calls;\n"
        "  for (int i = 0; i < n; ++i) y[i] = calls * x[i];\n  return 0;\n}\n");
  const auto drifts = tenon("run m.py --link drifts.c --validate");
  EXPECT_EQ(drifts.status, 70) << drifts.err;
  EXPECT_NE(drifts.err.find("changed what the program computes"), std::string::npos) << drifts.err;
}

TEST_F(ValidateTest, RefusesWhatItCannotRun) {
  write_module("m.py", "1");
  expect_error("run m.py --validate", 1, "error[TN0510]: --validate cannot compare what `");
  expect_error("run m.py --validate", 1, "no library is given");
  // Nor does it run what the model names of the system.
  write("s.py",
        "from tenon.script import ir as I, tir as T\n\n@I.ir_module\nclass Module:\n"
        "    @T.prim_func\n    def main(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), "
        "\"float32\")):\n"
        "        T.evaluate(T.call_extern(\"int32\", \"system\", \"touch happened\"))\n"
        "        for i in range(8):\n            y[i] = x[i]\n");
  EXPECT_EQ(tenon("opt s.py --passes LowerOpaqueBlock,Simplify --validate").status, 0);
  expect_error("run s.py --validate", 1, "with the rights of this process");
  EXPECT_FALSE(tenon::testing_command::fs::exists(folder_ + "/happened"));
}

TEST_F(ValidateTest, BisectBlamesNoPassForWhatCannotBeCompared) {
  write_module("m.py", "1");
  const auto found = tenon("bisect m.py");
  EXPECT_EQ(found.status, 1);
  EXPECT_EQ(found.out, "");
  EXPECT_NE(found.err.find("m.py:7:20: error[TN0510]"), std::string::npos) << found.err;
  EXPECT_FALSE(tenon::testing_command::fs::exists(folder_ + "/m.bisected.tvmscript"));
}

TEST_F(ValidateTest, BisectTellsOfLibrariesThatNothingCalls) {
  write("m.py",
        "from tenon.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n"
        "    @R.function\n    def main(x: R.Tensor((3,), \"float32\")):\n"
        "        with R.dataflow():\n            y = R.exp(x)\n            R.output(y)\n"
        "        return y\n");
  const auto found = tenon("bisect m.py --call-by-name nobody");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_NE(found.err.find("warning[TN0012]: m.py has no composite of `nobody`"), std::string::npos)
      << found.err;
}

}  // namespace
