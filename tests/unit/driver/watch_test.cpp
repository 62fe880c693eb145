// SPDX-License-Identifier: Apache-2.0
// What is said of a step that takes too long, or too much memory.
#include "tenon/driver/watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "tenon/driver/compiler.h"
#include "tenon/driver/probe.h"
#include "tenon/script/parser.h"

namespace tenon {
namespace {

TEST(WatchDeathTest, NamesTheStepThatTakesAllMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const WatchedStep step("Greedy", {.memory = int64_t{256} << 20});
        std::vector<std::vector<char>> blocks;
        for (int i = 0; i < 4096; ++i) {
          blocks.emplace_back(size_t{1} << 20, 'x');
          if (i > 300) usleep(2000);
        }
      },
      testing::ExitedWithCode(1), "error\\[TN0024\\]: `Greedy` takes more than 0.25 GiB of memory");
}

TEST(WatchDeathTest, NamesTheStepThatTakesLong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const WatchedStep outer("Outer", {.memory = int64_t{8} << 30});
        const WatchedStep step("Slow", {.memory = int64_t{8} << 30, .seconds = 0.1});
        const std::clock_t begin = std::clock();
        while (std::clock() - begin < CLOCKS_PER_SEC) {
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "warning\\[TN0023\\]: `Slow` has taken 0 s of processor time");
}

// The watch's thread sleeps in the parent; it is not there in the child.
TEST(Watch, WatchesForkedProcesses) {
  {
    const WatchedStep step("Parent's", {.memory = int64_t{8} << 30});
  }
  usleep(100'000);
  const WatchedStep outer("Outer", {.memory = int64_t{8} << 30});
  const Outcome many = probe_call(
      [] {
        for (int i = 0; i < 100; ++i) {
          const WatchedStep step("Child's", {.memory = int64_t{8} << 30});
          if (i < 3) usleep(100'000);  // the thread sleeps
        }
        return 0;
      },
      {.time_limit = 120, .memory_limit = 0});
  EXPECT_EQ(many.key, "success") << many.output;
  const Outcome large = probe_call(
      [] {
        const WatchedStep step("Child's", {.memory = 0});
        for (;;) pause();
        return 0;
      },
      {.time_limit = 120, .memory_limit = 0});
  EXPECT_EQ(large.key,
            "status 1, error[TN0024]: `...` takes more than N GiB of memory, which is more than "
            "this model should need");
}

TEST(Watch, WeightsMakeRoom) {
  const auto limit = [](const std::string& text) {
    return limits_for(script::parse_module(text, {})).memory;
  };
  const std::string head =
      "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    y = R.add(x, ";
  const int64_t none = limit(head + "x)\n    return y\n");
  EXPECT_EQ(none, int64_t{7} << 28);
  EXPECT_EQ(limit(head + "R.const([1.0, 2.0, 3.0, 4.0], \"float32\"))\n    return y\n"),
            none + 32 * 16);
}

}  // namespace
}  // namespace tenon
