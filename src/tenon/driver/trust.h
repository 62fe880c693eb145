// What a model brings along that is code: it runs with all that the process may do, so that it is
// linked only where the user said so (docs/trust.md).
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
