// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/named_dims.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/import/names.h"

namespace tenon::onnx {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A name, or a number where that is empty, with its sign.
struct DimTerm {
  std::string name;
  int64_t number = 1;
};

// The terms of a sum of names and numbers; nothing where the text is no such sum of two to eight.
std::optional<std::vector<DimTerm>> terms_of(std::string_view text) {
  constexpr size_t kMostTerms = 8;
  std::vector<DimTerm> terms;
  size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  for (int64_t sign = 1;;) {
    skip();
    const size_t begin = at;
    while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]))) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    if (word.empty() || terms.size() == kMostTerms) return std::nullopt;
    DimTerm term{"", sign};
    if (is_digit(word[0])) {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (error != std::errc() || end != word.data() + word.size() || number > int64_t{1} << 31)
        return std::nullopt;
      term.number = sign * number;
    } else {
      term.name = word;
    }
    terms.push_back(std::move(term));
    skip();
    if (at == text.size()) break;
    if (text[at] != '+' && text[at] != '-') return std::nullopt;
    sign = text[at++] == '+' ? 1 : -1;
  }
  if (terms.size() < 2) return std::nullopt;
  return terms;
}

}  // namespace

Expr NamedDims::of(const std::string& name) {
  Expr& known = known_[name];
  if (known) return known;
  const auto fixed = options_.dims.find(name);
  if (fixed != options_.dims.end()) {
    if (fixed->second < 0)
      throw CompileError(kBadOption, {}, "{}: dimension `{}` is set to {}", model_.path,
                         importers::printable(name), fixed->second);
    return known = int64(fixed->second);
  }
  if (const Expr sum = sum_of(name)) return known = sum;
  return known = Var::size(names_.take(importers::identifier(name)));
}

bool NamedDims::is_dim(const std::string& name) const {
  if (options_.dims.contains(name)) return true;
  return std::any_of(
      model_.graph.inputs.begin(), model_.graph.inputs.end(), [&](const ValueInfo& input) {
        return input.shape && std::any_of(input.shape->begin(), input.shape->end(),
                                          [&](const Dim& dim) { return dim.name == name; });
      });
}

Expr NamedDims::sum_of(const std::string& text) {
  const auto terms = terms_of(text);
  if (!terms) return {};
  Expr sum = int64(0);
  for (const DimTerm& term : *terms) {
    if (!term.name.empty() && !is_dim(term.name)) return {};
    const Expr value = term.name.empty() ? int64(1) : of(term.name);
    sum = sum + value * term.number;
  }
  return arith::simplify(sum);
}

}  // namespace tenon::onnx
