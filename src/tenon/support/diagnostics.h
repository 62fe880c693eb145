// SPDX-License-Identifier: Apache-2.0
// Errors in what the user gave us: a code, a place, what was seen and what was expected.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string>
#include <vector>

#include "tenon/support/codes.h"
#include "tenon/support/origin.h"

namespace tenon {

struct Note {
  Origin origin;
  std::string message;
};

struct Diagnostic {
  Code code;
  Origin origin;
  std::string message;
  std::vector<Note> notes;
};

/// `place: error[TN0101]: message`, the source line underlined where there is one, then the notes
/// alike.
std::string render(const Diagnostic& diagnostic);

/// One or more errors in what the user gave us. Thrown by constructors, passes, readers and
/// verifiers.
class CompileError : public std::exception {
 public:
  template <typename... Args>
  CompileError(const Code& code, Origin origin, fmt::format_string<Args...> format, Args&&... args)
      : CompileError(Diagnostic{
            code, std::move(origin), fmt::format(format, std::forward<Args>(args)...), {}}) {}
  explicit CompileError(Diagnostic diagnostic)
      : CompileError(std::vector<Diagnostic>{std::move(diagnostic)}) {}
  explicit CompileError(std::vector<Diagnostic> diagnostics);

  /// Adds a line that explains the (last) error at another place.
  template <typename... Args>
  CompileError& note(Origin origin, fmt::format_string<Args...> format, Args&&... args) & {
    add_note({std::move(origin), fmt::format(format, std::forward<Args>(args)...)});
    return *this;
  }
  template <typename... Args>
  CompileError&& note(Origin origin, fmt::format_string<Args...> format, Args&&... args) && {
    add_note({std::move(origin), fmt::format(format, std::forward<Args>(args)...)});
    return std::move(*this);
  }

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  const Diagnostic& first() const { return diagnostics_.front(); }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void add_note(Note note);
  void refresh();
  std::vector<Diagnostic> diagnostics_;
  std::string text_;  // all of them rendered
};

/// Collects errors where one run can find several (parser, verifier, importer); thrown once at the
/// end.
class Diagnostics {
 public:
  template <typename... Args>
  Diagnostic& error(const Code& code, Origin origin, fmt::format_string<Args...> format,
                    Args&&... args) {
    items_.push_back(
        {code, std::move(origin), fmt::format(format, std::forward<Args>(args)...), {}});
    return items_.back();
  }
  void add(const CompileError& error) {
    items_.insert(items_.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
  void add(const Diagnostics& others) {
    items_.insert(items_.end(), others.items_.begin(), others.items_.end());
  }
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const std::vector<Diagnostic>& items() const { return items_; }
  void throw_if_any() const {
    if (!items_.empty()) throw CompileError(items_);
  }

 private:
  std::vector<Diagnostic> items_;
};

}  // namespace tenon
