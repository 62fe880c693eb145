// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/lexer.h"

#include <algorithm>
#include <array>

namespace tenon::relay {

namespace {

constexpr size_t kLongestText = size_t{64} << 20;
constexpr size_t kLongestName = 1024;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(const std::shared_ptr<const SourceFile>& file) : file_(file), text_(file->text) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  TokenText run() {
    while (at_ < text_.size() && out_.metadata.data() == nullptr) token();
    add(RelayToken::kEnd, at_, 0);
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Place place(size_t begin, size_t length) const {
    return {line_, static_cast<uint32_t>(begin - line_begin_ + 1),
            static_cast<uint32_t>(std::max<size_t>(1, length))};
  }

  template <typename... Args>
  [[noreturn]] void fail(const Code& code, size_t begin, size_t length,
                         fmt::format_string<Args...> format, Args&&... args) const {
    const Place at = place(begin, length);
    throw CompileError(code, Origin::script(file_, at.line, at.column, at.length), format,
                       std::forward<Args>(args)...);
  }

  void add(RelayToken kind, size_t begin, size_t length) {
    if (kind == RelayToken::kName && length > kLongestName) too_long(begin);
    out_.tokens.push_back({kind, text_.substr(begin, length), place(begin, length), {}});
  }

  [[noreturn]] void too_long(size_t begin) const {
    fail(kLimitExceeded, begin, 1, "a name of more than {} characters", kLongestName);
  }

  void newline() {
    ++line_;
    line_begin_ = at_;
    if (at_ > kLongestText)
      fail(kLimitExceeded, at_, 1, "a text of more than {} bytes before its metadata",
           kLongestText);
  }

  void token() {
    const char c = peek();
    if (c == '\n') {
      ++at_;
      return newline();
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\0') {
      if (c == '\0') fail(kSyntax, at_, 1, "a zero byte");
      ++at_;
      return;
    }
    if (c == '/' && peek(1) == '/') {
      const size_t begin = at_ + 2;
      while (at_ < text_.size() && peek() != '\n') ++at_;
      return comment(text_.substr(begin, at_ - begin));
    }
    if (c == '/' && peek(1) == '*') return block_comment();
    if (c == '#') return directive();
    if (c == '%') return local();
    if (c == '@') return global();
    if (c == '"' || c == '\'') return string();
    if (is_letter(c)) return name();
    if (is_digit(c)) return number();
    op();
  }

  void comment(std::string_view text) {
    if (out_.tokens.empty()) return;
    std::string_view& kept = out_.tokens.back().comment;
    const auto tells = [](std::string_view t) {
      return t.find("ty=") != std::string_view::npos || t.find("span=") != std::string_view::npos;
    };
    if (!tells(kept)) kept = text;
  }

  void block_comment() {
    const size_t begin = at_;
    const Place opened = place(begin, 2);
    int depth = 0;
    while (at_ < text_.size()) {
      if (peek() == '/' && peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (peek() == '*' && peek(1) == '/') {
        at_ += 2;
        if (--depth == 0) return comment(text_.substr(begin + 2, at_ - begin - 4));
      } else if (peek() == '\n') {
        ++at_;
        newline();
      } else {
        ++at_;
      }
    }
    throw CompileError(kSyntax, Origin::script(file_, opened.line, opened.column, 2),
                       "a comment that does not end");
  }

  // `#[version = "0.0.5"]` and `#[metadata]`; a line of Python's comments stands before TVMScript.
  void directive() {
    const size_t begin = at_;
    if (text_.substr(at_).starts_with("#[metadata]")) {
      out_.metadata_place = place(begin, 11);
      at_ += 11;
      out_.metadata = text_.substr(at_);
      return;
    }
    size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) end = text_.size();
    const std::string_view line = text_.substr(at_, end - at_);
    if (line.starts_with("#[version") && line.find(']') != std::string_view::npos) {
      at_ += line.find(']') + 1;
      return;
    }
    if (!line.starts_with("# "))
      fail(kSyntax, begin, 1, "`{}` is neither #[version = ...] nor #[metadata]",
           line.substr(0, 40));
    at_ = end;
  }

  // A name after % or @. Frontends put their own names in: `aten::x`, `layer1.0.weight`,
  // `scope/weights`, `input:0`. What is a projection (`x.0`) is told apart where it is used.
  size_t end_of_name(size_t at) const {
    const auto here = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    while (true) {
      const char c = here(at), next = here(at + 1);
      if (is_word(c)) {
        ++at;
      } else if (c == ':' && next == ':' && is_word(here(at + 2))) {
        at += 2;
      } else if ((c == '.' && is_word(next)) || ((c == '/' || c == '-') && is_letter(next)) ||
                 (c == ':' && is_digit(next))) {
        ++at;
      } else {
        return at;
      }
    }
  }

  void local() {
    const size_t begin = at_ + 1, end = end_of_name(begin);
    if (end == begin) fail(kSyntax, at_, 1, "`%` without a name");
    if (end - begin > kLongestName) too_long(at_);
    out_.tokens.push_back(
        {RelayToken::kLocal, text_.substr(begin, end - begin), place(at_, end - at_), {}});
    at_ = end;
  }

  void global() {
    const size_t begin = at_ + 1;
    if (text_.substr(begin).starts_with("T.prim_func")) return script();
    const size_t end = end_of_name(begin);
    if (end == begin) fail(kSyntax, at_, 1, "`@` without a name");
    for (size_t i = begin; i < end; ++i)
      if (static_cast<unsigned char>(text_[i]) >= 0x80)
        fail(kSyntax, i, 1, "a character that names of functions do not have");
    if (end - begin > kLongestName) too_long(at_);
    out_.tokens.push_back(
        {RelayToken::kGlobal, text_.substr(begin, end - begin), place(at_, end - at_), {}});
    at_ = end;
  }

  // TVMScript goes on until a line that begins a function, a directive or a comment of Relay's.
  void script() {
    const size_t begin = at_;
    const Place first = place(begin, 12);
    bool defined = false;
    while (at_ < text_.size()) {
      size_t end = text_.find('\n', at_);
      if (end == std::string_view::npos) end = text_.size();
      const std::string_view line = text_.substr(at_, end - at_);
      const bool flush_left = !line.empty() && line[0] != ' ' && line[0] != '\t';
      if (defined && flush_left && line[0] != ')') break;
      defined = defined || line.find("def ") != std::string_view::npos;
      at_ = std::min(end + 1, text_.size());
      if (end < text_.size()) newline();
    }
    out_.tokens.push_back({RelayToken::kScript, text_.substr(begin, at_ - begin), first, {}});
  }

  void name() {
    const size_t begin = at_;
    while (true) {
      if (is_word(peek())) {
        ++at_;
      } else if (peek() == '.' && is_letter(peek(1))) {
        ++at_;
      } else if (peek() == ':' && peek(1) == ':' && is_letter(peek(2))) {
        at_ += 2;
      } else {
        break;
      }
    }
    add(RelayToken::kName, begin, at_ - begin);
  }

  void number() {
    const size_t begin = at_;
    // After a dot stands the index of a projection, `.0.1`.
    const bool index = !out_.tokens.empty() && out_.tokens.back().is(".");
    while (true) {
      const char c = peek();
      const bool exponent_sign = (c == '+' || c == '-') && (text_[at_ - 1] | 0x20) == 'e' &&
                                 at_ > begin && is_digit(peek(1));
      if (!(is_word(c) || (c == '.' && !index && is_digit(peek(1))) || exponent_sign)) {
        if (c == '.' && !index && !is_letter(peek(1))) {  // "1."
          ++at_;
          continue;
        }
        break;
      }
      ++at_;
    }
    add(RelayToken::kNumber, begin, at_ - begin);
  }

  void string() {
    const size_t begin = at_;
    const char quote = text_[at_++];
    while (at_ < text_.size() && peek() != quote && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
    if (at_ >= text_.size() || peek() != quote) {
      at_ = std::min(at_, text_.size());
      fail(kSyntax, begin, at_ - begin, "a string that does not end");
    }
    ++at_;
    add(RelayToken::kString, begin, at_ - begin);
  }

  void op() {
    static constexpr std::array<std::string_view, 6> kLong = {"->", "=>", "<=", ">=", "==", "!="};
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view candidate : kLong) {
      if (!rest.starts_with(candidate)) continue;
      add(RelayToken::kOperator, at_, 2);
      at_ += 2;
      return;
    }
    static constexpr std::string_view kShort = "()[]{}:,.;=+-*/<>?|&!";
    if (kShort.find(peek()) == std::string_view::npos)
      fail(kSyntax, at_, 1, "a character that Relay does not have");
    add(RelayToken::kOperator, at_, 1);
    ++at_;
  }

  const std::shared_ptr<const SourceFile>& file_;
  std::string_view text_;
  size_t at_ = 0, line_begin_ = 0;
  uint32_t line_ = 1;
  TokenText out_;
};

}  // namespace

TokenText tokenize(const std::shared_ptr<const SourceFile>& file) { return Lexer(file).run(); }

}  // namespace tenon::relay
