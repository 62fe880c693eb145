// SPDX-License-Identifier: Apache-2.0
// Runs the system's C compiler on sources that Tenon writes or is given.
#pragma once

#include <string>
#include <vector>

#include "tenon/support/temporary_files.h"

namespace tenon::backend {

/// Runs `cc` (the environment's CC where it is set) with these arguments and waits for it.
/// \throws CompileError (kLinkFailed) with what it wrote where it fails or is not there; `what`
/// says what was to be made: "library `toy.c`".
void run_c_compiler(const std::vector<std::string>& arguments, const std::string& what);

using tenon::TemporaryFolder;

}  // namespace tenon::backend
