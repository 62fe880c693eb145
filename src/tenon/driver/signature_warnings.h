// SPDX-License-Identifier: Apache-2.0
// Warns of signatures of --signatures that no composite uses, and of composites that have none.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend/functions.h"

namespace tenon {

/// \param files       of --signatures
/// \param libraries   of --call-by-name
/// \param composites  the names that patterns and functions of the model give composites:
///                    "toy.conv2d"
void warn_of_signatures(const std::vector<std::string>& files,
                        const std::vector<std::string>& libraries,
                        const std::vector<std::string>& composites,
                        const backend::ProgramFunctions& functions);

}  // namespace tenon
