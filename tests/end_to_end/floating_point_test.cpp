// SPDX-License-Identifier: Apache-2.0
// --fp: which forms of convolutions a program gets, on every kind of target, and that its results
// are those of the interpreter and do not depend on the number of threads.
#include <nlohmann/json.hpp>

#include "command.h"

namespace {

class FloatingPointTest : public tenon::testing_command::CommandTest {
 protected:
  FloatingPointTest() : CommandTest("floating_point", "") {}

  void SetUp() override {
    CommandTest::SetUp();
    write("m.py",
          "from tenon.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n"
          "    @R.function\n"
          "    def main(x: R.Tensor((1, 16, 13, 18), \"float32\")) -> "
          "R.Tensor((1, 32, 13, 18), \"float32\"):\n"
          "        steps = R.arange(0, 4608, 1, dtype=\"float32\")\n"
          "        scaled = R.multiply(R.sin(steps), R.const(0.1, \"float32\"))\n"
          "        w = R.reshape(scaled, (32, 16, 3, 3))\n"
          "        y = R.nn.conv2d(x, w, padding=(1, 1))\n"
          "        z = R.nn.relu(y)\n"
          "        return z\n");
  }

  bool is_winograd(const std::string& options) const {
    const auto told = tenon("explain m.py " + options);
    EXPECT_EQ(told.status, 0) << told.err;
    return told.out.find("planned (winograd)") != std::string::npos;
  }
};

TEST_F(FloatingPointTest, FastComputesTheSame) {
  for (const char* target : {"llvm", "llvm -mcpu=haswell", "c"}) {
    const std::string options = std::string("--fp=fast --target \"") + target + "\"";
    EXPECT_TRUE(is_winograd(options)) << target;
    const auto run = tenon("run m.py --compare " + options);
    EXPECT_EQ(run.status, 0) << run.err;
  }
  const auto validated = tenon("run m.py --fp=fast --validate");
  EXPECT_EQ(validated.status, 0) << validated.err;
}

TEST_F(FloatingPointTest, StrictKeepsToSumsTermByTerm) {
  EXPECT_FALSE(is_winograd("--fp=strict"));
  EXPECT_FALSE(is_winograd("--target c"));
}

// The wide tensor behind the convolution is the program's peak, which leaves room for its tiles.
TEST_F(FloatingPointTest, AutoTakesWhatMemoryIsThere) {
  EXPECT_FALSE(is_winograd("")) << "nothing else is in memory of the program";
  std::string text = tenon::testing_command::read(folder_ + "/m.py");
  const auto put = [&](const std::string& before, const std::string& after) {
    const size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, before.size(), after);
  };
  put("(1, 32, 13, 18)", "(1, 16, 104, 144)");
  put("z = R.nn.relu(y)",
      "wide = R.image.resize2d(R.nn.relu(y), (104, 144))\n"
      "        z = R.nn.conv2d(wide, R.zeros((16, 32, 1, 1), \"float32\"))");
  write("m.py", text);
  EXPECT_TRUE(is_winograd("")) << text;
  EXPECT_TRUE(is_winograd("--fp=auto"));
  EXPECT_FALSE(is_winograd("--fp=auto --target c"));
  const auto peak = [&](const std::string& options) {
    const auto run = tenon("run m.py --json " + options);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out).at("planned_bytes").get<int64_t>();
  };
  EXPECT_EQ(peak(""), peak("--fp=strict"));
  EXPECT_EQ(tenon("run m.py --compare").status, 0);
}

TEST_F(FloatingPointTest, ThreadsDoNotMatter) {
  for (const char* threads : {"1", "2", "3"}) {
    const auto run = tenon(std::string("run m.py --fp=fast --seed 3 --threads ") + threads +
                           " --out out" + threads);
    ASSERT_EQ(run.status, 0) << run.err;
  }
  EXPECT_EQ(shell("diff -r out1 out2 && diff -r out1 out3").status, 0);
}

TEST_F(FloatingPointTest, PlansAreReadBack) {
  ASSERT_EQ(tenon("compile m.py --fp=fast -o a.so --write-plan plans.json").status, 0);
  const std::string plans = tenon::testing_command::read(folder_ + "/plans.json");
  ASSERT_NE(plans.find("\"winograd\": {\"tile\":4,\"block_tiles\":"), std::string::npos) << plans;
  const auto taken =
      tenon("compile m.py --fp=fast -o b.so --plan plans.json --write-plan again.json");
  EXPECT_EQ(taken.status, 0) << taken.err;
  EXPECT_EQ(tenon::testing_command::read(folder_ + "/again.json"), plans);
  // Another form is a choice; where sums are computed term by term there is none.
  write("two.json",
        "{\"version\": 1, \"plans\": [{\"kernel\": \"conv2d\", \"block\": \"T_conv2d\", "
        "\"algorithm\": \"winograd\", \"winograd\": {\"tile\": 2, \"block_tiles\": 9}}]}");
  EXPECT_EQ(tenon("run m.py --fp=fast --plan two.json --compare").status, 0);
  expect_error("run m.py --fp=strict --plan plans.json", 1, "error[");
}

}  // namespace
