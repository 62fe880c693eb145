// SPDX-License-Identifier: Apache-2.0
// Texts in HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// `text` as the text of an element or as an attribute's value in double quotes: `&`, `<`, `>`, and
/// both quotes as entities; what is no UTF-8 and control characters but line feed and tab become
/// U+FFFD.
std::string markup(std::string_view text);

/// At most `most` bytes of `text`, cut between two characters of UTF-8; what was cut has "..." in
/// its place.
std::string shortened(std::string_view text, size_t most);

}  // namespace tenon
