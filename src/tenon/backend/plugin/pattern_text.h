// SPDX-License-Identifier: Apache-2.0
// Reads the patterns of a plugin from their text.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"

namespace tenon::plugin {

/// \param words  of the back end, for messages. \throws CompileError (kBadPlugin).
std::vector<graph::FusionPattern> read_pattern_text(const std::string& text,
                                                    const std::string& backend,
                                                    const std::string& words);

}  // namespace tenon::plugin
