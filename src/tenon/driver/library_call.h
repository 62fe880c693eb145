// SPDX-License-Identifier: Apache-2.0
// Calls library functions from the interpreter: each call is compiled as a program of its own.
#pragma once

#include <memory>

#include "tenon/backend/libraries.h"
#include "tenon/interp/interpreter.h"

namespace tenon {

/// Calls functions of these libraries and registered ones, through code that is generated for the
/// call as it is for compiled programs.
interp::CallLibrary library_caller(std::shared_ptr<const backend::Libraries> libraries);
/// The same for functions that nothing declares.
interp::CallOpaque opaque_caller(std::shared_ptr<const backend::Libraries> libraries);

}  // namespace tenon
