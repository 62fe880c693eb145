// SPDX-License-Identifier: Apache-2.0
// Random modules of TensorIR as text: in every form that people write, and well defined, so that
// every difference between two ways to run one is a fault.
#pragma once

#include <string>

#include "random.h"

namespace tenon::fuzz {

/// A module with a PrimFunc `kernel` and what it calls. No element is read before it is written,
/// every index is inside, nothing is divided by 0, iterations of parallel and vectorized loops
/// write apart, and its outputs are written as a whole. Floats hold small whole numbers, so that
/// every order of sums gives the same bits; where that ends, the text says so (`# tolerance`).
std::string random_program(Random& random);

}  // namespace tenon::fuzz
