// SPDX-License-Identifier: Apache-2.0
// Parses Python's literals: the tokens of numbers and strings, and values made of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/ir/attrs.h"
#include "tenon/script/ast.h"

namespace tenon::script::ast {

struct Number {
  bool is_float = false;
  Integer integer = 0;
  double number = 0;
};

/// \throws CompileError (kBadLiteral) where it is malformed, or an integer beyond 64 bits.
Number read_number(const std::shared_ptr<const SourceFile>& file, const Token& token);

/// The contents of one string token. `\xNN` is a byte, `\uNNNN` a character in UTF-8.
/// \throws CompileError kBadLiteral at a malformed escape, kUnsupported at prefix b
std::string read_string(const std::shared_ptr<const SourceFile>& file, const Token& token);

bool is_format_string(const Token& token);

/// A stretch of an f-string: text, or the text of an expression in braces.
struct FormatPiece {
  bool is_expression = false;
  std::string text;
};
/// \throws CompileError kSyntax at braces that do not match, kUnsupported at conversions and
/// formats
std::vector<FormatPiece> read_format(const std::shared_ptr<const SourceFile>& file,
                                     const Token& token);

/// The value of an expression of literals: `None`, `True`, numbers, strings, lists, tuples and
/// dictionaries of these with strings as keys. What else stands in it is what `otherwise` makes of
/// it.
AttrValue literal_value(const Expr& expr, const std::function<AttrValue(const Expr&)>& otherwise);

}  // namespace tenon::script::ast
