// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/deferred_work.h"

#include <algorithm>
#include <system_error>

#include "tenon/support/interrupt.h"

namespace tenon {

static thread_local DeferredWorkScope* innermost = nullptr;

void DeferredWork::finish() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != State::kRunning; });
    if (state_ == State::kDone) return;
    state_ = State::kRunning;
  }
  try {
    work_();
  } catch (...) {
    set(State::kWaiting);
    throw;
  }
  work_ = nullptr;
  set(State::kDone);
}

void DeferredWork::set(State state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  changed_.notify_all();  // with the lock: who waits may free this work
}

DeferredWorkScope::DeferredWorkScope() : outer_(innermost) { innermost = this; }

DeferredWorkScope::~DeferredWorkScope() {
  innermost = outer_;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
}

DeferredWorkScope* DeferredWorkScope::current() { return innermost; }

void DeferredWorkScope::add(std::weak_ptr<DeferredWork> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  if (threads_.size() + 1 >= std::max(2U, std::thread::hardware_concurrency())) return;
  try {
    threads_.emplace_back([this] { this->work(); });
  } catch (const std::system_error&) {
    return;  // the system has no more threads: whoever wants the result does the work
  }
}

static void try_to_finish(const std::shared_ptr<DeferredWork>& work) {
  try {
    work->finish();
  } catch (...) {
    return;  // who wants the result does the work again, and gets the error
  }
}

// With `lock` held before and after; nothing is left where it returns false.
bool DeferredWorkScope::do_next(std::unique_lock<std::mutex>& lock) {
  if (waiting_.empty()) return false;
  std::shared_ptr<DeferredWork> one = waiting_.front().lock();
  waiting_.pop_front();
  if (!one) return true;
  ++running_;
  lock.unlock();
  try_to_finish(one);
  one.reset();  // frees the result where nobody wants it any more, without the lock
  lock.lock();
  --running_;
  changed_.notify_all();
  return true;
}

void DeferredWorkScope::work() {
  std::unique_lock lock(mutex_);
  while (!closed_)
    if (!do_next(lock)) changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
}

void DeferredWorkScope::finish() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    check_interrupt();
    lock.lock();
  } while (do_next(lock));
  changed_.wait(lock, [&] { return running_ == 0; });
}

}  // namespace tenon
