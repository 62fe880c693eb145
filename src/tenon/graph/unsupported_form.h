// SPDX-License-Identifier: Apache-2.0
// Reports a form of a foreign operator that its converter does not handle.
#pragma once

#include <fmt/core.h>

#include <string>

namespace tenon::graph {

/// A form of an operator that is not read. Caught by the reader of the file, which lists them all.
struct Unsupported {
  std::string form;  // "mode `cubic`"
};
template <typename... Args>
[[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Unsupported{fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace tenon::graph
