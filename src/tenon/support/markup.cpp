// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/markup.h"

#include <cstdint>

namespace tenon {

static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The length of the character of UTF-8 that `text` begins with; 0 where it is none: cut off, longer
// than it needs to be, half of a surrogate pair, or above U+10FFFF.
static size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length < 2) return length;
  if (text.size() < length) return 0;
  uint32_t value = first & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
    value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < least || value > 0x10FFFF || is_surrogate ? 0 : length;
}

std::string markup(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const size_t length = character_length(text);
    const char c = text[0];
    const bool is_control = length == 1 && ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F);
    if (length == 0 || is_control) {
      out += "\xEF\xBF\xBD";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most > 3 ? most - 3 : 0;
  while (end > 0 && is_continuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace tenon
