// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/plan.h"

#include <algorithm>

#include "problems.h"
#include "tenon/memory/bounds.h"
#include "tenon/memory/pools.h"

namespace tenon::memory {

static Plan placed(const Problem& problem, std::vector<int64_t> offsets, int64_t peak) {
  Plan plan;
  plan.offsets = std::move(offsets);
  plan.pools.resize(problem.pools.size());
  for (PoolPlan& pool : plan.pools) pool.peak = peak;
  return plan;
}

TEST(CheckPlan, AcceptsTouchingInSpaceAndInTime) {
  const Problem problem{{buffer("a", 0, 2, 8), buffer("b", 0, 2, 8), buffer("c", 2, 3, 16)}};
  EXPECT_EQ(check_plan(problem, placed(problem, {0, 8, 0}, 16)), std::nullopt);
}

TEST(CheckPlan, FindsAnOverlapOfOneByteAtOneStep) {
  const Problem problem{{buffer("a", 0, 3, 8), buffer("b", 2, 4, 8)}};
  EXPECT_EQ(check_plan(problem, placed(problem, {0, 7}, 16)),
            "buffers `a` at [0, 8) and `b` at [7, 15) overlap, and both are alive at step 2");
}

TEST(CheckPlan, FindsWhatIsOutOfPlace) {
  const Problem problem{{buffer("a", 0, 3, 8, 4)}};
  EXPECT_EQ(check_plan(problem, placed(problem, {-4}, 16)), "buffer `a` is at negative offset -4");
  EXPECT_EQ(check_plan(problem, placed(problem, {2}, 16)),
            "buffer `a` is at offset 2, which is no multiple of its alignment 4");
  EXPECT_EQ(check_plan(problem, placed(problem, {8}, 15)),
            "buffer `a` ends at 16, above the stated peak 15 of pool `workspace`");
  EXPECT_EQ(check_plan(problem, placed(problem, {INT64_MAX - 3}, 15)),
            "buffer `a` is at offset 9223372036854775804, and its end overflows");
  EXPECT_EQ(check_plan(problem, placed(problem, {}, 15)), "0 offsets for 1 buffers");
}

TEST(CheckPlan, FindsEveryPlantedOverlap) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Problem problem = random_problem({60, 40, 15, 100}, seed);
    Plan good = plan(problem, {.work_limit = 100'000});
    // Any two that conflict, moved onto one another.
    std::mt19937 random(seed);
    const size_t i = random() % 60;
    for (size_t j = 0; j < 60; ++j) {
      const Allocation &a = problem.buffers[i], &b = problem.buffers[j];
      if (i == j || a.bytes == 0 || b.bytes == 0 || a.lower >= b.upper || b.lower >= a.upper)
        continue;
      Plan bad = good;
      bad.offsets[i] = bad.offsets[j] + b.bytes - 1;
      bad.pools[0].peak = 1 << 20;
      EXPECT_NE(check_plan(problem, bad), std::nullopt) << a.name << " on " << b.name;
    }
  }
}

TEST(LowerBound, IsTheGreatestLoad) {
  const Problem problem{{buffer("a", 0, 4, 5), buffer("b", 2, 6, 7), buffer("c", 4, 8, 9)}};
  EXPECT_EQ(lower_bound(problem, 0), (Load{4, 16}));
  EXPECT_EQ(load_profile(problem, 0),
            (std::vector<Load>{{0, 5}, {2, 12}, {4, 16}, {6, 9}, {8, 0}}));
}

TEST(LowerBound, CountsThePaddingOfAllButTheTopmost) {
  const Problem problem{{buffer("a", 0, 1, 10, 64), buffer("b", 0, 1, 65, 64)}};
  EXPECT_EQ(lower_bound(problem, 0).bytes, 64 + 65);  // `a` below `b`: 10, 54 of padding, 65
  EXPECT_EQ(plan(problem).pools[0].peak, 64 + 65);
}

TEST(Plan, RandomProblemsAreLegalAndWithinBounds) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Problem problem =
        random_problem({static_cast<int>(seed * 7), 50, 1 + static_cast<int>(seed), 1000,
                        static_cast<int>(seed % 7), 1 + static_cast<int>(seed % 3)},
                       seed);
    const Plan result = plan(problem, {.work_limit = 2'000'000});
    EXPECT_EQ(check_plan(problem, result), std::nullopt);
    for (size_t p = 0; p < problem.pools.size(); ++p) {
      int64_t all = 0;
      for (const Allocation& b : problem.buffers)
        if (b.pool == static_cast<int>(p)) all += b.bytes + b.alignment;
      EXPECT_GE(result.pools[p].peak, result.pools[p].lower_bound);
      EXPECT_LE(result.pools[p].peak, all);
      EXPECT_LE(result.pools[p].peak, 2 * result.pools[p].lower_bound + 64) << "seed " << seed;
    }
  }
}

TEST(Plan, EveryGapPackingFindsALegalPlan) {
  // Few conflicts (neighbours), many (chunks of more than one), and none.
  for (const RandomProblem& shape :
       {RandomProblem{2000, 4000, 8, 500, 3}, RandomProblem{1500, 300, 200, 500, 3},
        RandomProblem{300, 1, 1, 500, 0}}) {
    const Problem problem = random_problem(shape, 7);
    const Plan quick = plan(problem, {.work_limit = 0});
    const Plan good = plan(problem, {.work_limit = 40'000'000});
    EXPECT_EQ(check_plan(problem, quick), std::nullopt);
    EXPECT_EQ(check_plan(problem, good), std::nullopt);
    EXPECT_LE(good.pools[0].peak, quick.pools[0].peak);
  }
}

TEST(Plan, ReusesAGapThatTwoBuffersLeave) {
  // `d` fits exactly where `b` was only if `c` lies above it.
  const Problem problem{
      {buffer("a", 0, 9, 4), buffer("b", 0, 4, 6), buffer("c", 2, 9, 3), buffer("d", 4, 9, 6)}};
  EXPECT_EQ(plan(problem).pools[0].peak, 13);
}

TEST(Plan, SolvesLayersOneByOne) {
  // A transformer's layers around their residual: queries, keys and values are cut out of one
  // buffer, and the scores fit only in what that leaves if each of them lies in its place.
  Problem problem;
  const auto add = [&](int64_t lower, int64_t upper, int64_t bytes) {
    problem.buffers.push_back(
        buffer("b" + std::to_string(problem.buffers.size()), lower, upper, bytes, 64));
  };
  constexpr int64_t kUnit = 151296, kScores = 465728;
  constexpr int kLayers = 12;
  add(1, 3, 150528);
  add(2, 4, 150528);
  add(3, 4 + 17 * kLayers, kUnit);
  for (int layer = 0; layer < kLayers; ++layer) {
    const int64_t t = 17 * layer;
    add(t + 4, t + 6, kUnit);
    add(t + 5, t + 9, 3 * kUnit);
    add(t + 6, t + 10, kUnit);
    add(t + 7, t + 11, kUnit);
    add(t + 8, t + 13, kUnit);
    add(t + 9, t + 11, kUnit);
    add(t + 10, t + 13, kScores);
    add(t + 12, t + 14, kUnit);
    add(t + 13, t + 15, kUnit);
    add(t + 14, t + 16, kUnit);
    add(t + 16, t + 18, kUnit);
    add(t + 17, t + 20, 4 * kUnit);
    add(t + 19, t + 21, kUnit);
  }
  const Plan found = plan(problem);
  EXPECT_EQ(found.pools[0].peak, found.pools[0].lower_bound);
}

TEST(Plan, IsTheSameEveryTime) {
  const Problem problem = random_problem({200, 60, 30, 1000}, 3);
  const PlanOptions options{.work_limit = 20'000'000};
  EXPECT_EQ(plan(problem, options).offsets, plan(problem, options).offsets);
}

TEST(Plan, NothingToPlace) {
  EXPECT_EQ(plan({}).pools[0].peak, 0);
  const Problem empty_buffers{{buffer("a", 0, 1, 0), buffer("b", 0, 1, 0)}};
  EXPECT_EQ(plan(empty_buffers).pools[0].peak, 0);
}

TEST(Plan, NamesTheStepAndTheBuffersThatDoNotFit) {
  Problem problem{{buffer("weights", 0, 9, 40), buffer("x", 0, 4, 30), buffer("y", 3, 6, 50)}};
  problem.pools = {{"sram", 100}};
  EXPECT_EQ(error_of([&] { plan(problem); }),
            "does-not-fit: pool `sram` has 100 bytes, and no plan needs less than 120; most bytes "
            "are alive at step 3: 120, the largest `y` (50 bytes), `weights` (40 bytes), `x` (30 "
            "bytes)");
  problem.pools[0].capacity = 120;
  EXPECT_EQ(plan(problem).pools[0].peak, 120);
}

TEST(Pools, SayWhatOneOfThemOrAllWouldNeed) {
  Problem problem{{buffer("weights", 0, 9, 40), buffer("x", 0, 4, 30), buffer("y", 3, 6, 50)}};
  problem.pools = {{"fast", 64}, {"slow", 32}};
  EXPECT_EQ(error_of([&] { plan_pools(problem); }),
            "does-not-fit: pool `slow` has 32 bytes, and no plan needs less than 80 (120 in all); "
            "`fast` alone would need 120; most bytes are alive at step 3: 80, the largest `y` (50 "
            "bytes), `x` (30 bytes)");
  // Either of the two is enough.
  problem.pools[1].capacity = 80;
  EXPECT_EQ(plan_pools(problem).pools[1].peak, 80);
  problem.pools = {{"fast", 120}, {"slow", 0}};
  EXPECT_EQ(plan_pools(problem).pools[0].peak, 120);
}

TEST(Pools, HaveNamesThatCHas) {
  const auto refuse = [](const char* text) { return error_of([&] { parse_pools(text); }); };
  EXPECT_NE(refuse("2fast").find("the name is no identifier"), std::string::npos);
  EXPECT_NE(refuse("a-b=64").find("the name is no identifier"), std::string::npos);
  EXPECT_NE(refuse("double").find("`double` is a word of C"), std::string::npos);
  EXPECT_NE(refuse("inputs=1KiB").find("`inputs` is a parameter that programs have already"),
            std::string::npos);
  EXPECT_NE(refuse("sram sram").find("given twice"), std::string::npos);
  EXPECT_NE(refuse("sram=64KiB SRAM").find("differ in capitals only"), std::string::npos);
  EXPECT_EQ(parse_pools("sram=64KiB dram flash=ro").size(), 3u);
}

TEST(Plan, RefusesWhatIsMalformed) {
  const auto refuse = [](const Allocation& b) { return error_of([&] { plan({{b}}); }); };
  EXPECT_EQ(refuse(buffer("a", 0, 1, -1)), "bad-problem: buffer `a` has a size of -1 bytes");
  EXPECT_EQ(refuse(buffer("a", 3, 3, 1)),
            "bad-problem: buffer `a` is alive from step 3 until before step 3, which is never");
  EXPECT_EQ(refuse(buffer("a", -1, 3, 1)),
            "bad-problem: buffer `a` is alive from the negative step -1");
  EXPECT_EQ(refuse(buffer("a", 0, 1, 1, 12)),
            "bad-problem: buffer `a` has alignment 12; it must be a power of two up to 1073741824");
  EXPECT_NE(refuse(buffer("a", 0, 1, INT64_MAX)).find("overflow"), std::string::npos);
  const Problem sum{{buffer("a", 0, 1, int64_t{1} << 59), buffer("b", 1, 2, int64_t{1} << 59)}};
  EXPECT_NE(error_of([&] { plan(sum); }).find("`b` the sizes overflow"), std::string::npos);
  Problem pool{{buffer("a", 0, 1, 1)}};
  pool.buffers[0].pool = 1;
  EXPECT_EQ(error_of([&] { plan(pool); }),
            "bad-problem: buffer `a` is in pool 1, but there are 1 pools");
}

TEST(Plan, AHundredThousandBuffersStayWithinTheWorkLimit) {
  for (const int life : {6, 3000, 200000}) {
    const Problem problem = random_problem({100000, 100000, life, 1 << 20}, 11);
    const PlanOptions options{.work_limit = 100'000'000};
    const Plan result = plan(problem, options);
    EXPECT_LE(result.pools[0].work, options.work_limit + 40'000'000);
  }
}

}  // namespace tenon::memory
