// SPDX-License-Identifier: Apache-2.0
// LLVM's target machines for the architectures that code is generated for.
#pragma once

#include <llvm/MC/TargetRegistry.h>

#include <string>

#include "tenon/support/target.h"

namespace tenon::llvm_backend {

/// The triple of a target in LLVM's words.
std::string triple_of(const Target& target);

/// LLVM's target of that triple, initialised. \throws InternalError where LLVM was built without.
const llvm::Target& llvm_target(const Target& target);

}  // namespace tenon::llvm_backend
