// SPDX-License-Identifier: Apache-2.0
// Lets whoever waits for long work end it: the work asks now and then whether it is still wanted.
#pragma once

#include <functional>

namespace tenon {

/// What the work of this thread asks while it lives; the innermost one is asked. What it throws
/// ends the work.
class InterruptScope {
 public:
  explicit InterruptScope(std::function<void()> ask);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  friend void check_interrupt();
  std::function<void()> ask_;
  InterruptScope* outer_;
};

/// To be called where work goes on for long: at least every 100 ms, where nothing is lost by an
/// exception. Cheap where nobody waits. \throws what the innermost scope throws
void check_interrupt();

}  // namespace tenon
