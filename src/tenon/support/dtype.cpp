// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/dtype.h"

#include <charconv>

namespace tenon {

static constexpr struct {
  DType dtype;
  std::string_view name;
} kMinifloats[] = {
    {kFloat8e4m3fn, "float8_e4m3fn"},   {kFloat8e4m3fnuz, "float8_e4m3fnuz"},
    {kFloat8e5m2, "float8_e5m2"},       {kFloat8e5m2fnuz, "float8_e5m2fnuz"},
    {kFloat8e8m0fnu, "float8_e8m0fnu"}, {kFloat4e2m1fn, "float4_e2m1fn"},
};

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
    case Code::kString: text = "string"; break;
    case Code::kFloat8e4m3fn:
    case Code::kFloat8e4m3fnuz:
    case Code::kFloat8e5m2:
    case Code::kFloat8e5m2fnuz:
    case Code::kFloat8e8m0fnu:
    case Code::kFloat4e2m1fn:
      for (const auto& row : kMinifloats)
        if (row.dtype.code == code) text = row.name;
      break;
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
  if (text == "string") return vector(kString);
  for (const auto& [dtype, name] : kMinifloats)
    if (text == name) return vector(dtype);
  if (text == "e4m3_float8") return vector(kFloat8e4m3fn);  // TVM's older names
  if (text == "e5m2_float8") return vector(kFloat8e5m2);
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
