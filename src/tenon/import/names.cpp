// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/names.h"

#include <fmt/core.h>

namespace tenon::importers {

std::string printable(const std::string& name) {
  constexpr size_t kLongest = 200;
  std::string out;
  for (const char c : name) {
    if (out.size() >= kLongest) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    // Text beyond ASCII stays; control characters do not.
    if (byte >= 32 && byte != 127) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

std::string identifier(const std::string& name) {
  constexpr size_t kLongest = 80;
  std::string out;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (letter || digit) {
      if (out.empty() && digit) out += 'v';
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
    if (out.size() >= kLongest) break;
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.empty() ? "v" : out;
}

}  // namespace tenon::importers
