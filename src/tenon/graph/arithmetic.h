// SPDX-License-Identifier: Apache-2.0
// Counts the arithmetic of operator calls.
#pragma once

#include <optional>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// How dimensions that are not known are counted.
enum class SymbolicDims : uint8_t {
  kRefuse,  // there is no number
  kAsOne,   // for shares, which hardly depend on them
};

/// Multiply-accumulates of a call with a result of type `result`, by its operator's definition; 0
/// where that states none. Nothing where a size is not known.
std::optional<double> macs_of(const Call& call, const Type& result,
                              SymbolicDims dims = SymbolicDims::kRefuse);

/// Bytes of the tensors in a type, tuples included; what is not known counts nothing.
double bytes_of(const Type& type, SymbolicDims dims = SymbolicDims::kAsOne);

}  // namespace tenon::graph
