// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/deferred_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include "tenon/support/interrupt.h"

namespace tenon {
namespace {

using Work = std::shared_ptr<DeferredWork>;

TEST(DeferredWork, IsDoneOnce) {
  std::atomic<int> times{0};
  const auto held = std::make_shared<int>(1);
  DeferredWork work([&times, held] { ++times; });
  EXPECT_EQ(held.use_count(), 2);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { work.finish(); });
  }
  work.finish();
  EXPECT_EQ(times, 1);
  EXPECT_EQ(held.use_count(), 1) << "what the work holds goes with it";
}

TEST(DeferredWork, ThrowsToEachWhoWantsTheResult) {
  int times = 0;
  DeferredWork work([&] {
    if (++times < 3) throw std::runtime_error("not yet");
  });
  EXPECT_THROW(work.finish(), std::runtime_error);
  EXPECT_THROW(work.finish(), std::runtime_error);
  EXPECT_NO_THROW(work.finish());
  EXPECT_EQ(times, 3);
}

TEST(DeferredWorkScope, IsTheInnermostOfItsThread) {
  EXPECT_FALSE(DeferredWorkScope::current());
  DeferredWorkScope outer;
  {
    DeferredWorkScope inner;
    EXPECT_EQ(DeferredWorkScope::current(), &inner);
    std::jthread([] { EXPECT_FALSE(DeferredWorkScope::current()); }).join();
  }
  EXPECT_EQ(DeferredWorkScope::current(), &outer);
}

// On another thread, while this one waits for nothing but the result.
TEST(DeferredWorkScope, WorksMeanwhile) {
  DeferredWorkScope scope;
  std::atomic<bool> done{false};
  const auto here = std::this_thread::get_id();
  auto there = here;
  const auto work = std::make_shared<DeferredWork>([&] {
    there = std::this_thread::get_id();
    done = true;
  });
  scope.add(work);
  while (!done) std::this_thread::yield();
  work->finish();
  EXPECT_NE(there, here);
}

// Each of a chain wants what was deferred before it.
TEST(DeferredWorkScope, FinishesChains) {
  for (int round = 0; round < 50; ++round) {
    DeferredWorkScope scope;
    std::vector<Work> chain;
    std::vector<int> values(100);
    for (size_t i = 0; i < values.size(); ++i) {
      const Work before = i == 0 ? nullptr : chain.back();
      chain.push_back(std::make_shared<DeferredWork>([&values, before, i] {
        if (before) before->finish();
        values[i] = i == 0 ? 1 : values[i - 1] + 1;
      }));
      scope.add(chain.back());
    }
    if (round % 2 == 0)
      scope.finish();
    else
      chain.back()->finish();
    ASSERT_EQ(values.back(), 100);
  }
}

TEST(DeferredWorkScope, LeavesOutWhatNobodyHolds) {
  std::atomic<int> times{0};
  std::atomic<bool> go{false};
  DeferredWorkScope scope;
  std::vector<Work> first;
  for (unsigned i = 0; i < std::max(2U, std::thread::hardware_concurrency()); ++i) {
    first.push_back(std::make_shared<DeferredWork>([&] {
      while (!go) std::this_thread::yield();
    }));
    scope.add(first.back());
  }
  scope.add(std::make_shared<DeferredWork>([&] { ++times; }));
  go = true;
  scope.finish();
  EXPECT_EQ(times, 0);
}

// The error is for who wants the result.
TEST(DeferredWorkScope, GoesOnBehindErrors) {
  DeferredWorkScope scope;
  int value = 0;
  const auto fails = std::make_shared<DeferredWork>([] { throw std::runtime_error("no"); });
  const auto works = std::make_shared<DeferredWork>([&] { value = 7; });
  scope.add(fails);
  scope.add(works);
  EXPECT_NO_THROW(scope.finish());
  EXPECT_EQ(value, 7);
  EXPECT_THROW(fails->finish(), std::runtime_error);
}

TEST(DeferredWorkScope, EndsWithoutTheRest) {
  std::atomic<int> begun{0}, ended{0};
  std::vector<Work> all;
  {
    DeferredWorkScope scope;
    for (int i = 0; i < 200; ++i) {
      all.push_back(std::make_shared<DeferredWork>([&] {
        ++begun;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++ended;
      }));
      scope.add(all.back());
    }
  }
  EXPECT_EQ(begun, ended) << "nothing goes on without the scope";
  for (const Work& work : all) work->finish();
  EXPECT_EQ(ended, 200);
}

TEST(DeferredWorkScope, IsInterruptedWhileItFinishes) {
  struct Stop {};
  const InterruptScope interrupt([] { throw Stop(); });
  DeferredWorkScope scope;
  EXPECT_THROW(scope.finish(), Stop);
}

}  // namespace
}  // namespace tenon
