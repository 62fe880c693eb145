// SPDX-License-Identifier: Apache-2.0
// Wrong use of the command line: exit status 2.
#pragma once

#include <fmt/core.h>

#include <stdexcept>

#include "tenon/support/diagnostics.h"

namespace tenon {

class UsageError : public std::runtime_error {
 public:
  template <typename... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error("error: " + fmt::format(format, std::forward<Args>(args)...)) {}
  /// A diagnostic in the text of an option.
  explicit UsageError(const CompileError& error) : std::runtime_error(error.what()) {}
};

}  // namespace tenon
