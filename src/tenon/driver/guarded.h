// SPDX-License-Identifier: Apache-2.0
// Turns what an action throws into a message on the command line and an exit status.
#pragma once

#include <functional>
#include <string_view>

namespace tenon {

/// Exit status: 0 success.
inline constexpr int kInputAtFault = 1, kWrongUsage = 2, kInternal = 70;

/// On the error stream, after what is on the standard output already.
void print_error(std::string_view text);

/// Runs `action` and returns the exit status: its own, or that of what it threw, whose text is
/// printed.
int guarded(const std::function<int()>& action);

}  // namespace tenon
