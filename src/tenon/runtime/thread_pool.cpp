// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/thread_pool.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <map>
#include <mutex>

#include "tenon/runtime/cpu_count.h"
#include "tenon/runtime/float_state.h"

namespace tenon::runtime {

static constexpr auto kSpinTime = std::chrono::microseconds(50);
static constexpr uint32_t kMaxTasks = 1u << 30;  // of one fork and join; longer loops take several

// Flags in the lower half of state_; the bits below count the workers that are inside the loop.
static constexpr uint64_t kOpen = uint64_t{1} << 31;  // workers may enter
static constexpr uint64_t kWaiting = uint64_t{1}
                                     << 30;  // the caller sleeps until the last one leaves
static constexpr uint64_t kInside = kWaiting - 1;

static constexpr uint32_t kRestarting = UINT32_MAX;

static thread_local int64_t t_current_task = -1;

/// The last loop that a thread ran outside of others. One with the same body, place of captured variables and
/// number of tasks is taken for the same: two calls of one kernel in a row are, too. The order of
/// tasks changes no result.
struct LastLoop {
  TenonTask body = nullptr;
  const void* env = nullptr;
  int64_t tasks = 0;
  bool backwards = false;

  bool is(TenonTask other_body, const void* other_env, int64_t other_tasks) const {
    return body == other_body && env == other_env && tasks == other_tasks;
  }
};
static thread_local LastLoop t_last_loop;

static uint32_t epoch_of(uint64_t state) { return static_cast<uint32_t>(state >> 32); }

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static void sleep_on(std::atomic<uint32_t>& word, uint32_t expected) {
  static_assert(sizeof(word) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

static void wake(std::atomic<uint32_t>& word, int count) {
  word.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

/// Forks since the program began, on the way to this process. Its threads do not survive one.
static std::atomic<uint32_t>& fork_count() {
  static std::atomic<uint32_t> count{0};
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return count;
}

/// Spins until done() or for kSpinTime, or until `go_on` says no; returns done().
template <typename Done, typename GoOn>
static bool spin(Done done, GoOn go_on) {
  auto end = std::chrono::steady_clock::time_point{};
  while (true) {
    for (int i = 0; i < 32; ++i) {  // below 2 us between two looks at the clock
      if (done()) return true;
      pause();
    }
    if (!go_on()) return done();
    auto now = std::chrono::steady_clock::now();
    if (end == std::chrono::steady_clock::time_point{}) end = now + kSpinTime;
    if (now >= end) return done();
  }
}

ThreadPool::ThreadPool(int threads)
    : generation_(fork_count().load()),
      threads_(threads > 0 ? threads : default_thread_count()),
      shares_(static_cast<size_t>(threads_)) {}

ThreadPool::~ThreadPool() {
  if (generation_.load() == fork_count().load()) stop_workers();
}

static std::atomic<ThreadPool::Observer> observer{nullptr};

void ThreadPool::observe(Observer tell) { observer.store(tell, std::memory_order_release); }

int64_t ThreadPool::current_task() { return t_current_task; }

std::shared_ptr<ThreadPool> ThreadPool::shared(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<ThreadPool>> pools;
  if (threads <= 0) threads = default_thread_count();
  std::lock_guard lock(mutex);
  std::shared_ptr<ThreadPool> pool = pools[threads].lock();
  if (pool == nullptr) pools[threads] = pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

int32_t ThreadPool::parallel_for(TenonContext* context, TenonTask body, void* env, int64_t tasks) {
  if (tasks <= 0) return 0;
  if (tasks == 1)
    return body(context, env, 0);  // hardly a loop: one inside it may still use the workers

  bool outermost = t_current_task < 0;
  bool backwards = false;
  if (outermost) {
    backwards = t_last_loop.is(body, env, tasks) && !t_last_loop.backwards;
    t_last_loop = {body, env, tasks, backwards};
  }
  int32_t code = 0;
  if (outermost && threads_ > 1 && acquire()) {
    for (int64_t first = 0; first < tasks && code == 0; first += kMaxTasks) {
      uint32_t count = static_cast<uint32_t>(std::min<int64_t>(tasks - first, kMaxTasks));
      uint32_t shares = std::min(count, static_cast<uint32_t>(workers_.size()) + 1);
      code = run_loop({body, env, context, first, count, shares, backwards});
    }
    busy_.store(false, std::memory_order_release);
    return code;
  }

  for (int64_t i = 0; i < tasks && (code == 0 || backwards); ++i) {
    const int64_t task = backwards ? tasks - 1 - i : i;
    if (outermost) t_current_task = task;
    if (int32_t failure = body(context, env, task); failure != 0) code = failure;
  }
  if (outermost) t_current_task = -1;
  return code;
}

/// Takes busy_ where there are workers to be had and no other thread has them.
bool ThreadPool::acquire() {
  if (generation_.load(std::memory_order_relaxed) != fork_count().load(std::memory_order_relaxed) &&
      !survive_fork())
    return false;
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  if (!started_) start_workers();
  if (!workers_.empty()) return true;
  busy_.store(false, std::memory_order_release);
  return false;
}

/// In the child of a fork: forgets the workers, which exist in the parent only, and whatever they
/// were at.
bool ThreadPool::survive_fork() {
  uint32_t former = generation_.load();
  if (former == kRestarting || !generation_.compare_exchange_strong(former, kRestarting))
    return false;
  workers_.clear();
  started_ = false;
  state_.store(uint64_t{epoch_of(state_.load())} << 32);
  sleepers_.store(0);
  failed_task_.store(INT64_MAX);
  for (Share& share : shares_) share.failed_task = INT64_MAX;
  busy_.store(false);
  generation_.store(fork_count().load());
  return true;
}

void ThreadPool::start_workers() {
  started_ = true;
  sigset_t all, former;  // the host's signals are handled on the host's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  workers_.reserve(static_cast<size_t>(threads_) - 1);
  for (int i = 1; i < threads_; ++i) {
    auto worker = std::make_unique<Worker>(Worker{this, static_cast<uint32_t>(i), {}});
    if (pthread_create(&worker->thread, nullptr, worker_main, worker.get()) != 0) break;
    workers_.push_back(std::move(worker));
  }
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

void ThreadPool::stop_workers() {
  stop_.store(true, std::memory_order_seq_cst);
  wake(wake_, INT_MAX);
  for (std::unique_ptr<Worker>& worker : workers_) pthread_join(worker->thread, nullptr);
}

/// Fork and join. Workers find the loop by themselves if they are awake, and are woken if not;
/// whoever has not entered by the time that the caller finds no task left stays outside.
int32_t ThreadPool::run_loop(const Loop& loop) {
  loop_ = loop;
  uint32_t epoch = epoch_of(state_.load(std::memory_order_relaxed)) + 1;
  if (epoch == 0) {  // wrapped: what a share that was long out of use says about this epoch is of
                     // the former round
    for (Share& share : shares_) share.taken.store(0, std::memory_order_relaxed);
    epoch = 1;
  }
  state_.store(uint64_t{epoch} << 32 | kOpen, std::memory_order_seq_cst);

  // A worker counts itself among the sleepers before it looks at state_ for the last time: one of
  // us sees the other.
  int64_t sleepers = sleepers_.load(std::memory_order_seq_cst);
  int64_t awake = static_cast<int64_t>(workers_.size()) - sleepers;
  int64_t missing = int64_t{loop.shares} - 1 - awake;
  if (sleepers > 0 && missing > 0) wake(wake_, static_cast<int>(missing));

  take_part(loop, epoch, 0);
  join_loop();
  return collect_failure();
}

void ThreadPool::join_loop() {
  auto empty = [this] { return (state_.load(std::memory_order_acquire) & kInside) == 0; };
  if ((state_.fetch_and(~kOpen, std::memory_order_acq_rel) & kInside) == 0) return;
  if (spin(empty, [] { return true; })) return;
  while (true) {
    uint32_t seen = done_.load(std::memory_order_seq_cst);
    if ((state_.fetch_or(kWaiting, std::memory_order_acq_rel) & kInside) == 0) return;
    sleep_on(done_, seen);
  }
}

int32_t ThreadPool::collect_failure() {
  int64_t lowest = failed_task_.load(std::memory_order_relaxed);
  if (lowest == INT64_MAX) return 0;
  int32_t code = 0;
  for (Share& share : shares_) {
    if (share.failed_task == lowest) code = share.failed_code;
    share.failed_task = INT64_MAX;
  }
  failed_task_.store(INT64_MAX, std::memory_order_relaxed);
  return code;
}

void* ThreadPool::worker_main(void* argument) {
  const Worker* worker = static_cast<const Worker*>(argument);
  pthread_setname_np(pthread_self(), "tenon");
  FloatStateScope float_state;
  worker->pool->work(worker->index);
  return nullptr;
}

void ThreadPool::work(uint32_t index) {
  uint32_t epoch = 0;  // of the last loop taken part in
  while (wait_for_loop(epoch)) {
    uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & kOpen) == 0 || epoch_of(state) == epoch) continue;
    if (!state_.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel)) continue;
    epoch = epoch_of(state);
    take_part(loop_, epoch, index);
    uint64_t former = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((former & kWaiting) != 0 && (former & kInside) == 1) wake(done_, 1);
  }
}

/// Returns when a loop other than the last may be open; false: the pool ends.
bool ThreadPool::wait_for_loop(uint32_t last_epoch) {
  auto stopped = [&] { return stop_.load(std::memory_order_seq_cst); };
  auto open = [&] {
    uint64_t state = state_.load(std::memory_order_seq_cst);
    return (state & kOpen) != 0 && epoch_of(state) != last_epoch;
  };
  while (!stopped()) {
    if (spin(open, [&] { return !stopped(); })) return true;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    uint32_t seen = wake_.load(std::memory_order_seq_cst);
    if (!open() && !stopped()) sleep_on(wake_, seen);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  return false;
}

void ThreadPool::take_part(const Loop& shared, uint32_t epoch, uint32_t index) {
  const Loop loop = shared;  // its line is written by whoever enters or leaves
  const Observer tell = observer.load(std::memory_order_acquire);
  if (tell == nullptr) {
    run_tasks(loop, epoch, index);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  const int64_t tasks = run_tasks(loop, epoch, index);
  if (tasks > 0) tell({index, begin, std::chrono::steady_clock::now(), tasks});
}

/// Returns how many it ran.
int64_t ThreadPool::run_tasks(const Loop& loop, uint32_t epoch, uint32_t index) {
  int64_t tasks = 0;
  for (uint32_t i = 0; i < loop.shares; ++i) {
    uint32_t share = (index + i) % loop.shares;
    for (int64_t task = take(loop, epoch, share); task >= 0; task = take(loop, epoch, share)) {
      if (task > failed_task_.load(std::memory_order_relaxed)) continue;
      run_task(loop, task, index);
      ++tasks;
    }
  }
  t_current_task = -1;
  return tasks;
}

/// The next task of a share, or -1.
int64_t ThreadPool::take(const Loop& loop, uint32_t epoch, uint32_t share) {
  auto begin = [&](uint64_t i) { return static_cast<uint32_t>(i * loop.tasks / loop.shares); };
  uint32_t size = begin(uint64_t{share} + 1) - begin(share);
  std::atomic<uint64_t>& taken = shares_[share].taken;
  uint64_t seen = taken.load(std::memory_order_relaxed);
  while (true) {
    uint32_t count = epoch_of(seen) == epoch ? static_cast<uint32_t>(seen)
                                             : 0;  // else left over from an earlier loop
    if (count == size) return -1;
    uint64_t next = uint64_t{epoch} << 32 | (count + 1);
    if (taken.compare_exchange_weak(seen, next, std::memory_order_relaxed))
      return loop.first + begin(share) + (loop.backwards ? size - 1 - count : count);
  }
}

void ThreadPool::run_task(const Loop& loop, int64_t task, uint32_t index) {
  t_current_task = task;
  int32_t code = loop.body(loop.context, loop.env, task);
  if (code == 0) return;
  Share& own = shares_[index];
  if (task < own.failed_task) {
    own.failed_task = task;
    own.failed_code = code;
  }
  int64_t lowest = failed_task_.load(std::memory_order_relaxed);
  while (task < lowest &&
         !failed_task_.compare_exchange_weak(lowest, task, std::memory_order_relaxed)) {
  }
}

}  // namespace tenon::runtime
