// SPDX-License-Identifier: Apache-2.0
// Warnings: likely mistakes of the user that do not stop the work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/support/diagnostics.h"
#include "tenon/support/remarks.h"

namespace tenon {

/// "place: warning[TN0010]: message", as errors are told, on the error stream; or to what a
/// WarningScope of this thread names.
void print_warning(const Code& code, const Origin& origin, const std::string& message);

/// Hands the warnings of everything that runs on this thread to `take` while it lives; the
/// innermost one gets them.
class WarningScope {
 public:
  using Take = std::function<void(const Code&, const Origin&, const std::string& message)>;
  explicit WarningScope(Take take);
  ~WarningScope();
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

 private:
  friend void print_warning(const Code& code, const Origin& origin, const std::string& message);
  Take take_;
  WarningScope* outer_;
};

template <typename... Args>
void warn(const Code& code, const Origin& origin, fmt::format_string<Args...> format,
          Args&&... args) {
  print_warning(code, origin, fmt::format(format, std::forward<Args>(args)...));
}

/// Tells of the user's patterns, rules and plans that match nothing in `model` (kMatchesNothing): those of
/// the command line, of the module and of passes. Those of a back end need not be in every model.
void warn_of_unmatched(const std::vector<Remark>& remarks, const std::string& model);

}  // namespace tenon
