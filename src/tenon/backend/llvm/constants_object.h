// SPDX-License-Identifier: Apache-2.0
// Writes constants as an ELF object of their own, without passing them through LLVM.
#pragma once

#include <string>

#include "tenon/backend/llvm/compile.h"

namespace tenon::llvm_backend {

/// A relocatable object with one read-only section that holds the constants and the hidden
/// symbol kConstantsSymbol at its start. \throws CompileError (kFileError).
void write_constants_object(const ConstantsLayout& layout, const Target& target,
                            const std::string& path);

}  // namespace tenon::llvm_backend
