// SPDX-License-Identifier: Apache-2.0
// The texts that elements of dtype `string` stand for while the compiler works: each text has one
// number, so that equal texts are equal numbers. Compiled programs have tables of their own
// (runtime/strings.h): numbers never leave the process. The dtype (kString) is no number: what moves
// or compares elements takes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// The number of a text; 0 is the empty one. From any thread.
int64_t intern_text(std::string_view text);
/// The text of a number that intern_text() gave; it stays where it is.
const std::string& text_of(int64_t id);

}  // namespace tenon
