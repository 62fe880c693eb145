// SPDX-License-Identifier: Apache-2.0
// Compares the prototypes of a C header with the signatures by which a program calls functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/support/remarks.h"
#include "tenon/tir/extern_function.h"

namespace tenon::c_backend {

/// `int32_t f(const float* x, size_t n);` in a header.
struct Prototype {
  std::string name, text;          // the text with single spaces
  std::string result;              // its type, as C writes it
  std::vector<std::string> types;  // of the parameters, without their names
  int line = 0;
};

/// The functions that a header declares or defines, typedefs of plain names followed. A reader of
/// simple declarations: preprocessor lines are skipped (both sides of an #if are read), and what
/// it does not understand is left out.
std::vector<Prototype> read_prototypes(const std::string& header);

/// How `prototype` differs from what calls of `function` pass: "parameter 2 is `float*`; calls pass
/// `const float*`". Empty where they agree, or nothing where a type is not understood.
std::optional<std::string> difference(const Prototype& prototype,
                                      const tir::ExternFunction& function);

/// Compares every library function that `lowered` calls with the headers that are to declare it.
/// \param headers  as they were given; one that is no file here is left to the C compiler
/// \returns a remark for each function whose prototype was not found or not understood
/// \throws CompileError (kPrototypeMismatch) with both sides
std::vector<Remark> check_prototypes(const IRModule& lowered,
                                     const std::vector<std::string>& headers);

}  // namespace tenon::c_backend
