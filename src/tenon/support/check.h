// SPDX-License-Identifier: Apache-2.0
// Internal invariants: what stops Tenon when Tenon itself is wrong.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace tenon {

/// A broken invariant of Tenon itself; the command line turns it into exit status 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const std::string& what, const char* file, int line);

/// Stops on a broken invariant of Tenon itself; never on anything a user wrote.
inline void check(bool holds, std::string_view what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    fail_check(std::string(what), file, line);
}

/// For a switch over an enumeration whose cases are all handled above.
[[noreturn]] inline void unreachable(std::string_view what, const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
  fail_check(std::string(what), file, line);
}

}  // namespace tenon
