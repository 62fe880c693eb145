// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/identifiers.h"

#include <algorithm>
#include <iterator>

namespace tenon {

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

bool is_c_keyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "auto",     "bool",    "break",  "case",     "char",     "class",  "const",     "continue",
      "default",  "delete",  "do",     "double",   "else",     "enum",   "extern",    "float",
      "for",      "goto",    "if",     "inline",   "int",      "long",   "namespace", "new",
      "operator", "private", "public", "register", "restrict", "return", "short",     "signed",
      "sizeof",   "static",  "struct", "switch",   "template", "this",   "typedef",   "union",
      "unsigned", "virtual", "void",   "volatile", "while",    "true",   "false",     "asm"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

bool is_python_keyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "and",    "as",   "assert", "async",  "await",    "break", "class", "continue", "def",
      "del",    "elif", "else",   "except", "finally",  "for",   "from",  "global",   "if",
      "import", "in",   "is",     "lambda", "nonlocal", "not",   "or",    "pass",     "raise",
      "return", "try",  "while",  "with",   "yield",    "None",  "True",  "False"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

}  // namespace tenon
