// Wrong use of the command line: exit status 2.
#pragma once

#include <fmt/core.h>

#include <stdexcept>

namespace tenon {

class UsageError : public std::runtime_error {
 public:
  template <typename... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace tenon
