// SPDX-License-Identifier: Apache-2.0
// Quotes texts as literals of the languages that Tenon writes.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// `text` as a Python string literal in double quotes.
std::string quoted(std::string_view text);

}  // namespace tenon
