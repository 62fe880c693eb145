// SPDX-License-Identifier: Apache-2.0
// Asks libraries for the size of their scratch while compiling, where the arguments are known.
#pragma once

#include <memory>

#include "tenon/backend/libraries.h"
#include "tenon/ir/pass.h"

namespace tenon {

/// A pass that calls functions of `scratch_query` (tir/scratch_query.h) whose arguments are numbers
/// and puts the answer in their place, so that the scratch is planned with everything else. Those
/// that are in none of `libraries` stay, to be called by the program. Before each call the program
/// asks again, and fails where that is more.
Pass ask_scratch(std::shared_ptr<const backend::Libraries> libraries);

}  // namespace tenon
