// SPDX-License-Identifier: Apache-2.0
// Writes the C header of a compiled program.
#pragma once

#include <string>

#include "tenon/runtime/abi.h"

namespace tenon {

/// A header with a struct of the inputs, one of the outputs, and a function that runs the program
/// on them through tenon_runtime.h. C99, also C++.
std::string c_header(const TenonProgram& program, const std::string& name);

}  // namespace tenon
