// SPDX-License-Identifier: Apache-2.0
// Writes a compiled program as a shared library.
#pragma once

#include <string>

#include "tenon/backend/libraries.h"
#include "tenon/backend/llvm/compile.h"

namespace tenon::llvm_backend {

/// Links the object and the constants into the shared library `path`, which exports
/// `tenon_program`. Constants go in as a section of their own, streamed through a temporary file
/// beside `path`. Of `libraries`, objects and archives go in, shared libraries are recorded (by
/// their sonames, to be found where they are now or beside the program). The bytes depend on
/// `compiled` and the libraries alone. \throws CompileError (kFileError, kLinkFailed).
void write_shared_library(const CompiledProgram& compiled, const std::string& path,
                          const backend::Libraries* libraries = nullptr);

}  // namespace tenon::llvm_backend
