// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

KernelClock::time_point at(int64_t microseconds) {
  return KernelClock::time_point(std::chrono::microseconds(1'000'000 + microseconds));
}

// Two passes, then a run of two kernels, the first of which is a loop that a worker shares in.
Trace small_trace() {
  Trace trace;
  trace.model = "net.onnx";
  trace.steps = {{"import", {at(0), at(10)}}, {"FuseOps", {at(10), at(25)}}};
  trace.calls = {{"conv", Origin::model("net.onnx", "conv1", "Conv")}, {"softmax", {}}};
  trace.live_bytes = {4096, -1};
  trace.runs = {{at(100), at(160)}};
  trace.events = {{0, at(101), at(140)}, {1, at(140), at(159)}};
  trace.parts = {{0, at(102), at(139), 5}, {1, at(104), at(120), 1}};
  return trace;
}

std::vector<Json> slices(const Json& trace, int process, int thread) {
  std::vector<Json> out;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == process && event["tid"] == thread)
      out.push_back(event);
  return out;
}

TEST(Trace, StepsAreOneTrack) {
  const Json trace = json_of(small_trace());
  const std::vector<Json> steps = slices(trace, 1, 0);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[1]["name"], "FuseOps");
  EXPECT_EQ(steps[1]["ts"], 10.0);
  EXPECT_EQ(steps[1]["dur"], 15.0);
}

TEST(Trace, KernelsLieInTheirRunAndLoopsInTheirKernel) {
  const Json trace = json_of(small_trace());
  const std::vector<Json> caller = slices(trace, 2, 0);
  ASSERT_EQ(caller.size(), 4U);  // the run, two kernels, a part of a loop
  const auto inside = [](const Json& a, const Json& b) {
    return b["ts"].get<double>() <= a["ts"].get<double>() &&
           a["ts"].get<double>() + a["dur"].get<double>() <=
               b["ts"].get<double>() + b["dur"].get<double>();
  };
  EXPECT_EQ(caller[0]["name"], "run 1");
  EXPECT_EQ(caller[1]["name"], "conv");
  EXPECT_EQ(caller[1]["args"]["node"], "conv1");
  EXPECT_TRUE(inside(caller[1], caller[0]));
  EXPECT_TRUE(inside(caller[2], caller[0]));
  EXPECT_EQ(caller[3]["name"], "conv (5 tasks)");
  EXPECT_TRUE(inside(caller[3], caller[1]));
  const std::vector<Json> worker = slices(trace, 2, 1);
  ASSERT_EQ(worker.size(), 1U);
  EXPECT_EQ(worker[0]["name"], "conv (1 task)");
}

TEST(Trace, MemoryIsACounterWhereItIsKnown) {
  const Json trace = json_of(small_trace());
  std::vector<std::pair<double, int64_t>> counts;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "C") counts.emplace_back(event["ts"], event["args"]["bytes"]);
  EXPECT_EQ(counts, (std::vector<std::pair<double, int64_t>>{{101.0, 4096}, {160.0, 0}}));
}

TEST(Trace, EveryTrackHasAName) {
  const Json trace = json_of(small_trace());
  const auto track = [](const Json& event) {
    return std::pair(event["pid"].get<int>(), event["tid"].get<int>());
  };
  std::set<std::pair<int, int>> named;
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "thread_name") named.insert(track(event));
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") EXPECT_TRUE(named.count(track(event))) << event;
  EXPECT_EQ(trace["otherData"]["kernel_runs_left_out"], 0);
}

TEST(Trace, StepsEndWhereTheNextBegins) {
  StepClock clock;
  clock.end();  // of nothing
  clock.begin("a");
  clock.begin("b");
  clock.end();
  ASSERT_EQ(clock.steps().size(), 2U);
  EXPECT_LE(clock.steps()[0].time.begin, clock.steps()[0].time.end);
  EXPECT_LE(clock.steps()[0].time.end, clock.steps()[1].time.begin);
  EXPECT_LE(clock.steps()[1].time.begin, clock.steps()[1].time.end);
}

TEST(KernelTimes, CallsAreFoundInThePlanInTheirOrder) {
  ProgramPlan plan;
  const Origin a = Origin::model("m", "a", "Conv"), b = Origin::model("m", "b", "Conv");
  for (const auto& [callee, origin] : {std::pair{"f", a}, {"g", a}, {"f", a}, {"f", b}}) {
    ProgramPlan::Call& call = plan.calls.emplace_back();
    call.callee = callee;
    call.origin = origin;
  }
  EXPECT_EQ(planned_calls({{"f", b}, {"f", a}, {"f", a}, {"f", a}, {"h", a}, {"g", a}}, plan),
            (std::vector<int64_t>{3, 0, 2, -1, -1, 1}));
}

}  // namespace
}  // namespace tenon
