// SPDX-License-Identifier: Apache-2.0
// Writes the artefacts of a module's `external_mods` as files, for compilers and linkers, and a
// program in C with them.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend/c/emit.h"
#include "tenon/graph/external_modules.h"

namespace tenon {

/// Writes their code into `folder`; gives the file of each in order, and names of shared libraries
/// that are found by name. The names of the files follow from the artefacts alone.
/// \throws CompileError (kFileError).
std::vector<std::string> write_external_modules(const std::vector<graph::ExternalModule>& artefacts,
                                                const std::string& folder);

/// A program in C with the artefacts of the lowered module that it calls, which its Makefile links;
/// gives the paths. \throws CompileError (kFileError).
std::vector<std::string> write_c_program(c_backend::Program program, const IRModule& lowered,
                                         const Target& target, const std::string& folder);

}  // namespace tenon
