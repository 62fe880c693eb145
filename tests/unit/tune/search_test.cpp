// SPDX-License-Identifier: Apache-2.0
// The search over plans, with measurements that are made up.
#include "tenon/tune/search.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>

#include "tenon/script/parser.h"
#include "tenon/support/content_hash.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tune/machine.h"
#include "tenon/tune/part.h"

namespace tenon::tune {
namespace {

constexpr const char* kProduct = R"(
@I.ir_module
class Module:
    I.module_attrs({"target": "llvm -mcpu=haswell"})
    @T.prim_func
    def product(a: T.Buffer((64, 96), "float32"), b: T.Buffer((96, 64), "float32"), c: T.Buffer((64, 64), "float32")):
        for i, j, k in T.grid(64, 64, 96):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    c[vi, vj] = T.float32(0)
                c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
)";

Kernel product() {
  Kernel kernel;
  kernel.module = script::parse_module(kProduct);
  kernel.job.kernel = "product";
  kernel.job.hash = tir::plan_hash(kernel.module.find<tir::PrimFunc>("product"));
  kernel.job.target = "llvm -mcpu=haswell";
  return kernel;
}

// A plan's time follows from its text.
JobResult made_up(const Job& job) {
  JobResult result;
  result.hash = job.hash;
  result.plan = job.plan;
  result.machine = "here";
  result.machine_text = "a machine";
  Measurement& out = result.measurement;
  const char digit = content_hash(job.plan)[0];
  out.status = job.plan.empty() ? Status::kOk
               : digit == '0'   ? Status::kCrash
               : digit == '1'   ? Status::kWrong
                                : Status::kOk;
  out.default_us = 100;
  out.ratio = job.plan.empty() ? 1 : 0.8 + 0.02 * (digit % 16);
  return result;
}

class SearchTest : public testing::Test {
 protected:
  SearchTest() : path_(testing::TempDir() + "tenon_search_" + std::to_string(::getpid()) + ".db") {}
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + ending);
  }

  static SearchOptions options() {
    SearchOptions options;
    options.machine = "here";
    options.compiler = "1";
    options.threads = 1;
    return options;
  }
  static MeasureKey key() { return {product().job.hash, "llvm -mcpu=haswell", "here", 1, "1"}; }

  /// The plans of `count` jobs, one after the other; fewer where the search ends.
  std::vector<std::string> run(int count, const std::function<JobResult(const Job&)>& measure) {
    Database database(path_, Database::Open::kWrite);
    Search search({product()}, options(), database);
    std::vector<std::string> plans;
    for (int i = 0; i < count; ++i) {
      const std::vector<Job> jobs = search.next(1);
      if (jobs.empty()) break;
      plans.push_back(jobs[0].plan + std::to_string(jobs[0].stage));
      search.record(jobs[0], measure(jobs[0]));
    }
    return plans;
  }

  const std::string path_;
};

TEST_F(SearchTest, GoesOnWhereItWasEnded) {
  const std::vector<std::string> whole = run(30, made_up);
  ASSERT_EQ(whole.size(), 30U);
  EXPECT_EQ(whole[0], "0");                                     // the default plan
  EXPECT_EQ(std::set(whole.begin(), whole.end()).size(), 30U);  // nothing is measured twice
  TearDown();
  std::vector<std::string> parts;
  for (const int count : {1, 4, 10, 15})
    for (std::string& plan : run(count, made_up)) parts.push_back(std::move(plan));
  EXPECT_EQ(parts, whole);
}

TEST_F(SearchTest, TakesWhatIsFasterTwice) {
  run(60, made_up);
  const Database database(path_, Database::Open::kRead);
  const auto choice = database.choice(key());
  ASSERT_TRUE(choice);
  double least = 1;
  for (const Measurement& each : database.measurements(key()))
    if (each.stage == 1) least = std::min(least, each.ratio);
  EXPECT_EQ(choice->ratio, least);
  EXPECT_LT(choice->ratio, 0.97);
}

TEST_F(SearchTest, DoesNotTakeWhatIsFasterOnce) {
  run(60, [](const Job& job) {
    JobResult result = made_up(job);
    if (job.stage == 1) result.measurement.ratio = 0.99;
    return result;
  });
  EXPECT_FALSE(Database(path_, Database::Open::kRead).choice(key()));
}

// The next best plan takes the place of one that is not faster in the network, once.
TEST_F(SearchTest, GivesUpWhatTheNetworkRefutes) {
  run(60, made_up);
  Database database(path_, Database::Open::kWrite);
  const auto first = database.choice(key());
  ASSERT_TRUE(first);
  const size_t measured = database.measurements(key()).size();
  const auto give_up = [&] {
    Search search({product()}, options(), database);
    search.give_up(key().kernel, 100, 101, "the network as a whole");
    EXPECT_EQ(search.states().at(0).choice.has_value(), database.choice(key()).has_value());
  };
  give_up();
  const auto second = database.choice(key());
  ASSERT_TRUE(second);
  EXPECT_NE(second->plan, first->plan);
  EXPECT_GE(second->ratio, first->ratio);
  give_up();
  EXPECT_FALSE(database.choice(key()));
  give_up();  // there is none
  const std::vector<Measurement> all = database.measurements(key());
  ASSERT_EQ(all.size(), measured + 2);
  EXPECT_EQ(all.back().plan, second->plan);
  EXPECT_EQ(all.back().stage, 2);
  EXPECT_EQ(all.back().ratio, 1.01);
}

// A plan for one thread may be slow on two.
TEST_F(SearchTest, TakesPlansOfTheMostThreads) {
  Database database(path_, Database::Open::kWrite);
  MeasureKey one = key(), two = key();
  two.threads = 2;
  const auto plan = [&] {
    const auto choices = database.choices(one.target, one.machine);
    return choices.empty() ? "" : choices.at(one.kernel).plan;
  };
  Measurement measurement;
  measurement.plan = "a";
  database.add(one, measurement);
  database.choose(one, Choice{"a", 0.5});
  EXPECT_EQ(plan(), "a");
  database.add(two, measurement);
  EXPECT_EQ(plan(), "");
  database.choose(two, Choice{"b", 0.9});
  EXPECT_EQ(plan(), "b");
}

TEST_F(SearchTest, TakesNothingThatIsWrongOrCrashes) {
  run(60, [](const Job& job) {
    JobResult result = made_up(job);
    if (!job.plan.empty()) {
      result.measurement.status = Status::kWrong;
      result.measurement.ratio = 0.1;
    }
    return result;
  });
  EXPECT_FALSE(Database(path_, Database::Open::kRead).choice(key()));
}

TEST_F(SearchTest, LeavesKernelsWhoseDefaultPlanFails) {
  const auto fails = [](const Job& job) {
    JobResult result = made_up(job);
    result.measurement.status = Status::kTimeout;
    return result;
  };
  EXPECT_EQ(run(10, fails).size(), 1U);
  EXPECT_EQ(run(10, fails).size(), 0U);
}

TEST_F(SearchTest, KeepsResultsOfOtherMachinesApart) {
  Database database(path_, Database::Open::kWrite);
  Search search({product()}, options(), database);
  const std::vector<Job> jobs = search.next(1);
  JobResult result = made_up(jobs.at(0));
  result.machine = "elsewhere";
  search.record(jobs[0], result);
  MeasureKey elsewhere = key();
  elsewhere.machine = "elsewhere";
  EXPECT_EQ(database.measurements(key()).size(), 0U);
  EXPECT_EQ(database.measurements(elsewhere).size(), 1U);
  EXPECT_EQ(search.next(1).at(0).plan, "");  // again
  EXPECT_EQ(search.strays(), (std::map<std::string, int64_t>{{"elsewhere", 1}}));
}

TEST_F(SearchTest, ProposalsFitAndAreTheSameEachTime) {
  const Kernel kernel = product();
  Proposer one(kernel.module, kernel.job.hash, 2), other(kernel.module, kernel.job.hash, 2);
  const std::vector<Proposal> proposals = one.next_to(one.default_plan());
  const std::vector<Proposal> again = other.next_to(other.default_plan());
  ASSERT_GT(proposals.size(), 10U);
  ASSERT_EQ(proposals.size(), again.size());
  for (size_t i = 0; i < proposals.size(); ++i) {
    EXPECT_EQ(proposals[i].plan, again[i].plan);
    EXPECT_NE(proposals[i].plan, one.default_plan());
    EXPECT_FALSE(plans_of(proposals[i].plan, kernel.job.hash, "test").empty());
  }
}

// A column that fills no vector has one other form.
TEST_F(SearchTest, ProposesSumsInLanesForDots) {
  std::string text = kProduct;
  for (const std::string& old : {"(96, 64)", "(64, 64)"})
    for (size_t at = text.find(old); at != std::string::npos; at = text.find(old))
      text.replace(at, old.size(), old.substr(0, 5) + "65)");
  const size_t grid = text.find("64, 64, 96");
  text.replace(grid, 6, "64, 65");
  const IRModule module = script::parse_module(text);
  const std::string hash = tir::plan_hash(module.find<tir::PrimFunc>("product"));
  Proposer proposer(module, hash, 1);
  EXPECT_NE(proposer.default_plan().find("dots"), std::string::npos);
  const std::vector<Proposal> proposals = proposer.next_to(proposer.default_plan());
  EXPECT_EQ(std::count_if(proposals.begin(), proposals.end(),
                          [](const Proposal& each) {
                            return each.move == Move::kAlgorithm &&
                                   each.plan.find("dots") == std::string::npos &&
                                   each.plan.find("contraction") != std::string::npos;
                          }),
            1);
}

// One thread is no choice where there is only one.
TEST_F(SearchTest, ProposesOneThreadWhereThereAreSeveral) {
  const Kernel kernel = product();
  for (const int64_t threads : {1, 2}) {
    Proposer proposer(kernel.module, kernel.job.hash, threads);
    const std::vector<Proposal> proposals = proposer.next_to(proposer.default_plan());
    const auto serial = std::count_if(proposals.begin(), proposals.end(), [](const Proposal& each) {
      return each.move == Move::kSerial;
    });
    EXPECT_EQ(serial, threads - 1);
  }
}

// A part of a graph has its libraries in the place of plans.
TEST_F(SearchTest, MeasuresEachLibraryOfAPart) {
  Kernel part;
  part.job.kernel = "product";
  part.job.hash = "graph-0123456789abcdef";
  part.job.target = "llvm -mcpu=haswell";
  part.job.module = "own";
  part.providers = {{"slow.product", "a"}, {"fast.product", "b"}, {"bad.product", "c"}};
  const std::map<std::string, std::string> modules = {
      {"", "own"}, {"slow.product", "a"}, {"fast.product", "b"}, {"bad.product", "c"}};
  const std::map<std::string, double> ratios = {{"slow.product", 1.5}, {"fast.product", 0.5}};
  Database database(path_, Database::Open::kWrite);
  Search search({part}, options(), database);
  std::vector<std::string> seen;
  for (std::vector<Job> jobs = search.next(1); !jobs.empty(); jobs = search.next(1)) {
    JobResult result = made_up(jobs[0]);
    seen.push_back(jobs[0].plan);
    EXPECT_EQ(jobs[0].module, modules.at(jobs[0].plan));
    const auto ratio = ratios.find(jobs[0].plan);
    result.measurement.status =
        jobs[0].plan.empty() || ratio != ratios.end() ? Status::kOk : Status::kCrash;
    if (ratio != ratios.end()) result.measurement.ratio = ratio->second;
    search.record(jobs[0], result);
  }
  // Own code, each library, and the faster one again.
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<std::string>{"", "bad.product", "fast.product", "fast.product",
                                            "slow.product"}));
  ASSERT_TRUE(search.states().at(0).choice);
  EXPECT_EQ(search.states().at(0).choice->plan, "fast.product");
  using Verdicts = graph::UserPlacement::Providers;
  const Verdicts verdicts = {{"graph-0123456789abcdef bad.product", "crash"},
                             {"graph-0123456789abcdef fast.product", "faster"},
                             {"graph-0123456789abcdef slow.product", "slower"}};
  EXPECT_EQ(measured_parts(database, part.job.target, "here"), verdicts);
  EXPECT_EQ(measured_parts(database, part.job.target, "elsewhere"), Verdicts());
}

TEST(Jobs, ReadBackAsWritten) {
  Job job = product().job;
  job.plan = "[{\"block\": \"sum\"}]";
  job.stage = 1;
  job.seed = 7;
  job.dims = {{"n", 5}};
  job.link = {"/a.so"};
  job.plugins = {"/b.so"};
  job.is_cold = true;
  const std::string text = text_of(job);
  EXPECT_EQ(text_of(read_job("job.json", text)), text);
  const std::string result = text_of(made_up(job));
  EXPECT_EQ(text_of(read_result("result.json", result)), result);
  EXPECT_THROW(read_result("result.json", text), CompileError);
}

TEST(Machines, OfOneKindHaveOneFingerprint) {
  const Target target = parse_target("llvm -mcpu=haswell");
  const std::string first =
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
      "model name\t: Xeon\ncpu MHz\t\t: 2100.1\n";
  std::string faster = first, other = first;
  faster.replace(faster.find("2100"), 4, "3300");
  other.replace(other.find("143"), 3, "106");
  EXPECT_EQ(machine_of(first, target).text,
            "Xeon; vendor_id GenuineIntel; cpu family 6; model 143; " + target.str());
  EXPECT_EQ(machine_of(first, target).fingerprint, machine_of(faster, target).fingerprint);
  EXPECT_NE(machine_of(first, target).fingerprint, machine_of(other, target).fingerprint);
  EXPECT_NE(machine_of(first, target).fingerprint,
            machine_of(first, parse_target("llvm -mcpu=skylake-avx512")).fingerprint);
}

}  // namespace
}  // namespace tenon::tune
