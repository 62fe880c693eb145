// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include <array>
#include <memory>
#include <mutex>

#include "tenon/support/diagnostics.h"
#include "tenon/support/mapped_file.h"
#include "tenon/support/plugin_codes.h"

namespace tenon::plugin {

namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/// The innermost call into foreign code of this thread.
struct Frame {
  sigjmp_buf back;
  volatile int signal = 0;  // 0: none came
  Frame* outer = nullptr;
};
thread_local Frame* innermost = nullptr;

std::array<struct sigaction, kSignals.size()> previous;
std::mutex mutex;  // of the two below
int guards = 0;    // alive in the process: the first installs the handlers, the last removes them

void handle(int number, siginfo_t* info, void* context) {
  if (number == SIGBUS && restore_mapped_page(info->si_addr)) return;
  if (innermost) {
    innermost->signal = number;
    siglongjmp(innermost->back, 1);
  }
  // Another thread's: as if the handler were not there.
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != number) continue;
    const struct sigaction& before = previous[i];
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction) {
      before.sa_sigaction(number, info, context);
      return;
    }
    if (before.sa_handler == SIG_IGN) return;
    if (before.sa_handler != SIG_DFL) {
      before.sa_handler(number);
      return;
    }
    signal(number, SIG_DFL);
    raise(number);
  }
}

/// The handlers, while at least one guard lives.
class Handlers {
 public:
  Handlers() {
    const std::lock_guard lock(mutex);
    if (guards++ > 0) return;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous[i]);
  }
  ~Handlers() {
    const std::lock_guard lock(mutex);
    if (--guards > 0) return;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;
};

/// A stack for the handler, where the foreign code has used up its own.
class SignalStack {
 public:
  SignalStack() {
    sigaltstack(nullptr, &before_);
    if ((before_.ss_flags & SS_DISABLE) == 0) return;
    constexpr size_t kBytes = 64 * 1024;
    memory_ = std::make_unique<char[]>(kBytes);
    stack_t stack = {};
    stack.ss_sp = memory_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    if (memory_) sigaltstack(&before_, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  stack_t before_ = {};
  std::unique_ptr<char[]> memory_;
};

}  // namespace

const char* words_of_signal(int number) {
  switch (number) {
    case SIGSEGV: return "accessed memory that is not there (SIGSEGV)";
    case SIGBUS: return "accessed memory that is not there (SIGBUS)";
    case SIGFPE: return "did arithmetic that has no result (SIGFPE)";
    case SIGILL: return "ran an instruction that does not exist (SIGILL)";
    case SIGABRT: return "called abort (SIGABRT)";
    case SIGKILL: return "was killed (SIGKILL)";
    default: return "was ended by a signal";
  }
}

namespace {

/// What can be jumped out of: no object in here has a destructor.
void run_caught(Frame& frame, const std::function<void()>& body) {
  // The mask is saved: a handler runs with its signal blocked.
  if (sigsetjmp(frame.back, 1) == 0) body();
}

/// Makes a frame the innermost one.
class Entered {
 public:
  explicit Entered(Frame& frame) {
    frame.outer = innermost;
    innermost = &frame;
  }
  ~Entered() { innermost = innermost->outer; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
};

}  // namespace

void guarded(const std::string& what, const std::function<void()>& body) {
  static std::recursive_mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const Handlers handlers;
  const SignalStack stack;
  auto frame = std::make_unique<Frame>();
  try {
    const Entered entered(*frame);
    run_caught(*frame, body);
  } catch (const CompileError&) {
    throw;
  } catch (const std::exception& error) {
    throw CompileError(kBadBackend, {}, "{} threw an exception: {}", what, error.what());
  } catch (...) {
    throw CompileError(kBadBackend, {}, "{} threw an exception", what);
  }
  if (frame->signal != 0)
    throw CompileError(kPluginCrash, {}, "{} crashed: it {}; this is a fault of the back end", what,
                       words_of_signal(frame->signal));
}

}  // namespace tenon::plugin
