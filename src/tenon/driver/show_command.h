// SPDX-License-Identifier: Apache-2.0
// `tenon show`: the interface of a compiled program.
#pragma once

#include <string>

namespace tenon {

/// What the compiled program in the library `path` takes, gives and needs, as lines.
/// \throws CompileError (kLinkFailed) where the file is none.
std::string interface_text(const std::string& path);

}  // namespace tenon
