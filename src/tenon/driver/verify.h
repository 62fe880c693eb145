// Verifies whole modules: every function by the verifier of its level.
#pragma once

#include "tenon/ir/module.h"

namespace tenon {

/// \throws CompileError with everything that is wrong with the module.
void verify_module(const IRModule& module);

/// Prints the module, parses the text and compares.
/// \throws InternalError where the text does not parse back, or to another module.
void check_text(const IRModule& module);

}  // namespace tenon
