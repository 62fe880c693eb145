// SPDX-License-Identifier: Apache-2.0
// Writes C source for a function made of calls of oneDNN.
#pragma once

#include <string>

#include "tenon/backend/dnnl/region.h"

namespace tenon::backend::dnnl {

/// What stands once in front of all functions of a module.
std::string c_prelude();

/// The function itself: tables, and a call of what the prelude holds.
std::string c_function(const std::string& symbol, const MatchGraph& graph, const Region& region);

}  // namespace tenon::backend::dnnl
