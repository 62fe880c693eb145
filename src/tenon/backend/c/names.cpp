// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c/names.h"

#include <fmt/core.h>

#include "tenon/support/identifiers.h"
#include "tenon/support/names.h"

namespace tenon::c_backend {

std::string c_identifier(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (out.empty() && digit) out += '_';
    out += letter || digit ? c : '_';
  }
  if (out.empty() || is_c_keyword(out)) out += '_';
  return out;
}

std::string Names::take(const std::string& text) {
  return fresh_name(c_identifier(text),
                    [&](const std::string& name) { return !taken_.insert(name).second; });
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string comment_text(std::string text) {
  for (const char* mark : {"*/", "/*"})
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) text[at] = '+';
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\\') c = '?';
  return text;
}

std::string c_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?') {  // `??` begins a trigraph
      out += '\\';
      out += c;
    } else if (byte < ' ' || byte > '~') {
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string c_type(DType dtype) {
  dtype = dtype.storage();
  if (dtype.element() == kFloat32) return "float";
  if (dtype.element() == kFloat64) return "double";
  if (dtype.is_bool()) return "uint8_t";
  if (dtype.is_int()) return fmt::format("int{}_t", dtype.bits);
  return fmt::format("uint{}_t", dtype.bits);
}

}  // namespace tenon::c_backend
