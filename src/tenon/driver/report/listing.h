// SPDX-License-Identifier: Apache-2.0
// Cuts the assembly of a program into its functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tenon {

/// The text of each function by its symbol, without directives that say nothing to a reader; the
/// functions that it was divided into (`SYMBOL.parallel`, ...) follow it. Names in quotes are given
/// without them.
std::map<std::string, std::string> functions_of(std::string_view assembly);

}  // namespace tenon
