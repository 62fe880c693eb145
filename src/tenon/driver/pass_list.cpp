// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/pass_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tenon/driver/passes.h"
#include "tenon/graph/backend.h"
#include "tenon/support/nearest.h"

namespace tenon {

namespace {

constexpr int kMaxDepth = 32;  // of nested lists

class Reader {
 public:
  explicit Reader(std::shared_ptr<const SourceFile> file)
      : file_(std::move(file)), text_(file_->text) {}

  Pipeline pipeline() {
    Pipeline passes;
    skip();
    while (at_ < text_.size()) {
      passes.push_back(pass());
      if (at_ == text_.size()) break;
      if (!accept(',') && !line_ended_) fail("`,` or the end of the line");
    }
    return passes;
  }

 private:
  Pass pass() {
    const size_t begin = at_;
    const std::string_view word = name("the name of a pass");
    const Pass* known = find_pass(word);
    if (!known) unknown(word, begin);
    Pass pass = *known;
    pass.origin = place(begin, word.size());
    if (!line_ended_ && accept('(')) pass.options = options();
    return pass;
  }

  [[noreturn]] void unknown(std::string_view word, size_t begin) const {
    std::vector<std::string> names;
    for (const Pass& pass : all_passes()) names.push_back(pass.name);
    for (const graph::Backend* backend : graph::all_backends())
      for (const Pass& pass : backend->passes) names.push_back(pass.name);
    std::string hint = did_you_mean(word, names);
    if (hint.empty()) hint = "; `tenon opt --list-passes` lists them";
    throw CompileError(kUnknownPass, place(begin, word.size()), "no pass `{}`{}", word, hint);
  }

  Origin place(size_t begin, size_t length) const {
    const std::string_view before = text_.substr(0, begin);
    const size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    return Origin::script(file_, static_cast<uint32_t>(line),
                          static_cast<uint32_t>(begin - line_begin + 1),
                          static_cast<uint32_t>(length));
  }

  [[noreturn]] void fail(std::string_view expected) const {
    const std::string seen =
        at_ < text_.size() ? fmt::format("`{}`", text_[at_]) : std::string("the end");
    throw CompileError(kSyntax, place(at_, 1), "found {}; expected {}", seen, expected);
  }
  void skip() {
    line_ended_ = false;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size()) break;
      if (text_[at_] == '\n') line_ended_ = true;
      if (text_[at_] != ' ' && text_[at_] != '\n' && text_[at_] != '\t' && text_[at_] != '\r')
        break;
    }
  }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("`{}`", c));
  }
  // A plugin's passes have its name and a dot in front.
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }
  std::string_view name(std::string_view what) {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) fail(what);
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip();
    return word;
  }

  Attrs options() {
    Attrs options;
    while (!accept(')')) {
      const size_t begin = at_;
      const std::string key(name("the name of an option"));
      if (options.contains(key))
        throw CompileError(kBadOption, place(begin, key.size()), "option `{}` is given twice", key);
      expect('=');
      options.set(key, literal(0));
      if (accept(')')) break;
      expect(',');
    }
    return options;
  }

  AttrValue literal(int depth) {
    if (depth > kMaxDepth)
      throw CompileError(kTooDeep, place(at_, 1), "an option nests deeper than {} lists",
                         kMaxDepth);
    if (at_ >= text_.size()) fail("a literal");
    const char c = text_[at_];
    if (accept('[')) return AttrValue(items(']', depth));
    if (accept('(')) return AttrValue(items(')', depth));
    if (accept('{')) return AttrValue(map(depth));
    if (c == '"' || c == '\'') return AttrValue(string());
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return number();
    if (!is_word(c)) fail("a literal (None, True, a number, a string, a list)");
    const std::string_view word = name("a literal");
    if (word == "None") return {};
    if (word == "True") return AttrValue(true);
    if (word == "False") return AttrValue(false);
    return AttrValue(std::string(word));  // a name needs no quotes: RunCodegen(backend=toy)
  }
  AttrList items(char close, int depth) {
    AttrList list;
    while (!accept(close)) {
      list.push_back(literal(depth + 1));
      if (accept(close)) break;
      expect(',');
    }
    return list;
  }
  AttrValue::Map map(int depth) {
    AttrValue::Map map;
    while (!accept('}')) {
      if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) fail("a string");
      const std::string key = string();
      expect(':');
      map[key] = literal(depth + 1);
      if (accept('}')) break;
      expect(',');
    }
    return map;
  }
  std::string string() {
    const char quote = text_[at_++];
    std::string value;
    for (;;) {
      if (at_ >= text_.size()) fail("the closing quote");
      const char c = text_[at_++];
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        continue;
      }
      if (at_ >= text_.size()) fail("the closing quote");
      const char escaped = text_[at_++];
      if (escaped == 'x') {
        value += byte();
        continue;
      }
      value += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped;
    }
    skip();
    return value;
  }
  // Of two hexadecimal digits.
  char byte() {
    unsigned value = 0;
    const size_t digits = std::min<size_t>(2, text_.size() - at_);
    const char* first = text_.data() + at_;
    if (std::from_chars(first, first + digits, value, 16).ptr != first + 2)
      fail("two hexadecimal digits");
    at_ += 2;
    return static_cast<char>(value);
  }
  AttrValue number() {
    const size_t begin = at_;
    if (text_[at_] == '+') ++at_;
    const char *first = text_.data() + at_, *last = text_.data() + text_.size();
    int64_t integer = 0;
    const auto whole = std::from_chars(first, last, integer);
    double real = 0;
    const auto part = std::from_chars(first, last, real);
    if (part.ec == std::errc() && std::isfinite(real) &&
        (whole.ec != std::errc() || part.ptr > whole.ptr)) {
      at_ = static_cast<size_t>(part.ptr - text_.data());
      skip();
      return AttrValue(real);
    }
    if (whole.ec != std::errc()) {
      at_ = begin;
      fail("a number");
    }
    at_ = static_cast<size_t>(whole.ptr - text_.data());
    skip();
    return AttrValue(integer);
  }

  std::shared_ptr<const SourceFile> file_;
  std::string_view text_;
  size_t at_ = 0;
  bool line_ended_ = false;  // between the last word and here
};

}  // namespace

Pipeline parse_pass_list(const std::shared_ptr<const SourceFile>& file) {
  return Reader(file).pipeline();
}

Pipeline parse_pass_list(std::string_view text) {
  return parse_pass_list(
      std::make_shared<const SourceFile>(SourceFile{"--passes", std::string(text)}));
}

std::string pass_text(const Pass& pass) {
  if (pass.options.empty()) return pass.name;
  std::string text;
  for (const auto& [name, value] : pass.options)
    text += (text.empty() ? "" : ", ") + name + "=" + value.str();
  return pass.name + "(" + text + ")";
}

}  // namespace tenon
