// SPDX-License-Identifier: Apache-2.0
// Splits the text of a Python file into tokens, indentation included.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tenon/support/diagnostics.h"

namespace tenon::script {

/// A range of one line of the text; line and column count from 1.
struct Place {
  uint32_t line = 1, column = 1, length = 1;
};

/// Lines of a text, the first and the last of them included; `last` 0: to its end. Where the first
/// one is indented, that is the indentation of all, and what is indented less ends them.
struct LineRange {
  uint32_t first = 1, last = 0;
};

enum class TokenKind : uint8_t {
  kName,
  kNumber,
  kString,  // with its prefix and quotes
  kOperator,
  kNewline,
  kIndent,
  kDedent,
  kEnd,
  kError,  // `text` is what could not be read; `message` says why
};

struct Token {
  TokenKind kind;
  std::string_view text;
  Place place;
  std::string_view message = {};

  bool is(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

/// The tokens of these lines of `file`, ending with kEnd; they refer to its text. What is not Python becomes a kError
/// token, so that text round a module may be anything.
/// \throws CompileError (kLimitExceeded) where the text is longer than 64 MiB.
std::vector<Token> tokenize(const std::shared_ptr<const SourceFile>& file, LineRange lines = {});

}  // namespace tenon::script
