// SPDX-License-Identifier: Apache-2.0
// Turns names of a network into identifiers and printable text.
#pragma once

#include <string>

namespace tenon::importers {

/// For messages: bytes that are no printable text are escaped, and a long name is cut.
std::string printable(const std::string& name);

/// A Python identifier made of a name: "/conv1/Conv_output_0" gives "conv1_Conv_output_0".
std::string identifier(const std::string& name);

}  // namespace tenon::importers
