// SPDX-License-Identifier: Apache-2.0
// Threads for data-parallel loops, and for nothing else.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "tenon/runtime/abi.h"

namespace tenon::runtime {

/// Runs the tasks of a loop on the caller and on up to threads() - 1 workers.
///
/// The caller fixes the tasks, so results cannot depend on the number of threads. Each thread
/// begins with its own contiguous share of them (the same in every loop of one size, so that data
/// stays in its cache), then takes what others have left. A worker that is asleep or late is not
/// waited for. Where the caller's last loop comes again (the steps of a recurrence), threads go
/// through their shares backwards, and forwards the next time: what does not fit a cache is read
/// from its end, which the cache still holds, and not from its beginning, which it has just lost.
///
/// A loop inside a task, and a loop while another thread's loop occupies the workers, run on the
/// caller alone. Idle workers spin for up to 50 us before they sleep: from one loop of a program to
/// its next, and from one call to the next. Workers are started by the first loop that needs them;
/// where the system refuses to, fewer take part. In the child of a fork they are started again. Tasks
/// must not throw.
class ThreadPool {
 public:
  /// \param threads  the caller included; 0: default_thread_count()
  explicit ThreadPool(int threads = 0);
  /// Ends the workers. No loop may be running.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Runs body(context, env, task) for each task in [0, tasks) and returns when all have ended.
  /// Returns the code of the lowest task whose body did not return 0, or 0; tasks above that one
  /// may have been left out, those below it never are.
  int32_t parallel_for(TenonContext* context, TenonTask body, void* env, int64_t tasks);

  /// The task of the outermost loop that the calling thread is in, of whatever pool; -1 outside.
  static int64_t current_task();

  /// What one thread did of one loop.
  struct Part {
    uint32_t thread;  // 0: the caller
    std::chrono::steady_clock::time_point begin, end;
    int64_t tasks;
  };
  /// Is told of every part in which a task was run, of loops that workers share in, by the thread
  /// that ran it and before the loop ends. For the whole process; null, the default: nobody.
  using Observer = void (*)(const Part& part);
  static void observe(Observer observer);

  /// The process's pool of that many threads (0: default_thread_count()); it lives as long as
  /// someone holds it.
  static std::shared_ptr<ThreadPool> shared(int threads);

 private:
  /// The loop at hand. Fits in one cache line together with state_.
  struct Loop {
    TenonTask body = nullptr;
    void* env = nullptr;
    TenonContext* context = nullptr;
    int64_t first = 0;   // task number of the first
    uint32_t tasks = 0;  // at most kMaxTasks
    uint32_t shares = 0;
    bool backwards = false;  // each share from its last task to its first
  };
  /// Of each thread: the tasks that it begins with, and its failure, if any.
  struct alignas(64) Share {
    std::atomic<uint64_t> taken{0};  // epoch << 32 | tasks of this share handed out in that epoch
    int64_t failed_task = INT64_MAX;
    int32_t failed_code = 0;
  };
  struct Worker {
    ThreadPool* pool;
    uint32_t index;
    pthread_t thread;
  };

  static void* worker_main(void* worker);
  void work(uint32_t index);
  bool wait_for_loop(uint32_t last_epoch);
  void take_part(const Loop& loop, uint32_t epoch, uint32_t index);
  int64_t run_tasks(const Loop& loop, uint32_t epoch, uint32_t index);
  int64_t take(const Loop& loop, uint32_t epoch, uint32_t share);
  void run_task(const Loop& loop, int64_t task, uint32_t index);
  int32_t run_loop(const Loop& loop);
  void join_loop();
  int32_t collect_failure();
  bool acquire();
  bool survive_fork();
  void start_workers();
  void stop_workers();

  // state_: epoch << 32 | flags | workers inside. Together with the loop, on one cache line.
  alignas(64) std::atomic<uint64_t> state_{0};
  Loop loop_;

  alignas(64) std::atomic<uint32_t> wake_{0};  // futex: workers sleep on it
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};

  alignas(64) std::atomic<uint32_t> done_{
      0};  // futex: the caller sleeps on it while workers finish
  std::atomic<int64_t> failed_task_{INT64_MAX};  // the lowest

  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<uint32_t> generation_{0};  // of the process whose workers these are, counted by forks
  bool started_ = false;
  int threads_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Share> shares_;
};

}  // namespace tenon::runtime
