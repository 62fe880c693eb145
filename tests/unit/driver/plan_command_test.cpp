// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/plan_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tenon {

namespace {

struct Outcome {
  int status;
  std::string out, err;
};

class PlanCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tenon_plan_command_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  PlanCommand command(const std::string& csv) const {
    PlanCommand result;
    result.problem = folder_ + "/in.csv";
    std::ofstream(result.problem) << csv;
    return result;
  }
  static Outcome run(const PlanCommand& command) {
    std::ostringstream out, err;
    const int status = run_plan_command(command, out, err);
    return {status, out.str(), err.str()};
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
};

constexpr const char* kThree = "id,lower,upper,size\na,0,2,4\nb,1,3,6\nc,2,4,4\n";

}  // namespace

TEST_F(PlanCommandTest, ReportsAndWritesOffsets) {
  PlanCommand plan = command(kThree);
  plan.out = folder_ + "/out.csv";
  const Outcome outcome = run(plan);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with("\npeak 10 bytes, lower bound 10 bytes\n")) << outcome.out;
  EXPECT_NE(outcome.out.find("step 1: 10 bytes: b (6) a (4)"), std::string::npos) << outcome.out;
  // The chart: four steps, `b` in the middle two.
  EXPECT_NE(outcome.out.find("6 | ## |"), std::string::npos) << outcome.out;
  EXPECT_TRUE(read(plan.out).starts_with("id,lower,upper,size,offset\na,0,2,4,")) << read(plan.out);
}

TEST_F(PlanCommandTest, Json) {
  PlanCommand plan = command(kThree);
  plan.capacity = 12;
  plan.format = PlanCommand::Format::kJson;
  const auto json = nlohmann::json::parse(run(plan).out);
  EXPECT_EQ(json["pools"][0]["peak"], 10);
  EXPECT_EQ(json["pools"][0]["capacity"], 12);
  EXPECT_EQ(json["buffers"][1]["id"], "b");
}

TEST_F(PlanCommandTest, ShowsEveryBufferOfEveryPool) {
  PlanCommand plan = command(kThree);
  plan.pools = {"fast=6", "slow=1KiB"};
  const Outcome outcome = run(plan);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("pool fast: peak 6 bytes"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(", capacity 6 bytes"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("pool slow: peak 4 bytes"), std::string::npos) << outcome.out;
  plan.format = PlanCommand::Format::kJson;
  const auto json = nlohmann::json::parse(run(plan).out);
  EXPECT_EQ(json["pools"].size(), 2u);
  EXPECT_EQ(json["buffers"].size(), 3u);
  EXPECT_EQ(json["buffers"][1]["pool"], "fast");

  const auto refuse = [&](std::vector<std::string> pools) {
    plan.pools = std::move(pools);
    const Outcome refused = run(plan);
    EXPECT_EQ(refused.status, 1);
    return refused.err;
  };
  EXPECT_NE(refuse({"fast=6", "slow=1"}).find("(10 in all); `fast` alone would need 10"),
            std::string::npos);
  EXPECT_NE(refuse({"flash=ro"}).find("expected flash=SIZE"), std::string::npos);
  plan.capacity = 9;
  EXPECT_NE(refuse({"fast=6"}).find("the pools have their own"), std::string::npos);
  plan.capacity.reset();
  plan.out = folder_ + "/out.csv";
  EXPECT_NE(refuse({"fast=6", "slow"}).find("no column for pools"), std::string::npos);
}

TEST_F(PlanCommandTest, StatusSaysWhoIsAtFault) {
  PlanCommand plan = command(kThree);
  plan.capacity = 9;
  Outcome outcome = run(plan);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("no plan needs less than 10"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");

  outcome = run(command("id,lower,upper,size\na,0,2,?\n"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("in.csv:2:7: error[TN0701]: size `?` is not a whole number"),
            std::string::npos)
      << outcome.err;

  plan = command(kThree);
  plan.out = folder_ + "/missing/out.csv";
  EXPECT_EQ(run(plan).status, 1);

  plan = command(kThree);
  plan.capacity = -1;
  EXPECT_EQ(run(plan).status, 2);
  plan.capacity.reset();
  plan.time_limit = -0.5;
  EXPECT_EQ(run(plan).status, 2);
}

}  // namespace tenon
