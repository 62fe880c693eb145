// Whether kernels are well defined: a kernel that leaves elements unwritten, or that reads what was
// never written, has no result that two ways to run it could agree on.
#pragma once

#include "tenon/ir/module.h"

namespace tenon {

/// The PrimFuncs of `module` that run on random buffers without reads of unset elements, indices
/// outside, races, and unwritten elements of their outputs; also those that cannot be tried
/// (symbolic dimensions, scalar parameters, library functions) or that would take too long. In
/// order of their names.
std::vector<std::string> defined_kernels(const IRModule& module);

}  // namespace tenon
