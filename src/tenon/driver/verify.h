// SPDX-License-Identifier: Apache-2.0
// Verifies whole modules: every function by the verifier of its level.
#pragma once

#include "tenon/ir/module.h"
#include "tenon/tir/analysis/verifier.h"

namespace tenon {

/// \throws CompileError with everything that is wrong with the module.
///
/// \param memory  may be null: what earlier versions of the module have shown, see tir::verify.
void verify_module(const IRModule& module, tir::VerifierMemory* memory = nullptr);

/// Prints the module, parses the text and compares.
/// \throws InternalError where the text does not parse back, or to another module.
void check_text(const IRModule& module);

}  // namespace tenon
