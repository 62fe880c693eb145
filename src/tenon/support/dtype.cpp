// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/dtype.h"

#include <charconv>

namespace tenon {

std::string DType::str() const {
  std::string text;
  switch (code) {
    case Code::kInt: text = "int" + std::to_string(bits); break;
    case Code::kUInt: text = "uint" + std::to_string(bits); break;
    case Code::kFloat: text = "float" + std::to_string(bits); break;
    case Code::kBFloat: text = "bfloat" + std::to_string(bits); break;
    case Code::kBool: text = "bool"; break;
    case Code::kHandle: text = "handle"; break;
    case Code::kVoid: text = "void"; break;
    case Code::kFloat8e4m3fn: text = "float8_e4m3fn"; break;
    case Code::kFloat8e5m2: text = "float8_e5m2"; break;
  }
  if (lanes != 1) text += "x" + std::to_string(lanes);
  return text;
}

static std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<DType> DType::parse(std::string_view text) {
  int lanes = 1;
  if (const size_t x = text.rfind('x'); x != std::string_view::npos && x + 1 < text.size()) {
    if (const auto n = parse_number(text.substr(x + 1))) {
      if (*n < 1 || *n > 1024) return std::nullopt;
      lanes = *n;
      text = text.substr(0, x);
    }
  }
  const auto vector = [&](DType t) { return std::optional<DType>(t.with_lanes(lanes)); };
  if (text == "bool") return vector(kBool);
  if (text == "handle") return vector(kHandle);
  if (text == "void") return vector(kVoid);
  if (text == "float8_e4m3fn" || text == "e4m3_float8") return vector({Code::kFloat8e4m3fn, 8});
  if (text == "float8_e5m2" || text == "e5m2_float8") return vector({Code::kFloat8e5m2, 8});
  const auto with_bits = [&](std::string_view prefix, Code code, int least,
                             int most) -> std::optional<DType> {
    if (!text.starts_with(prefix)) return std::nullopt;
    const auto bits = parse_number(text.substr(prefix.size()));
    if (!bits || *bits < least || *bits > most || (*bits & (*bits - 1)) != 0) return std::nullopt;
    return vector({code, static_cast<uint8_t>(*bits)});
  };
  if (auto t = with_bits("int", Code::kInt, 1, 64)) return t;
  if (auto t = with_bits("uint", Code::kUInt, 1, 64)) return t;
  if (auto t = with_bits("float", Code::kFloat, 16, 64)) return t;
  if (auto t = with_bits("bfloat", Code::kBFloat, 16, 16)) return t;
  return std::nullopt;
}

}  // namespace tenon
