// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/number.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>

#include "tenon/support/dtype.h"

namespace tenon::relay {

std::optional<Number> read_number(std::string_view text, bool negative) {
  const bool infinite = text.starts_with("inf"), nan = text.starts_with("nan");
  Number out;
  std::string_view suffix;
  if (infinite || nan) {
    out.real = infinite ? std::numeric_limits<double>::infinity()
                        : std::numeric_limits<double>::quiet_NaN();
    suffix = text.substr(3);
    if (suffix.starts_with("inity")) suffix.remove_prefix(5);
    out.is_float = true;
    if (suffix.empty()) suffix = "f";
  } else {
    size_t digits = 0;
    bool exponent = false;
    while (digits < text.size()) {
      const char c = text[digits];
      const bool sign = (c == '+' || c == '-') && digits > 0 && (text[digits - 1] | 0x20) == 'e';
      const bool begins_exponent = (c == 'e' || c == 'E') && !exponent;
      if (!((c >= '0' && c <= '9') || c == '.' || sign || begins_exponent)) break;
      exponent = exponent || begins_exponent;
      out.is_float = out.is_float || c == '.' || begins_exponent;
      ++digits;
    }
    suffix = text.substr(digits);
    const std::string number((negative ? "-" : "") + std::string(text.substr(0, digits)));
    char* end = nullptr;
    out.real = std::strtod(number.c_str(), &end);
    if (digits == 0 || *end != '\0') return std::nullopt;
    const auto [stop, error] =
        std::from_chars(number.data(), number.data() + number.size(), out.integer);
    const bool whole = error == std::errc() && stop == number.data() + number.size();
    if (!out.is_float && !whole) {
      // Of 64 unsigned bits, kept as the same bits.
      uint64_t bits = 0;
      const auto wide = std::from_chars(number.data(), number.data() + number.size(), bits);
      if (wide.ec != std::errc() || suffix != "u64") return std::nullopt;
      out.integer = static_cast<int64_t>(bits);
    }
  }
  if (negative && (infinite || nan)) out.real = -out.real;
  if (suffix.empty()) {
    out.dtype = out.is_float ? "float32" : "int32";
    return out;
  }
  static const std::map<char, const char*> kLetters = {{'f', "float"}, {'i', "int"}, {'u', "uint"}};
  const bool brain = suffix.starts_with("bf");
  const auto letter = kLetters.find(suffix[0]);
  if (!brain && letter == kLetters.end()) return std::nullopt;
  std::string_view bits = suffix.substr(brain ? 2 : 1);
  if (bits.empty()) bits = brain ? "16" : "32";
  out.dtype = (brain ? "bfloat" : letter->second) + std::string(bits);
  const bool float_suffix = brain || suffix[0] == 'f';
  if (out.is_float && !float_suffix) return std::nullopt;
  out.is_float = float_suffix;
  return DType::parse(out.dtype) ? std::optional(out) : std::nullopt;
}

}  // namespace tenon::relay
