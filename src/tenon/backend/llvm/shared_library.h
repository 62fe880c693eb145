// Writes a compiled program as a shared library.
#pragma once

#include <string>

#include "tenon/backend/llvm/compile.h"

namespace tenon::llvm_backend {

/// Links the object and the constants into the shared library `path`, which exports
/// `tenon_program`. Constants go in as a section of their own, streamed through a temporary file
/// beside `path`. The bytes depend on `compiled` alone. \throws CompileError (kFileError,
/// kLinkFailed).
void write_shared_library(const CompiledProgram& compiled, const std::string& path);

}  // namespace tenon::llvm_backend
