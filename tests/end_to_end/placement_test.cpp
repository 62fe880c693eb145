// SPDX-License-Identifier: Apache-2.0
// What runs where, as the command line tells it.
#include <nlohmann/json.hpp>

#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::read;

class PlacementCommandTest : public CommandTest {
 protected:
  PlacementCommandTest() : CommandTest("placement") {}
  bool has_backend(const std::string& name) const {
    const std::string err = tenon("run x.onnx --libs no.such").err;
    return err.find(" " + name + ",") != std::string::npos;
  }
};

const std::string kDigits = "examples/digits/digits_b1.onnx";

TEST_F(PlacementCommandTest, UnknownBackEndsAreWrongUsage) {
  expect_error("run " + kDigits + " --libs dnnn", 2, "no back end `dnnn`");
  expect_error("run " + kDigits + " --libs dnnn", 2, "none");
  expect_error("opt " + kDigits + " --libs ,", 2, "a name is empty");
  expect_error("run " + kDigits + " --place conv1", 2, "expected NODE=PROVIDER");
  expect_error("run " + kDigits + " --place conv1=dnnn", 2, "no back end `dnnn`");
  expect_error("run " + kDigits + " --place conv1=none --place conv1=none", 2, "placed twice");
  expect_error("run " + kDigits + " --place conv9=none", 1, "error[TN0806]");
}

TEST_F(PlacementCommandTest, NodesArePlacedInKernels) {
  const std::string kernels = folder_ + "/k.py";
  const auto of = [](const std::string& name, const std::string& op, const std::string& when) {
    return "@T.prim_func\ndef " + name +
           "(x: T.Buffer((\"n\", \"m\"), \"float32\"), y: T.Buffer((\"n\", \"m\"), \"float32\")):\n"
           "    T.func_attr({\"op\": \"" +
           op + "\"" + when +
           "})\n"
           "    for i, j in T.grid(n, m):\n        y[i, j] = x[i, j]\n\n";
  };
  write("k.py", of("softmax_16", "nn.softmax", ", \"op_when\": \"m % 16 == 0\"") +
                    of("any_softmax", "nn.softmax", "") + of("my_relu", "nn.relu", ""));
  const std::string run = "run " + kDigits + " --kernels " + kernels + " --place ";
  const auto kernel_of = [&](const std::string& place) {
    const auto json = nlohmann::json::parse(tenon(run + place + " --json").out);
    for (const auto& one : json["offload"]["placements"])
      if (one["node"] == "probabilities")
        return one["provider"].get<std::string>() + " " +
               (one["by"].get<std::string>() + one["reason"].get<std::string>());
    return std::string();
  };
  EXPECT_EQ(kernel_of("probabilities=kernels"), "kernels any_softmax");
  EXPECT_EQ(kernel_of("probabilities=kernels.any_softmax"), "kernels any_softmax");
  EXPECT_EQ(kernel_of("probabilities=none"), "own code by-hand");
  expect_error(run + "probabilities=kernels.softmax_16", 1,
               "`softmax_16` (condition): `m % 16 == 0` does not hold with m = 10");
  expect_error(run + "probabilities=kernels.my_relu", 1,
               "`my_relu` is a kernel for `nn.relu`, and this is `nn.softmax`");
  expect_error(run + "relu1=kernels", 1, "`my_relu` (rank): `x` has rank 4");
  expect_error(run + "probabilities=kernels.softmax", 1, "no kernel `softmax`");
  expect_error("run " + kDigits + " --place probabilities=kernels", 1, "expected --kernels");
}

TEST_F(PlacementCommandTest, OffloadCanBeRequired) {
  EXPECT_EQ(tenon("run " + kDigits + " --require-offload 0%").status, 0);
  expect_error("run " + kDigits + " --require-offload 90%", 1, "error[TN0807]");
  expect_error("compile " + kDigits + " -o " + folder_ + "/m.so --require-offload 1%", 1,
               "error[TN0807]");
  expect_error("run " + kDigits + " --require-offload 90", 2, "expected 0% to 100%");
  expect_error("run " + kDigits + " --require-offload 101%", 2, "expected 0% to 100%");
  expect_error("run " + kDigits + " --require-offload =9%", 2, "expected 0% to 100%");
}

TEST_F(PlacementCommandTest, TheStoryOfANode) {
  const Outcome outcome = tenon("explain " + kDigits + " conv2");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part :
       {"node `conv2` (Conv)", "imported as", "R.nn.conv2d(", "after LegalizeOps", "R.call_tir(",
        "after LowerGraph", "placement    own code", "kernel       conv2d", "schedule ",
        "workspace + ", "constants", "symbols      fn.conv2d"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  // The symbol is one of the artefact.
  const auto json = nlohmann::json::parse(tenon("explain " + kDigits + " conv2 --json").out);
  ASSERT_EQ(tenon("compile " + kDigits + " -o " + folder_ + "/m.so").status, 0);
  const std::string symbol = json["symbols"][0];
  EXPECT_NE(read(folder_ + "/m.so").find(symbol + '\0'), std::string::npos) << symbol;
  EXPECT_EQ(json["kernels"].size(), 1U);
  EXPECT_GT(json["buffers"].size(), 1U);
}

// The plan of a node's kernel and the runner-up, with the times that the model predicts.
TEST_F(PlacementCommandTest, TheStoryHasThePlan) {
  const std::string command = "explain " + kDigits + " conv2 --target 'llvm -mcpu=haswell'";
  const std::string text = tenon(command).out;
  EXPECT_NE(
      text.find(
          "plan         conv2d_1 planned (tiles): `T_conv2d`: contraction: M v_i2[8] "
          "v_i3[8], N v_i1_0[2] v_i1_1[2], K v_k0[2] v_k1[3] v_k2[3] v_k3[8], lane "
          "v_i4[8]; tile 2 x 3 x 2 (rows, columns, vectors of 8 along N); v_k2 and v_k3 in one "
          "loop; 8 steps "
          "unrolled; rows cut into 4 tasks outside the weights; predicted 9.337 us; runner-up "
          "3 x 2 x 2: 9.412 us\n"),
      std::string::npos)
      << text;
  const auto plans = nlohmann::json::parse(tenon(command + " --json").out)["plans"];
  ASSERT_EQ(plans.size(), 2U) << plans;
  EXPECT_EQ(plans[0]["kernel"], "conv2d_1");
  EXPECT_EQ(plans[0]["block"], "T_conv2d");
  const auto& nest = plans[0]["nests"][0];
  EXPECT_EQ(nest["m"][1], nlohmann::json({{"axis", "v_i3"}, {"extent", 8}}));
  EXPECT_EQ(nest["tile"], nlohmann::json({{"rows", 2}, {"columns", 3}, {"vectors", 2}}));
  EXPECT_EQ(nest["runner_up"]["tile"],
            nlohmann::json({{"rows", 3}, {"columns", 2}, {"vectors", 2}}));
  EXPECT_GT(nest["predicted_us"], 9);
  EXPECT_GT(nest["runner_up"]["predicted_us"], nest["predicted_us"]);
  EXPECT_EQ(plans[1]["algorithm"], "elementwise");
  EXPECT_EQ(plans[1]["refused"][0]["algorithm"], "padding");
}

TEST_F(PlacementCommandTest, FusedNodesNameTheirGroup) {
  const Outcome outcome = tenon("explain " + kDigits + " relu2");
  EXPECT_NE(outcome.out.find("fused into   fused_"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("relu2, pool2"), std::string::npos) << outcome.out;
}

TEST_F(PlacementCommandTest, ANodeThatIsNotThereHasANearestName) {
  expect_error("explain " + kDigits + " cnv2", 1, "no node `cnv2`; did you mean `conv2`?");
}

TEST_F(PlacementCommandTest, DecisionsAreTheSameInEveryRun) {
  const std::string command = "explain " + kDigits + " --json";
  const std::string once = tenon(command).out;
  EXPECT_GT(once.size(), 100U);
  EXPECT_EQ(once, tenon(command).out);
  for (const std::string name : {"dnnl", "blas"}) {
    if (!has_backend(name)) continue;
    const std::string with = command + " --pass AnnotatePlacement --libs " + name;
    const std::string placed = tenon(with).out;
    EXPECT_NE(placed.find("AnnotatePlacement"), std::string::npos) << placed;
    if (name == "dnnl") EXPECT_NE(placed.find("\"placed\""), std::string::npos) << placed;
    EXPECT_EQ(placed, tenon(with).out);
  }
}

TEST_F(PlacementCommandTest, TheLineSaysWhereOperatorsRan) {
  if (!has_backend("dnnl")) GTEST_SKIP() << "this build has no oneDNN";
  const Outcome outcome = tenon("run " + kDigits + " --libs dnnl");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("operators  dnnl "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" of the arithmetic; own code "), std::string::npos) << outcome.out;
  const auto json = nlohmann::json::parse(tenon("run " + kDigits + " --libs dnnl --json").out);
  EXPECT_EQ(json["offload"]["providers"][0]["name"], "dnnl");
  EXPECT_EQ(json["own_operators"], json["offload"]["own_operators"]);
  ASSERT_EQ(tenon("compile " + kDigits + " --libs dnnl -o " + folder_ + "/m.so").status, 0);
  EXPECT_EQ(nlohmann::json::parse(read(folder_ + "/m.json"))["offload"], json["offload"]);
  // By hand a convolution stays with own code.
  const auto kept =
      nlohmann::json::parse(tenon("run " + kDigits + " --libs dnnl --place conv2=none --json").out);
  EXPECT_LT(kept["offload"]["share"], json["offload"]["share"]);
}

}  // namespace
