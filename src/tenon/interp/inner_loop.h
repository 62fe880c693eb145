// SPDX-License-Identifier: Apache-2.0
// Runs loops of one statement on elements natively, without dispatching each instruction. Most time
// of a program is spent in them.
#pragma once

#include "tenon/interp/frame.h"

namespace tenon::interp {

/// Finds the loops of `code` that InnerLoop knows a form for: where one begins, kInnerLoop stands
/// instead of the jump past it.
void find_inner_loops(Code& code);

/// Runs up to `most` iterations from the one that the loop's counter is at; gives how many. What is
/// left to the machine (none but what fails there) is not begun. Does not move the counter.
int64_t run_inner_loop(const Code& code, const InnerLoop& loop, const Base* bases,
                       const Slot* slots, int64_t most);

}  // namespace tenon::interp
