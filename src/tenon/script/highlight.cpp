// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/highlight.h"

#include <algorithm>
#include <array>

#include "tenon/script/lexer.h"
#include "tenon/support/markup.h"

namespace tenon::script {

namespace {

// Readable on white and on black.
constexpr std::string_view kKeyword = "#b5499c", kString = "#3d8b40", kNumber = "#2f7fc1",
                           kComment = "#808080", kDecorator = "#b07d1e", kDefined = "#2a7ae2";

constexpr std::array<std::string_view, 20> kKeywords = {
    "and", "as", "class", "def",    "elif", "else",   "False", "for",  "from",  "if",
    "in",  "is", "None",  "import", "not",  "lambda", "or",    "True", "while", "with"};

void coloured(std::string_view text, std::string_view colour, std::string& out) {
  if (colour.empty()) {
    out += markup(text);
    return;
  }
  out += "<span style=\"color:";
  out += colour;
  out += "\">";
  out += markup(text);
  out += "</span>";
}

// Between tokens there is space, and comments.
void gap(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t hash = text.find('#');
    out += markup(text.substr(0, hash));
    if (hash == std::string_view::npos) return;
    const size_t end = std::min(text.find('\n', hash), text.size());
    coloured(text.substr(hash, end - hash), kComment, out);
    text.remove_prefix(end);
  }
}

}  // namespace

std::string html_of(const std::string& text) {
  const auto file = std::make_shared<const SourceFile>(SourceFile{"", text});
  std::string out = "<pre style=\"font-family:monospace;line-height:1.35;overflow-x:auto\">";
  const std::string_view all = file->text;
  size_t at = 0;
  std::string_view before;
  bool decorates = false;  // the names behind an @
  for (const Token& token : tokenize(file)) {
    const char* begin = token.text.data();
    if (token.text.empty() || begin < all.data() + at || begin >= all.data() + all.size()) continue;
    const auto start = static_cast<size_t>(begin - all.data());
    gap(all.substr(at, start - at), out);
    at = start + token.text.size();
    if (token.kind == TokenKind::kNewline) {
      decorates = false;
      gap(token.text, out);
      continue;
    }
    decorates |= token.is("@");
    std::string_view colour;
    if (token.kind == TokenKind::kString)
      colour = kString;
    else if (token.kind == TokenKind::kNumber)
      colour = kNumber;
    else if (decorates)
      colour = kDecorator;
    else if (token.kind == TokenKind::kName && (before == "def" || before == "class"))
      colour = kDefined;
    else if (token.kind == TokenKind::kName && std::ranges::count(kKeywords, token.text) > 0)
      colour = kKeyword;
    coloured(token.text, colour, out);
    before = token.text;
  }
  gap(all.substr(at), out);
  return out + "</pre>";
}

}  // namespace tenon::script
