// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "tenon/runtime/cpu_count.h"

namespace tenon::runtime {
namespace {

using Task = std::function<int32_t(int64_t task)>;

int32_t call_task(TenonContext*, void* env, int64_t task) {
  return (*static_cast<Task*>(env))(task);
}

int32_t loop(ThreadPool& pool, int64_t tasks, Task task) {
  return pool.parallel_for(nullptr, call_task, &task, tasks);
}

class ThreadCounts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ThreadPool, ThreadCounts, testing::Values(1, 2, 3, 7));

TEST_P(ThreadCounts, RunsEachTaskOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t tasks : {0, 1, 2, 3, 5, 64, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    EXPECT_EQ(loop(pool, tasks, [&](int64_t task) { return runs[static_cast<size_t>(task)]++, 0; }),
              0);
    for (std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST_P(ThreadCounts, ALoopThatComesAgainRunsEachTaskOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> runs(13);
  Task task = [&](int64_t task) { return runs[static_cast<size_t>(task)]++, 0; };
  for (int round = 1; round <= 500; ++round) {
    ASSERT_EQ(pool.parallel_for(nullptr, call_task, &task, 13), 0);
    for (std::atomic<int>& count : runs) ASSERT_EQ(count, round);
  }
}

TEST(ThreadPool, ALoopThatComesAgainGoesBackAndForth) {
  ThreadPool pool(1);
  std::vector<int64_t> order;
  Task task = [&](int64_t task) { return order.push_back(task), 0; };
  Task other = [&](int64_t task) { return order.push_back(10 + task), 0; };
  const auto run = [&](Task& what, int64_t tasks) {
    order.clear();
    pool.parallel_for(nullptr, call_task, &what, tasks);
    return order;
  };
  using Order = std::vector<int64_t>;
  EXPECT_EQ(run(task, 3), (Order{0, 1, 2}));
  EXPECT_EQ(run(task, 3), (Order{2, 1, 0}));
  EXPECT_EQ(run(task, 3), (Order{0, 1, 2}));
  EXPECT_EQ(run(task, 2), (Order{0, 1})) << "of another number of tasks";
  EXPECT_EQ(run(other, 2), (Order{10, 11})) << "another loop";
  EXPECT_EQ(run(task, 2), (Order{0, 1})) << "not the last one";
}

TEST_P(ThreadCounts, ResultsOfALoopAreSeenAfterIt) {
  ThreadPool pool(GetParam());
  constexpr size_t kTasks = 97;
  std::vector<int64_t> now(kTasks, 1),
      next(kTasks, 0);  // each loop reads what other threads wrote in the one before
  for (int64_t round = 0; round < 5000; ++round) {
    loop(pool, kTasks, [&](int64_t task) {
      next[static_cast<size_t>(task)] = now[(static_cast<size_t>(task) * 31 + 1) % kTasks] + 1;
      return 0;
    });
    std::swap(now, next);
  }
  EXPECT_EQ(now, std::vector<int64_t>(kTasks, 5001));
}

TEST_P(ThreadCounts, NestedLoopsRunInsideTheirTask) {
  ThreadPool pool(GetParam());
  std::atomic<int> sum = 0, strays = 0;
  loop(pool, 8, [&](int64_t) {
    std::thread::id self = std::this_thread::get_id();
    return loop(pool, 16, [&](int64_t inner) {
      sum += static_cast<int>(inner);
      strays += std::this_thread::get_id() != self;
      return 0;
    });
  });
  EXPECT_EQ(sum, 8 * 120);
  EXPECT_EQ(strays, 0);
}

TEST_P(ThreadCounts, ReturnsTheErrorOfTheLowestTask) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> low = 0;
    int32_t code = loop(pool, 100, [&](int64_t task) -> int32_t {
      if (task < 37) ++low;
      return task >= 37 && task % 3 == 1 ? static_cast<int32_t>(1000 + task) : 0;
    });
    ASSERT_EQ(code, 1037);
    ASSERT_EQ(low, 37) << "a task below the failed one was left out";
    ASSERT_EQ(loop(pool, 100, [](int64_t) { return 0; }), 0) << "the error stayed";
  }
}

TEST_P(ThreadCounts, ReturnsTheErrorOfTheLowestTaskBackwards) {
  ThreadPool pool(GetParam());
  std::atomic<int> low = 0;
  Task task = [&](int64_t task) -> int32_t {
    if (task < 37) ++low;
    return task >= 37 && task % 3 == 1 ? static_cast<int32_t>(1000 + task) : 0;
  };
  for (int round = 0; round < 200; ++round) {
    low = 0;
    ASSERT_EQ(pool.parallel_for(nullptr, call_task, &task, 100), 1037);
    ASSERT_EQ(low, 37) << "a task below the failed one was left out";
  }
}

TEST(ThreadPool, UsesSeveralThreadsAtOnce) {
  ThreadPool pool(3);
  std::atomic<int> inside = 0;
  loop(pool, 3, [&](int64_t) {  // none can end before all have begun
    ++inside;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 3 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return inside < 3;
  });
  EXPECT_EQ(inside, 3);
}

TEST(ThreadPool, ALoopOfOneTaskLeavesTheWorkersToALoopInsideIt) {
  ThreadPool pool(2);
  EXPECT_EQ(loop(pool, 1,
                 [&](int64_t) {
                   EXPECT_EQ(ThreadPool::current_task(), -1);
                   return loop(pool, 4,
                               [](int64_t task) { return ThreadPool::current_task() != task; });
                 }),
            0);
  EXPECT_EQ(ThreadPool::current_task(), -1);
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(3);
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> sum = 0;
    loop(pool, 10, [&](int64_t task) { return sum += static_cast<int>(task), 0; });
    ASSERT_EQ(sum, 45);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadPool, ServesSeveralUserThreads) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&] {
      for (int round = 0; round < 2000; ++round)
        loop(pool, 9, [&](int64_t task) { return sum += task, 0; });
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(sum, 4 * 2000 * 36);
}

TEST(ThreadPool, SharedPoolsAreOneForEachCount) {
  std::shared_ptr<ThreadPool> two = ThreadPool::shared(2);
  EXPECT_EQ(two, ThreadPool::shared(2));
  EXPECT_NE(two, ThreadPool::shared(3));
}

// What an observer was told; loops of one test at a time.
std::mutex told_mutex;
std::vector<ThreadPool::Part> told;
void tell(const ThreadPool::Part& part) {
  const std::lock_guard lock(told_mutex);
  told.push_back(part);
}

TEST_P(ThreadCounts, AnObserverIsToldOfEveryTaskOfALoop) {
  ThreadPool pool(GetParam());
  loop(pool, 64, [](int64_t) { return 0; });  // nobody is told
  told.clear();
  ThreadPool::observe(tell);
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 50; ++round) loop(pool, 64, [](int64_t) { return 0; });
  const auto end = std::chrono::steady_clock::now();
  ThreadPool::observe(nullptr);
  loop(pool, 64, [](int64_t) { return 0; });
  int64_t tasks = 0;
  for (const ThreadPool::Part& part : told) {
    tasks += part.tasks;
    EXPECT_GT(part.tasks, 0);
    EXPECT_LT(part.thread, static_cast<uint32_t>(GetParam()));
    EXPECT_TRUE(begin <= part.begin && part.begin <= part.end && part.end <= end);
  }
  // A pool of one thread shares nothing.
  EXPECT_EQ(tasks, GetParam() == 1 ? 0 : 50 * 64);
}

TEST(ThreadPool, WorksInTheChildOfAFork) {
  ThreadPool pool(2);
  loop(pool, 4, [](int64_t) { return 0; });
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::atomic<int> inside = 0;  // two threads again, not one after the other
    int32_t code = loop(pool, 2, [&](int64_t) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
      return 0;
    });
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(loop(pool, 4, [](int64_t) { return 0; }), 0);
}

TEST(CpuCount, FollowsTheAffinityMask) {
  int count = 0;
  std::thread([&] {  // the mask belongs to a thread
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof(one), &one) == 0) count = default_thread_count();
  })
      .join();
  EXPECT_EQ(count, 1);
}

class ControlGroups : public testing::Test {
 protected:
  ControlGroups() {
    std::string pattern = testing::TempDir() + "tenon_cgroup_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~ControlGroups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text;
  }
  std::string root_;
};

TEST_F(ControlGroups, QuotaOfVersion2IsTheSmallestOnTheWayUp) {
  write("/a/cpu.max", "150000 100000\n");
  write("/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), 2);
  EXPECT_EQ(cpu_quota("0::/c\n", root_), 0);
  write("/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), 1);
}

TEST_F(ControlGroups, QuotaOfVersion1) {
  write("/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
  write("/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota("8:pids:/a\n7:cpu,cpuacct:/a\n", root_), 3);
  EXPECT_EQ(cpu_quota("7:cpu,cpuacct:/\n", root_), 0);
  EXPECT_EQ(cpu_quota("garbage\n::\n", root_), 0);
}

}  // namespace
}  // namespace tenon::runtime
