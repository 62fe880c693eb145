#include "tenon/driver/pass_list.h"

#include <algorithm>
#include <charconv>

#include "tenon/driver/passes.h"
#include "tenon/driver/usage.h"

namespace tenon {

namespace {

constexpr int kMaxDepth = 32;  // of nested lists

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

const Pass& known_pass(std::string_view name) {
  if (const Pass* pass = find_pass(name)) return *pass;
  const Pass* nearest = nullptr;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const Pass& pass : all_passes()) {
    const size_t distance = edit_distance(name, pass.name);
    if (distance >= least) continue;
    least = distance;
    nearest = &pass;
  }
  if (nearest) throw UsageError("no pass `{}`; did you mean `{}`?", name, nearest->name);
  throw UsageError("no pass `{}`; `tenon opt --list-passes` lists them", name);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Pipeline pipeline() {
    Pipeline passes;
    skip();
    while (at_ < text_.size()) {
      Pass pass = known_pass(name("the name of a pass"));
      if (accept('(')) pass.options = options();
      passes.push_back(std::move(pass));
      if (at_ == text_.size()) break;
      expect(',');
    }
    return passes;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const std::string seen =
        at_ < text_.size() ? fmt::format("`{}`", text_[at_]) : std::string("the end");
    throw UsageError("column {} of the list of passes: found {}; expected {}", at_ + 1, seen,
                     expected);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
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
      const std::string key(name("the name of an option"));
      if (options.contains(key)) throw UsageError("option `{}` is given twice", key);
      expect('=');
      options.set(key, literal(0));
      if (accept(')')) break;
      expect(',');
    }
    return options;
  }

  AttrValue literal(int depth) {
    if (depth > kMaxDepth) throw UsageError("an option nests deeper than {} lists", kMaxDepth);
    if (at_ >= text_.size()) fail("a literal");
    const char c = text_[at_];
    if (accept('[')) return AttrValue(items(']', depth));
    if (accept('(')) return AttrValue(items(')', depth));
    if (accept('{')) return AttrValue(map(depth));
    if (c == '"' || c == '\'') return AttrValue(string());
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return number();
    const size_t begin = at_;
    const std::string_view word = name("a literal");
    if (word == "None") return {};
    if (word == "True") return AttrValue(true);
    if (word == "False") return AttrValue(false);
    at_ = begin;
    fail("a literal (None, True, a number, a string, a list)");
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
      value += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
    }
    skip();
    return value;
  }
  AttrValue number() {
    const size_t begin = at_;
    if (text_[at_] == '+') ++at_;
    const char *first = text_.data() + at_, *last = text_.data() + text_.size();
    int64_t integer = 0;
    const auto whole = std::from_chars(first, last, integer);
    double real = 0;
    const auto part = std::from_chars(first, last, real);
    if (part.ec == std::errc() && (whole.ec != std::errc() || part.ptr > whole.ptr)) {
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

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Pipeline parse_pass_list(std::string_view text) { return Reader(text).pipeline(); }

}  // namespace tenon
