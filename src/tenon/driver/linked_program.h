// SPDX-License-Identifier: Apache-2.0
// A program in this process, and its constants.
#pragma once

#include <memory>

#include "tenon/backend/llvm/compile.h"
#include "tenon/driver/commands.h"
#include "tenon/runtime/program.h"

namespace tenon {

struct LinkedProgram {
  std::shared_ptr<runtime::Program> program;
  backend::ConstantsLayout constants;  // views of the program's memory
};

/// As `link` (compiler.h). Constants of `code` that nobody else holds are freed as they are put in
/// place. \throws CompileError (kLinkFailed).
LinkedProgram link_with_constants(llvm_backend::CompiledProgram code,
                                  std::shared_ptr<const backend::Libraries> libraries);

/// As `link` (commands.h), and the constants of `built` become views of the program's memory, so that
/// each is there once. \throws CompileError (kLinkFailed).
std::shared_ptr<runtime::Program> link_in_place(BuiltModel& built);

}  // namespace tenon
