// SPDX-License-Identifier: Apache-2.0
// Colours a text of Python, as a piece of HTML.
#pragma once

#include <string>

namespace tenon::script {

/// `<pre>` with the text in it, its words in colours that suit light and dark pages. It needs no
/// style sheet. Any text: what is not Python has no colour.
std::string html_of(const std::string& text);

}  // namespace tenon::script
