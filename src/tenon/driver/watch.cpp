// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/watch.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tenon/driver/guarded.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/expr.h"
#include "tenon/support/limit_codes.h"
#include "tenon/support/temporary_files.h"
#include "tenon/tir/stmt.h"

namespace tenon {

namespace {

double processor_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Memory of its own: pages of mapped files are the system's to take back.
int64_t own_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  long long size = 0, resident = 0, shared = 0;
  const bool read = std::fscanf(file, "%lld %lld %lld", &size, &resident, &shared) == 3;
  std::fclose(file);
  return read ? (resident - shared) * ::sysconf(_SC_PAGESIZE) : 0;
}

/// One thread, begun with the first step; it sleeps where no step is at work.
class Watch {
 public:
  // Never destroyed: its thread is there until the process ends. A forked child gets another: the
  // thread is not there, but the condition counts it as a sleeper, and would wait for it to wake.
  static Watch& instance() {
    static auto* watch = new Watch();
    static const int registered =
        pthread_atfork([] { watch->mutex_.lock(); }, [] { watch->mutex_.unlock(); },
                       [] { watch = new Watch(watch->last_, watch->is_guest_); });
    static_cast<void>(registered);
    return *watch;
  }

  int64_t enter(std::string name, StepLimits limits) {
    const std::lock_guard lock(mutex_);
    steps_.push_back({.id = ++last_,
                      .name = std::move(name),
                      .limits = limits,
                      .begin = processor_seconds(),
                      .bytes = is_guest_ ? own_bytes() : 0,
                      .thread = std::this_thread::get_id()});
    if (!std::exchange(has_thread_, true)) std::thread([this] { run(); }).detach();
    wake_.notify_all();
    return last_;
  }

  void leave(int64_t id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(steps_, [&](const Step& step) { return step.id == id; });
  }

  void be_guest() {
    const std::lock_guard lock(mutex_);
    is_guest_ = true;
  }

  void tell() {
    const auto is_told = [](const Step& step) {
      return step.thread == std::this_thread::get_id() && !step.found.empty();
    };
    std::unique_lock lock(mutex_);
    for (Step& step : steps_) {
      if (!is_told(step)) continue;
      const std::string found = std::exchange(step.found, {});
      const bool ends = step.ends;
      lock.unlock();
      if (ends) throw CompileError(kTooMuchMemory, {}, "{}", found);
      print_warning(kSlowStep, {}, found);
      return;  // what is next is told the next time
    }
  }

 private:
  Watch() = default;
  // Ids go on, as steps of the parent are left in the child too.
  Watch(int64_t last, bool is_guest) : last_(last), is_guest_(is_guest) {}

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (steps_.empty()) {
        wake_.wait(lock);
        continue;
      }
      look(steps_.back());
      wake_.wait_for(lock, std::chrono::milliseconds(50));
    }
  }

  struct Step {
    int64_t id;
    std::string name;
    StepLimits limits;
    double begin;
    int64_t bytes;  // of the process, when it began
    std::thread::id thread;
    bool warned = false, ends = false;
    std::string found = {};  // not told yet
  };

  void look(Step& step) const {
    const int64_t bytes = own_bytes();
    if (bytes - step.bytes > step.limits.memory) {
      const std::string text = fmt::format(
          "`{}` takes more than {:.2f} GiB of memory, which is more than this model should need",
          step.name, static_cast<double>(step.limits.memory) / (1 << 30));
      if (is_guest_) {
        step.found = text;
        step.ends = true;
        return;
      }
      print_error(fmt::format("error[{}]: {}", kTooMuchMemory.id, text));
      remove_temporary_files();
      ::_exit(kInputAtFault);
    }
    if (step.warned || processor_seconds() - step.begin < step.limits.seconds) return;
    step.warned = true;
    const std::string text = fmt::format(
        "`{}` has taken {:.0f} s of processor time and is not done; the process has {:.2f} GiB of "
        "memory",
        step.name, step.limits.seconds, static_cast<double>(bytes) / (1 << 30));
    if (is_guest_)
      step.found = text;
    else
      print_warning(kSlowStep, {}, text);
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Step> steps_;  // at work, the last to begin last
  int64_t last_ = 0;
  bool has_thread_ = false, is_guest_ = false;
};

}  // namespace

WatchedStep::WatchedStep(std::string name, StepLimits limits)
    : id_(Watch::instance().enter(std::move(name), limits)) {}
WatchedStep::~WatchedStep() { Watch::instance().leave(id_); }

void watch_as_guest() { Watch::instance().be_guest(); }
void tell_watched() { Watch::instance().tell(); }

StepLimits limits_for(const IRModule& module) {
  constexpr int64_t kFree = int64_t{7} << 28, kForEachByte = 32;
  int64_t bytes = 0;
  std::unordered_set<const TensorData*> seen;
  const auto add = [&](const Ref<TensorData>& data) {
    if (!data->is_splat() && seen.insert(data.get()).second) bytes += data->bytes();
  };
  for (const auto& [name, function] : module.functions())
    walk(function, [&](const NodePtr& node) {
      if (const auto* constant = node.as<graph::Constant>()) add(constant->data);
      if (const auto* constant = node.as<tir::AllocConst>()) add(constant->data);
    });
  const int64_t there = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  const int64_t most = std::max(kFree, there - there / 16);
  return {bytes > (most - kFree) / kForEachByte ? most : kFree + kForEachByte * bytes};
}

}  // namespace tenon
