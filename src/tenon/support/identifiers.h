// SPDX-License-Identifier: Apache-2.0
// Names in the languages that Tenon reads and writes.
#pragma once

#include <string_view>

namespace tenon {

/// Letters, digits and `_`, no digit first: a name in C and Python, if it is no keyword there.
bool is_identifier(std::string_view text);

/// A keyword of C99, C++ or both, that is likely to be met as a name.
bool is_c_keyword(std::string_view word);
/// A keyword of Python.
bool is_python_keyword(std::string_view word);

}  // namespace tenon
