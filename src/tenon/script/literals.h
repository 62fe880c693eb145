// Numbers and strings of Python from their tokens.
#pragma once

#include <string>

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
/// \throws CompileError kBadLiteral at a malformed escape, kUnsupported at prefixes f and b
std::string read_string(const std::shared_ptr<const SourceFile>& file, const Token& token);

}  // namespace tenon::script::ast
