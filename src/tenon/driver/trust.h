// SPDX-License-Identifier: Apache-2.0
// Checks code that a model brings along: it would run with all rights of the process, so it is
// linked only where the user allowed it (docs/trust.md).
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon {

/// Remembers the artefacts in `external_mods` of a module that was read from a file: those that a
/// back end makes in this process are not among them.
void remember_loaded_code(const IRModule& module);

/// Whether what `external_mods` holds may be linked.
/// \param link  libraries that the user named: one that the module asks for by its name is that.
/// \throws CompileError (kUntrustedCode) at an artefact that came with a file.
void check_loaded_code(const IRModule& module, const std::vector<std::string>& link);

}  // namespace tenon
