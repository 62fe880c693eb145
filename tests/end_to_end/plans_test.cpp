// SPDX-License-Identifier: Apache-2.0
// Plans given by hand and kept: --plan and --write-plan.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"

namespace {

using nlohmann::json;
using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::read;
namespace fs = std::filesystem;

const std::string kDigits = "examples/digits/digits_b1.onnx";
const std::string kAvx2 = " --target 'llvm -mcpu=haswell'";

class PlansTest : public CommandTest {
 protected:
  PlansTest() : CommandTest("plans") {}

  // The plans that are chosen for the digits, for the target of an option.
  json chosen(const std::string& target) const {
    const Outcome outcome =
        tenon("explain " + kDigits + target + " --write-plan " + folder_ + "/chosen.json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(read(folder_ + "/chosen.json"));
  }
  // An option with the file of these plans.
  std::string given(const json& plans) const {
    write("given.json", plans.dump(2) + "\n");
    return " --plan " + folder_ + "/given.json";
  }
  void expect_same_files(const std::string& a, const std::string& b) const {
    size_t files = 0;
    for (const auto& file : fs::recursive_directory_iterator(folder_ + "/" + a)) {
      if (!file.is_regular_file()) continue;
      ++files;
      const fs::path other = folder_ / (b / fs::relative(file.path(), folder_ + "/" + a));
      EXPECT_TRUE(read(file.path().string()) == read(other.string())) << file.path();
    }
    EXPECT_GT(files, 0U);
  }
};

// What is written and read back makes the same artefacts, byte for byte.
TEST_F(PlansTest, WhatIsWrittenMakesTheSameArtefacts) {
  struct TargetCase {
    std::string target, emit;
  };
  const TargetCase targets[] = {{"llvm -mcpu=haswell", "so,asm,tvmscript"},
                                {"llvm -mcpu=skylake-avx512", "asm,tvmscript"},
                                {"llvm -mtriple=aarch64-linux-gnu", "asm,tvmscript"},
                                {"c", "c,tvmscript"}};
  for (const std::string& model : {kDigits, std::string("examples/digits/digits.onnx"),
                                   std::string("examples/c_library/network.onnx"),
                                   std::string("examples/kernel_calls/product.py")})
    for (const auto& [target, emit] : targets) {
      SCOPED_TRACE(model + " " + target);
      const auto compile = [&](const std::string& out, const std::string& plan) {
        const Outcome outcome =
            tenon("compile " + model + " --target '" + target + "' --emit " + emit + " -o " +
                  folder_ + "/" + out + " --write-plan " + folder_ + "/" + out + ".json" + plan);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.err, "");
      };
      compile("plain", "");
      compile("planned", " --plan " + folder_ + "/plain.json");
      expect_same_files("plain", "planned");
      EXPECT_EQ(read(folder_ + "/plain.json"), read(folder_ + "/planned.json"));
      fs::remove_all(folder_ + "/plain");
      fs::remove_all(folder_ + "/planned");
    }
}

// Plans that somebody changed: other tiles, another order of loops, other vectors, no tasks. The
// compiled network computes what the interpreter does, and so does every pass.
TEST_F(PlansTest, ChangedPlansComputeTheSame) {
  for (const std::string target :
       {" --target native", " --target c", " --target 'llvm -mcpu=x86-64-v2'"}) {
    SCOPED_TRACE(target);
    const json plans = chosen(target);
    json changed = plans;
    // Whether rows of padding suit depends on the tiles that read them.
    std::erase_if(changed["plans"].get_ref<json::array_t&>(),
                  [](const json& plan) { return plan["algorithm"] == "padding"; });
    for (json& plan : changed["plans"])
      for (json& nest : plan["nests"]) {
        json& tile = nest["tile"];
        std::swap(tile["rows"], tile["columns"]);
        if (tile["rows"] > 2 || nest["joins_rows"] == true || nest["m"].size() < 2)
          tile = {{"rows", 1}, {"columns", 1}, {"vectors", 1}};
        for (const char* role : {"batch", "k"}) std::reverse(nest[role].begin(), nest[role].end());
        nest["unrolled_fmas"] = 32;
        nest["tasks"] = nullptr;
        nest["prefetches"] = false;
      }
    const std::string option = given(changed);
    const std::string checks =
        target == " --target native" ? " --compare --validate" : " --compare";
    const Outcome run = tenon("run " + kDigits + target + option + checks);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err.find("warning"), std::string::npos) << run.err;
    // They were taken.
    tenon("explain " + kDigits + target + option + " --write-plan " + folder_ + "/taken.json");
    const json taken = json::parse(read(folder_ + "/taken.json"));
    size_t count = 0;
    for (const json& plan : changed["plans"])
      for (const json& other : taken["plans"]) {
        if (other["kernel"] != plan["kernel"] || other["block"] != plan["block"]) continue;
        ASSERT_EQ(other["nests"].size(), plan["nests"].size());
        for (size_t n = 0; n < plan["nests"].size(); ++n)
          for (const char* field : {"tile", "k", "unrolled_fmas", "tasks"}) {
            EXPECT_EQ(other["nests"][n][field], plan["nests"][n][field]);
            ++count;
          }
      }
    EXPECT_GT(count, 16U);
  }
  EXPECT_EQ(tenon("bench " + kDigits + " --repeat 1" + given(chosen(""))).status, 0);
}

// Columns that fill no vector are dot products, or, where a plan says so, sums in lanes as all others.
TEST_F(PlansTest, ColumnsThatFillNoVectorAreDotsOrContractions) {
  const std::string model = "tests/modules/products_of_odd_columns.py";
  // 33 columns, of which the last is the second nest.
  const auto last_nest = [&](const std::string& option) {
    const std::string out = folder_ + "/odd.json";
    EXPECT_EQ(tenon("explain " + model + kAvx2 + option + " --write-plan " + out).status, 0);
    const json plans = json::parse(read(out));
    for (const json& plan : plans["plans"])
      if (plan["kernel"] == "matmul") return plan["nests"].at(1);
    return json();
  };
  const json dots = last_nest("");
  EXPECT_EQ(dots["algorithm"], "dots");
  EXPECT_EQ(dots["lanes"], 8);
  json plans = json::parse(read(folder_ + "/odd.json"));
  EXPECT_EQ(last_nest(given(plans)), dots);
  json& nests = plans["plans"][0]["nests"];
  nests = json::array({json::object(), {{"algorithm", "contraction"}}});
  const json sums = last_nest(given(plans));
  EXPECT_EQ(sums["algorithm"], "contraction");
  EXPECT_EQ(sums["lanes"], 1);
  const Outcome run = tenon("run " + model + kAvx2 + given(plans) + " --compare");
  EXPECT_EQ(run.status, 0) << run.err;
  nests[1] = {{"algorithm", "dots"}, {"lanes", 4}};
  expect_error("explain " + model + kAvx2 + given(plans), 1,
               "error[TN0014]: `lanes` is 4; expected 8 of this nest");
}

TEST_F(PlansTest, WhatIsWrongWithPlansHasItsPlace) {
  json plans = chosen(kAvx2);
  const std::string compile = "compile " + kDigits + kAvx2 + " -o " + folder_ + "/m.so";
  json wide = plans;
  wide["plans"][0]["nests"][0]["tile"]["columns"] = 9;
  expect_error(compile + given(wide), 1,
               "error[TN0014]: `tile` has 9 columns; expected at most 8 of this nest");
  EXPECT_NE(tenon(compile + given(wide)).err.find("given.json:"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ + "/m.so"));
  json unknown = plans;
  unknown["plans"][0]["nests"][0]["tiles"] = 1;
  expect_error(compile + given(unknown), 1,
               "error[TN0014]: there is no field `tiles`; did you mean `tile`?");
  json both = wide;
  both["plans"][2]["nests"][0]["lanes"] = 5;
  const std::string told = tenon(compile + given(both)).err;
  EXPECT_NE(told.find("9 columns"), std::string::npos) << told;
  EXPECT_NE(told.find("`lanes` is 5; expected a power of two up to 8"), std::string::npos) << told;
  expect_error("compile " + kDigits + " --target c -o " + folder_ + "/c" + given(plans), 1,
               "the plans are for target");
  json elsewhere = plans;
  elsewhere["target"] = "llvm -mcpu=haswell";
  EXPECT_EQ(tenon(compile + given(elsewhere)).err, "");
  elsewhere["target"] = "tpu";
  expect_error(compile + given(elsewhere), 1, "given.json:");
  elsewhere.erase("target");
  EXPECT_EQ(tenon(compile + given(elsewhere)).err, "");
  expect_error(compile + " --plan " + folder_ + "/none.json", 1, "error[TN0002]");
  write("short.txt", "DeadCodeElimination\n");
  expect_error(compile + given(plans) + " --pipeline " + folder_ + "/short.txt", 2,
               "the pipeline does not contain DefaultSchedule, which takes plans");
  expect_error(
      compile + " --write-plan " + folder_ + "/none.json --pipeline " + folder_ + "/short.txt", 2,
      "the pipeline does not contain DefaultSchedule, which chooses plans");
  expect_error("run " + kDigits + " --interpret" + given(plans), 2, "error[TN0011]");
}

TEST_F(PlansTest, PlansThatNoBlockTakesAreTold) {
  json plans = chosen(kAvx2);
  plans["plans"][0]["kernel"] = "conv2d_l";
  plans["plans"][0]["hash"] = "0000000000000000";
  const Outcome kernel = tenon("explain " + kDigits + kAvx2 + given(plans));
  EXPECT_EQ(kernel.status, 0);
  EXPECT_NE(
      kernel.err.find("warning[TN0012]: plan of `conv2d_l/T_conv2d` is for no block of " + kDigits +
                      ": there is no kernel `conv2d_l` to schedule; did you mean "
                      "`conv2d_1`?"),
      std::string::npos)
      << kernel.err;
  EXPECT_NE(kernel.err.find("given.json:"), std::string::npos) << kernel.err;
  plans["plans"][0]["kernel"] = "conv2d_1";
  EXPECT_NE(tenon("run " + kDigits + kAvx2 + given(plans)).err.find("kernel `conv2d_1` has hash"),
            std::string::npos);
  plans["plans"][0].erase("hash");
  EXPECT_EQ(tenon("run " + kDigits + kAvx2 + given(plans)).err, "");
}

}  // namespace
