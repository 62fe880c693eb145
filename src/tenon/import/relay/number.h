// SPDX-License-Identifier: Apache-2.0
// Numbers of Relay text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon::relay {

/// A number and the dtype that its suffix says, or its form.
struct Number {
  std::string dtype;
  bool is_float = false;
  double real = 0;
  int64_t integer = 0;
};

/// Of `text` as the lexer gives it; nothing where it is no number or does not fit its dtype.
std::optional<Number> read_number(std::string_view text, bool negative);

}  // namespace tenon::relay
