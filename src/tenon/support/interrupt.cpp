// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/interrupt.h"

#include <utility>

namespace tenon {

static thread_local InterruptScope* innermost = nullptr;

InterruptScope::InterruptScope(std::function<void()> ask)
    : ask_(std::move(ask)), outer_(innermost) {
  innermost = this;
}
InterruptScope::~InterruptScope() { innermost = outer_; }

void check_interrupt() {
  if (innermost) innermost->ask_();
}

}  // namespace tenon
