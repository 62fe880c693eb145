// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report/listing.h"

#include <array>
#include <vector>

namespace tenon {

// The word that follows `begin` in a line, up to a comma; empty where the line does not begin so.
static std::string_view word_after(std::string_view line, std::string_view begin) {
  if (!line.starts_with(begin)) return {};
  line.remove_prefix(begin.size());
  if (line.starts_with('"')) {
    const size_t end = line.find('"', 1);
    return end == std::string_view::npos ? std::string_view() : line.substr(1, end - 1);
  }
  return line.substr(0, line.find(','));
}

static bool says_something(std::string_view line) {
  static constexpr std::array<std::string_view, 8> kSilent = {
      "\t.cfi_", "\t.type", "\t.size", "\t.section", "\t.text", "\t.loc", "\t.file", ".Lfunc_end"};
  for (const std::string_view silent : kSilent)
    if (line.starts_with(silent)) return false;
  return !line.empty() && !line.starts_with("#") && !line.starts_with("\t#");
}

// The function that a part was cut from: "fn.f.body", "fn.f.task", "fn.f.body.4" of "fn.f".
static std::string_view whole_of(std::string_view symbol,
                                 const std::map<std::string, std::string>& functions) {
  for (size_t dot = symbol.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = symbol.rfind('.', dot - 1))
    if (functions.count(std::string(symbol.substr(0, dot))) != 0) return symbol.substr(0, dot);
  return symbol;
}

std::map<std::string, std::string> functions_of(std::string_view assembly) {
  std::map<std::string, std::string> functions;
  std::vector<std::string> order;
  std::string* text = nullptr;  // of the function at hand
  while (!assembly.empty()) {
    const std::string_view line = assembly.substr(0, assembly.find('\n'));
    assembly.remove_prefix(std::min(assembly.size(), line.size() + 1));
    if (line.ends_with("@function")) {
      order.emplace_back(word_after(line, "\t.type\t"));
      text = &functions[order.back()];
    } else if (line.starts_with("\t.size")) {
      text = nullptr;
    } else if (text && says_something(line)) {
      text->append(line).append("\n");
    }
  }
  std::map<std::string, std::string> out;
  for (const std::string& symbol : order)
    out[std::string(whole_of(symbol, functions))] += functions[symbol];
  return out;
}

}  // namespace tenon
