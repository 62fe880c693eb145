#include "tenon/support/c_words.h"

#include <algorithm>
#include <iterator>

namespace tenon {

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

}  // namespace tenon
