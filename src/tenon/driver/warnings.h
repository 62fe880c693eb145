// SPDX-License-Identifier: Apache-2.0
// Warnings: likely mistakes of the user that do not stop the work.
#pragma once

#include <string>
#include <vector>

#include "tenon/support/diagnostics.h"
#include "tenon/support/remarks.h"

namespace tenon {

/// "place: warning[TN0010]: message", as errors are told, on the error stream.
void print_warning(const Code& code, const Origin& origin, const std::string& message);

template <typename... Args>
void warn(const Code& code, const Origin& origin, fmt::format_string<Args...> format,
          Args&&... args) {
  print_warning(code, origin, fmt::format(format, std::forward<Args>(args)...));
}

/// Tells of the user's patterns, rules and plans that match nothing in `model` (kMatchesNothing): those of
/// the command line, of the module and of passes. Those of a back end need not be in every model.
void warn_of_unmatched(const std::vector<Remark>& remarks, const std::string& model);

}  // namespace tenon
