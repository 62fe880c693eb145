// SPDX-License-Identifier: Apache-2.0
// Finds kernels that are not well defined: one that leaves elements unwritten, or reads elements
// that were never written, has no result to compare.
#pragma once

#include "tenon/ir/module.h"

namespace tenon {

/// The PrimFuncs of `module` that run on random buffers without reads of unset elements, indices
/// outside, races, and unwritten elements of their outputs; also those that cannot be tried
/// (symbolic dimensions, scalar parameters, library functions) or that would take too long. In
/// order of their names.
std::vector<std::string> defined_kernels(const IRModule& module);

}  // namespace tenon
