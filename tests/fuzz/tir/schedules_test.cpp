// SPDX-License-Identifier: Apache-2.0
// A small count of random schedules; fuzz_tir runs as many as one likes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "judge.h"
#include "tenon/tir/schedule/primitives.h"

namespace tenon::fuzz {
namespace {

TEST(RandomSchedules, EveryPrimitiveHasAGenerator) {
  for (const tir::Primitive& primitive : tir::all_primitives())
    EXPECT_TRUE(step_generators().count(primitive.name)) << primitive.name;
  for (const auto& [name, generator] : step_generators())
    EXPECT_NE(tir::find_primitive(name), nullptr) << name;
}

TEST(RandomSchedules, KeepWhatIsComputed) {
  StepCounts counts;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const auto fault = run_case(random_schedule_case(seed), nullptr, &counts);
    ASSERT_FALSE(fault) << "fuzz_tir --kind schedules --count 1 --seed " << seed << "\n"
                        << fault->kind << "\n"
                        << fault->detail;
  }
  for (const tir::Primitive& primitive : tir::all_primitives())
    EXPECT_GT(counts.by_primitive[primitive.name].tried, 0) << primitive.name;
}

// ---- what random schedules have found: modules with the text of a trace and what is expected of
// it (cases/*.py)

std::vector<std::string> known_cases() {
  std::vector<std::string> out;
  for (const auto& file :
       std::filesystem::directory_iterator(TENON_SOURCE_DIR "/tests/fuzz/tir/cases"))
    out.push_back(file.path().stem());
  std::sort(out.begin(), out.end());
  return out;
}

class KnownSchedule : public testing::TestWithParam<std::string> {};

TEST_P(KnownSchedule, IsRefusedOrKeepsWhatIsComputed) {
  std::ifstream file(TENON_SOURCE_DIR "/tests/fuzz/tir/cases/" + GetParam() + ".py");
  std::stringstream text;
  text << file.rdbuf();
  const KnownCase known = known_case_of(text.str());
  ASSERT_FALSE(known.expected.empty());
  EXPECT_EQ(outcome_of(known), known.expected);
}

INSTANTIATE_TEST_SUITE_P(RandomSchedules, KnownSchedule, testing::ValuesIn(known_cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon::fuzz
