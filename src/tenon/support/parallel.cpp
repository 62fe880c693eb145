// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "tenon/support/interrupt.h"
#include "tenon/support/remarks.h"

namespace tenon {

namespace {

/// What one call left.
struct Done {
  std::vector<Remark> remarks;
  std::exception_ptr error;
};

void run(const std::function<void(size_t)>& f, size_t i, Done& done) {
  const RemarkScope scope;
  try {
    f(i);
  } catch (...) {
    done.error = std::current_exception();
  }
  done.remarks = scope.remarks();
}

}  // namespace

void for_each_in_parallel(size_t count, const std::function<void(size_t)>& f) {
  const size_t threads = std::min<size_t>(count, std::thread::hardware_concurrency());
  if (threads < 2) {
    for (size_t i = 0; i < count; ++i) {
      check_interrupt();
      f(i);
    }
    return;
  }
  std::vector<Done> done(count);
  std::atomic<size_t> next{0};
  const auto work = [&](const std::function<void()>& before) {
    // In ascending order: all below one that fails have begun.
    for (size_t i = next++; i < count; i = next++) {
      before();
      run(f, i, done[i]);
      if (done[i].error) next = count;
    }
  };
  std::exception_ptr interrupt;
  {
    std::vector<std::jthread> others;
    try {
      for (size_t i = 1; i < threads; ++i) others.emplace_back([&] { work([] {}); });
    } catch (const std::system_error&) {
      // The system has no more threads: those that are there do it.
    }
    try {
      work(check_interrupt);
    } catch (...) {
      interrupt = std::current_exception();
      next = count;
    }
  }
  if (interrupt) std::rethrow_exception(interrupt);
  for (Done& one : done) {
    for (Remark& remark : one.remarks) record(std::move(remark));
    if (one.error) std::rethrow_exception(one.error);
  }
}

}  // namespace tenon
