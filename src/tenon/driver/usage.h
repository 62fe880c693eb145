// SPDX-License-Identifier: Apache-2.0
// Wrong use of the command line: exit status 2.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <vector>

#include "tenon/support/diagnostics.h"

namespace tenon {

/// Its code is kBadOption, unless a diagnostic says what is wrong.
class UsageError : public std::runtime_error {
 public:
  template <typename... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error("error: " + fmt::format(format, std::forward<Args>(args)...)) {}

 protected:
  explicit UsageError(const CompileError& error) : std::runtime_error(error.what()) {}
};

/// A diagnostic in the text of an option, or about options together.
class UsageDiagnostic final : public UsageError {
 public:
  explicit UsageDiagnostic(const CompileError& error)
      : UsageError(error), diagnostics_(error.diagnostics()) {}

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace tenon
