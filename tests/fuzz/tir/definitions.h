// SPDX-License-Identifier: Apache-2.0
// Kernels as LegalizeOps and FuseOps define them, of operators drawn at random.
#pragma once

#include <string>
#include <vector>

#include "random.h"
#include "tenon/tir/stmt.h"

namespace tenon::fuzz {

/// A function to be transformed, and how its results may be compared.
struct Kernel {
  std::string name;
  Ref<tir::PrimFunc> function;
  /// Of |difference| / (1 + max |expected|); 0: the same bits. Inputs are small whole numbers, so
  /// that sums and products are exact in any order; quotients and elementary functions are not.
  double tolerance = 0;
  bool indices = false;  // integer inputs are indices of other inputs: 0 or 1
};

/// Operators whose kernels are drawn.
std::vector<std::string> definition_names();

/// A kernel of one of them, of small random sizes; one without a function where these make none.
Kernel random_definition(Random& random);

}  // namespace tenon::fuzz
