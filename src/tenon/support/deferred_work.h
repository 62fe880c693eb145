// SPDX-License-Identifier: Apache-2.0
// Work whose result somebody will want later: another thread does it meanwhile, where there is one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon {

/// Work that is done once, by whoever finishes it first.
class DeferredWork {
 public:
  explicit DeferredWork(std::function<void()> work) : work_(std::move(work)) {}

  /// Does the work, or waits for the thread that does it; at once where it is done. What the work
  /// holds is freed with it. \throws what the work throws; the next caller does it anew.
  void finish();

 private:
  enum class State : uint8_t { kWaiting, kRunning, kDone };
  void set(State state);
  // Not std::call_once: where pthread_once knows no exceptions (the thread sanitizer's does not), one
  // leaves the flag locked. No lock is held while the work is done: it may finish other work, in
  // chains longer than the number of locks that the sanitizer follows.
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kWaiting;
  std::function<void()> work_;
};

/// While it lives, other threads do what this thread defers, in that order: one for each processor
/// but the caller's, at least one. Work may finish other work that was deferred before it. It is
/// asked for no interrupt, its remarks are lost, and its errors are thrown to who wants the result.
class DeferredWorkScope {
 public:
  DeferredWorkScope();
  /// Begins nothing more, and waits for what has begun. The rest is done when it is wanted.
  ~DeferredWorkScope();
  DeferredWorkScope(const DeferredWorkScope&) = delete;
  DeferredWorkScope& operator=(const DeferredWorkScope&) = delete;

  /// The innermost of this thread; null where there is none.
  static DeferredWorkScope* current();

  /// Whoever wants the result holds the work: it is left out when nobody does.
  void add(std::weak_ptr<DeferredWork> work);
  /// Waits until all of it is done, and helps.
  void finish();

 private:
  bool do_next(std::unique_lock<std::mutex>& lock);
  void work();

  DeferredWorkScope* outer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::weak_ptr<DeferredWork>> waiting_;
  size_t running_ = 0;
  bool closed_ = false;
  std::vector<std::jthread> threads_;  // the last member: joined before the others go
};

}  // namespace tenon
