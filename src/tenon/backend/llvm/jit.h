// SPDX-License-Identifier: Apache-2.0
// Links a compiled program into this process.
#pragma once

#include <memory>

#include "tenon/backend/libraries.h"
#include "tenon/backend/llvm/compile.h"
#include "tenon/runtime/abi.h"

namespace tenon::llvm_backend {

/// A program that is ready to run in this process; its code and constants live as long as this.
class LoadedProgram {
 public:
  virtual ~LoadedProgram() = default;
  const TenonProgram* program() const { return program_; }
  /// The constants as the program holds them: views of its memory, which they keep alive.
  const ConstantsLayout& constants() const { return constants_; }

 protected:
  ConstantsLayout constants_;
  const TenonProgram* program_ = nullptr;
};

/// Links the object by ORC's JITLink and lays the constants out in one block of memory. Each is let
/// go of as soon as it is in place, so that what nobody else holds is never there twice. What it
/// calls of libraries is taken from `libraries`, which live as
/// long as the program; functions called without a signature may be the C library's.
/// \throws CompileError (kLinkFailed) where a symbol is missing.
std::unique_ptr<LoadedProgram> link_in_process(
    CompiledProgram compiled, std::shared_ptr<const backend::Libraries> libraries = {});

}  // namespace tenon::llvm_backend
