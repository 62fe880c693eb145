// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/lexer.h"

#include <algorithm>
#include <array>

namespace tenon::script {

namespace {

constexpr size_t kLongestText = size_t{64} << 20;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;  // Python's names may be of any script
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view text, LineRange lines) : text_(text) {
    while (line_ < lines.first && at_ < text_.size()) {
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
      newline();
    }
    if (lines.last != 0) {
      size_t end = at_;
      for (uint32_t line = line_; line <= lines.last && end < text_.size(); ++line)
        end = std::min(text_.find('\n', end), text_.size() - 1) + 1;
      text_ = text_.substr(0, end);
    }
    is_part_ = lines.first > 1 || lines.last != 0;
  }

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      if (line_start_ && brackets_ == 0) {
        if (!indentation()) continue;
      }
      token();
    }
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline)
      add(TokenKind::kNewline, at_, 0);
    while (indents_.size() > 1) {
      indents_.pop_back();
      add(TokenKind::kDedent, at_, 0);
    }
    add(TokenKind::kEnd, at_, 0);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Place place_of(size_t begin, size_t length) const {
    // Tokens over several lines (strings) are marked on their first one.
    size_t shown = length;
    const size_t newline = text_.substr(begin, length).find('\n');
    if (newline != std::string_view::npos) shown = newline;
    return {line_of_begin_, static_cast<uint32_t>(begin - line_begin_of_begin_ + 1),
            static_cast<uint32_t>(std::max<size_t>(1, shown))};
  }

  void add(TokenKind kind, size_t begin, size_t length, std::string_view message = {}) {
    if (begin >= line_begin_) {
      line_of_begin_ = line_;
      line_begin_of_begin_ = line_begin_;
    }
    tokens_.push_back({kind, text_.substr(begin, length), place_of(begin, length), message});
  }

  void newline() {
    ++line_;
    line_begin_ = at_;
  }

  // At the start of a line outside brackets: gives Indent and Dedent. False where the line is
  // blank.
  bool indentation() {
    size_t width = 0;
    while (peek() == ' ' || peek() == '\t' || peek() == '\f') {
      width = peek() == '\t' ? (width / 8 + 1) * 8 : width + 1;
      ++at_;
    }
    if (peek() == '#')
      while (at_ < text_.size() && peek() != '\n') ++at_;
    if (peek() == '\r' && peek(1) == '\n') ++at_;
    if (at_ >= text_.size()) return false;
    if (peek() == '\n') {
      ++at_;
      newline();
      return false;
    }
    line_start_ = false;
    if (is_part_ && tokens_.empty()) indents_ = {width};
    if (width < indents_.front()) {  // what follows belongs to no line of the range
      text_ = text_.substr(0, at_);
      return false;
    }
    if (width > indents_.back()) {
      indents_.push_back(width);
      add(TokenKind::kIndent, at_, 0);
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      add(TokenKind::kDedent, at_, 0);
    }
    if (width != indents_.back()) {
      add(TokenKind::kError, at_, 1, "indentation matches no block around it");
      indents_.push_back(width);
    }
    return true;
  }

  void token() {
    const char c = peek();
    if (c == '\n') {
      ++at_;
      if (brackets_ == 0) {
        add(TokenKind::kNewline, at_ - 1, 1);
        line_start_ = true;
      }
      newline();
      return;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
      return;
    }
    if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
      return;
    }
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      newline();
      return;
    }
    if (is_letter(c)) return name();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return string(at_);
    op();
  }

  void name() {
    const size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const bool quote = peek() == '"' || peek() == '\'';
    if (quote && word.size() <= 2 && word.find_first_not_of("rRbBuUfF") == std::string_view::npos)
      return string(begin);
    add(TokenKind::kName, begin, at_ - begin);
  }

  void number() {
    const size_t begin = at_;
    const auto exponent = [&] {
      const char last = at_ > begin ? text_[at_ - 1] : '\0';
      const bool hex = begin + 1 < text_.size() && (text_[begin + 1] | 0x20) == 'x';
      return !hex && (last == 'e' || last == 'E') && (peek() == '+' || peek() == '-');
    };
    while (is_letter(peek()) || is_digit(peek()) || peek() == '.' || exponent()) ++at_;
    add(TokenKind::kNumber, begin, at_ - begin);
  }

  void string(size_t begin) {
    const uint32_t first_line = line_;
    const size_t first_begin = line_begin_;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    bool closed = false;
    while (at_ < text_.size() && !closed) {
      const char c = peek();
      if (c == '\\' && at_ + 1 < text_.size()) {
        at_ += 2;
        if (text_[at_ - 1] == '\n') newline();
        continue;
      }
      if (c == '\n') {
        if (!triple) break;
        ++at_;
        newline();
        continue;
      }
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += triple ? 3 : 1;
        closed = true;
        continue;
      }
      ++at_;
    }
    line_of_begin_ = first_line;
    line_begin_of_begin_ = first_begin;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (closed) {
      tokens_.push_back({TokenKind::kString, text, place_of(begin, at_ - begin), {}});
    } else {
      tokens_.push_back(
          {TokenKind::kError, text, place_of(begin, at_ - begin), "a string that does not end"});
    }
  }

  void op() {
    static constexpr std::array<std::string_view, 25> kLong = {
        "**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=",
        "->",  "+=",  "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "@=", ":=", ""};
    size_t length = 0;
    for (const std::string_view candidate : kLong) {
      if (!candidate.empty() && text_.substr(at_).starts_with(candidate)) {
        length = candidate.size();
        break;
      }
    }
    const size_t begin = at_;
    if (length == 0) {
      static constexpr std::string_view kShort = "()[]{}:,.;=+-*/%@&|^~<>";
      if (kShort.find(peek()) == std::string_view::npos) {
        ++at_;
        return add(TokenKind::kError, begin, 1, "a character that Python does not have");
      }
      length = 1;
    }
    const char c = peek();
    if (length == 1 && (c == '(' || c == '[' || c == '{')) ++brackets_;
    if (length == 1 && (c == ')' || c == ']' || c == '}') && brackets_ > 0) --brackets_;
    at_ += length;
    add(TokenKind::kOperator, begin, length);
  }

  std::string_view text_;
  size_t at_ = 0, line_begin_ = 0, line_begin_of_begin_ = 0;
  uint32_t line_ = 1, line_of_begin_ = 1;
  int brackets_ = 0;
  bool line_start_ = true, is_part_ = false;
  std::vector<size_t> indents_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const std::shared_ptr<const SourceFile>& file, LineRange lines) {
  if (file->text.size() > kLongestText)
    throw CompileError(kLimitExceeded, Origin::script(file, 1, 1),
                       "a text of {} bytes; at most {} are accepted", file->text.size(),
                       kLongestText);
  return Lexer(file->text, lines).run();
}

}  // namespace tenon::script
