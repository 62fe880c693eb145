// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/literals.h"

#include <charconv>
#include <cstdlib>

namespace tenon::script::ast {

static Origin origin_of(const std::shared_ptr<const SourceFile>& file, const Token& token) {
  return Origin::script(file, token.place.line, token.place.column, token.place.length);
}

Number read_number(const std::shared_ptr<const SourceFile>& file, const Token& token) {
  std::string digits;
  for (const char c : token.text)
    if (c != '_') digits += c;
  const auto bad = [&]() -> CompileError {
    return CompileError(kBadLiteral, origin_of(file, token), "`{}` is not a number", token.text);
  };
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char mark = static_cast<char>(digits[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  }
  if (base != 10 || digits.find_first_not_of("0123456789") == std::string::npos) {
    const char* begin = digits.data() + (base != 10 ? 2 : 0);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), value, base);
    if (error == std::errc::result_out_of_range)
      throw CompileError(kBadLiteral, origin_of(file, token), "`{}` does not fit 64 bits",
                         token.text);
    if (error != std::errc() || end != digits.data() + digits.size()) throw bad();
    return {.integer = static_cast<Integer>(value)};
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) throw bad();
  if (error == std::errc::result_out_of_range)
    value = std::strtod(digits.c_str(), nullptr);  // to 0 or infinity, as Python reads it
  return {.is_float = true, .number = value};
}

static void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 63));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

static void decode(const std::shared_ptr<const SourceFile>& file, const Token& token,
                   std::string_view text, bool raw, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || raw || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    switch (c) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'v': out += '\v'; break;
      case '\\':
      case '\'':
      case '"': out += c; break;
      case '\n': break;
      case '0': out += '\0'; break;
      case 'x':
      case 'u': {
        const size_t width = c == 'x' ? 2 : 4;
        uint32_t code = 0;
        const std::string_view digits = text.substr(i + 1, width);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (error != std::errc() || digits.size() != width || end != digits.data() + width)
          throw CompileError(kBadLiteral, origin_of(file, token), "`\\{}` needs {} hex digits", c,
                             width);
        if (c == 'x') {
          out += static_cast<char>(code);  // a byte, as the printer writes it
        } else {
          append_utf8(out, code);
        }
        i += width;
        break;
      }
      default: out += '\\'; out += c;
    }
  }
}

// The text between the quotes, and whether escapes stay as they are.
static std::string_view contents(const std::shared_ptr<const SourceFile>& file, const Token& token,
                                 bool& raw) {
  std::string_view text = token.text;
  while (text[0] != '"' && text[0] != '\'') {
    const char prefix = static_cast<char>(text[0] | 0x20);
    if (prefix == 'r') raw = true;
    if (prefix == 'b')
      throw CompileError(kUnsupported, origin_of(file, token), "a string with prefix `{}`",
                         text[0]);
    text.remove_prefix(1);
  }
  const size_t quotes = text.starts_with("\"\"\"") || text.starts_with("'''") ? 3 : 1;
  return text.substr(quotes, text.size() - 2 * quotes);
}

std::string read_string(const std::shared_ptr<const SourceFile>& file, const Token& token) {
  bool raw = false;
  const std::string_view text = contents(file, token, raw);
  std::string out;
  decode(file, token, text, raw, out);
  return out;
}

bool is_format_string(const Token& token) {
  for (const char c : token.text) {
    if (c == '"' || c == '\'') return false;
    if (c == 'f' || c == 'F') return true;
  }
  return false;
}

std::vector<FormatPiece> read_format(const std::shared_ptr<const SourceFile>& file,
                                     const Token& token) {
  bool raw = false;
  const std::string_view text = contents(file, token, raw);
  std::vector<FormatPiece> out;
  std::string literal;
  const auto end_literal = [&] {
    if (literal.empty()) return;
    out.push_back({});
    decode(file, token, literal, raw, out.back().text);
    literal.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      literal += c;
      ++i;
      continue;
    }
    if (c == '}')
      throw CompileError(kSyntax, origin_of(file, token), "`}}` without `{{` in an f-string");
    if (c != '{') {
      literal += c;
      continue;
    }
    end_literal();
    int open = 0;
    const size_t begin = ++i;
    while (i < text.size() && (text[i] != '}' || open > 0)) {
      if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++open;
      if (text[i] == ')' || text[i] == ']' || text[i] == '}') --open;
      if (open == 0 && (text[i] == ':' || (text[i] == '!' && text.substr(i, 2) != "!=")))
        throw CompileError(kUnsupported, origin_of(file, token),
                           "a format after `{}` in an f-string", text[i]);
      ++i;
    }
    if (i >= text.size())
      throw CompileError(kSyntax, origin_of(file, token), "`{{` without `}}` in an f-string");
    out.push_back({true, std::string(text.substr(begin, i - begin))});
  }
  end_literal();
  return out;
}

AttrValue literal_value(const Expr& expr, const std::function<AttrValue(const Expr&)>& otherwise) {
  const bool is_negative = expr.kind == ExprKind::kUnary && expr.text == "-";
  const bool is_signed = is_negative || (expr.kind == ExprKind::kUnary && expr.text == "+");
  const Expr& number = is_signed ? *expr.items[0] : expr;
  switch (number.kind) {
    case ExprKind::kInteger: {
      const Integer value = is_negative ? -number.integer : number.integer;
      const auto narrow = static_cast<int64_t>(value);
      return narrow == value ? AttrValue(narrow) : otherwise(expr);
    }
    case ExprKind::kFloat: return is_negative ? -number.number : number.number;
    default: break;
  }
  switch (expr.kind) {
    case ExprKind::kNone: return {};
    case ExprKind::kTrue: return true;
    case ExprKind::kFalse: return false;
    case ExprKind::kString: return expr.text;
    case ExprKind::kTuple:
    case ExprKind::kList: {
      AttrList list;
      for (const ExprPtr& item : expr.items) list.push_back(literal_value(*item, otherwise));
      return list;
    }
    case ExprKind::kDict: {
      AttrValue::Map map;
      for (size_t i = 0; i < expr.items.size(); i += 2) {
        const AttrValue key = literal_value(*expr.items[i], otherwise);
        if (!key.as<std::string>()) return otherwise(expr);
        map[*key.as<std::string>()] = literal_value(*expr.items[i + 1], otherwise);
      }
      return map;
    }
    default: return otherwise(expr);
  }
}

}  // namespace tenon::script::ast
