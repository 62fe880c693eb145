// SPDX-License-Identifier: Apache-2.0
// Writes a small program that shows how generated C is called (--emit c-example).
#pragma once

#include <string>

#include "tenon/backend/c/emit.h"

namespace tenon::c_backend {

/// `NAME_example.c`: allocates what the program needs, fills its inputs with made-up numbers, runs
/// it once and prints what it gives.
std::string example_program(const Program& program);

/// What element `i` of a made-up input is, as C. `is_extent`: a dimension is read from it.
std::string example_value(DType dtype, bool is_extent);

/// How C prints an element: a conversion of printf, and what is cast to.
struct Printed {
  std::string conversion, type;
};
Printed printed_as(DType dtype);

}  // namespace tenon::c_backend
