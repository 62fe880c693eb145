// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tenon/support/interrupt.h"
#include "tenon/support/remarks.h"

namespace tenon {
namespace {

TEST(ForEachInParallel, CallsEachOnce) {
  for (size_t count : {0, 1, 2, 3, 100}) {
    std::vector<std::atomic<int>> calls(count);
    for_each_in_parallel(count, [&](size_t i) { ++calls[i]; });
    for (const std::atomic<int>& each : calls) EXPECT_EQ(each, 1);
  }
}

TEST(ForEachInParallel, RecordsRemarksInOrder) {
  const RemarkScope scope;
  for_each_in_parallel(200, [](size_t i) {
    std::this_thread::sleep_for(std::chrono::microseconds((i * 7919) % 200));
    record({"Pass", std::to_string(i), "first", "", {}, "", {}});
    record({"Pass", std::to_string(i), "second", "", {}, "", {}});
  });
  ASSERT_EQ(scope.remarks().size(), 400U);
  for (size_t i = 0; i < 400; ++i) {
    EXPECT_EQ(scope.remarks()[i].subject, std::to_string(i / 2));
    EXPECT_EQ(scope.remarks()[i].verdict, i % 2 == 0 ? "first" : "second");
  }
}

// As if one call came after the other: the remarks before it, and none behind.
TEST(ForEachInParallel, ThrowsTheErrorOfTheFirstThatHasOne) {
  for (int round = 0; round < 50; ++round) {
    const RemarkScope scope;
    std::string what;
    try {
      for_each_in_parallel(64, [&](size_t i) {
        // The first to fail takes longer than those behind it.
        if (i == 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        record({"Pass", std::to_string(i), "", "", {}, "", {}});
        if (i >= 20 && i % 4 == 0) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    ASSERT_EQ(what, "20");
    ASSERT_EQ(scope.remarks().size(), 21U);
    ASSERT_EQ(scope.remarks().back().subject, "20");
  }
}

TEST(ForEachInParallel, AnInterruptOfTheCallerEndsIt) {
  struct Interrupted {};
  std::atomic<int> calls = 0;
  const std::thread::id caller = std::this_thread::get_id();
  std::set<bool> asked_by_caller;
  const InterruptScope scope([&] {
    asked_by_caller.insert(std::this_thread::get_id() == caller);
    if (calls > 10) throw Interrupted();
  });
  EXPECT_THROW(for_each_in_parallel(100000,
                                    [&](size_t) {
                                      ++calls;
                                      std::this_thread::sleep_for(std::chrono::microseconds(10));
                                    }),
               Interrupted);
  EXPECT_LT(calls, 100000);
  EXPECT_EQ(asked_by_caller, std::set<bool>{true});
}

}  // namespace
}  // namespace tenon
