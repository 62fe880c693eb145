// SPDX-License-Identifier: Apache-2.0
// Writes the artefacts of a module's `external_mods` as files, for compilers and linkers.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/external_modules.h"

namespace tenon {

/// Writes their code into `folder`; gives the file of each in order, and names of shared libraries
/// that are found by name. The names of the files follow from the artefacts alone.
/// \throws CompileError (kFileError).
std::vector<std::string> write_external_modules(const std::vector<graph::ExternalModule>& artefacts,
                                                const std::string& folder);

}  // namespace tenon
