// SPDX-License-Identifier: Apache-2.0
// Writes a complete C program that shows how a compiled program is called (--emit c-example).
#pragma once

#include <string>

#include "tenon/runtime/abi.h"

namespace tenon {

/// C99 that loads the library `file` through the runtime's C API, fills the inputs of `program`
/// with made-up numbers, runs it once and prints what it gives.
///
/// \param name    of the program.
/// \param source  the file that it is written to, for the line that says how to build it.
std::string c_example(const TenonProgram& program, const std::string& name, const std::string& file,
                      const std::string& source);

}  // namespace tenon
