// SPDX-License-Identifier: Apache-2.0
// The floating-point state that generated code runs in: round to nearest, IEEE denormals, no traps.
#pragma once

#include <cstdint>

namespace tenon::runtime {

/// Sets that state on this thread and restores the former at the end of the scope. Denormals stay
/// what IEEE says they are, although some hosts are slow on them: flushing would make results
/// differ from the reference interpreter's.
class FloatStateScope {
 public:
#if defined(__SSE__)
  FloatStateScope() : saved_(__builtin_ia32_stmxcsr()) {
    if ((saved_ & ~kFlags) != kDefault) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~FloatStateScope() {
    if ((saved_ & ~kFlags) != kDefault) __builtin_ia32_ldmxcsr(saved_);
  }

 private:
  static constexpr uint32_t kDefault = 0x1f80;  // every exception masked, all else off
  static constexpr uint32_t kFlags = 0x003f;    // exceptions seen so far: no part of the mode
  uint32_t saved_;
#elif defined(__aarch64__)
  FloatStateScope() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != 0) asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~FloatStateScope() {
    if (saved_ != 0) asm volatile("msr fpcr, %0" ::"r"(saved_));
  }

 private:
  uint64_t saved_;
#else
  FloatStateScope() {}
  ~FloatStateScope() {}

 private:
#endif
  FloatStateScope(const FloatStateScope&) = delete;
  FloatStateScope& operator=(const FloatStateScope&) = delete;
};

}  // namespace tenon::runtime
