// SPDX-License-Identifier: Apache-2.0
// Numbers of up to four bits as floats: a permutation of a vector of 16 picks each by the lowest bits
// of a lane, which neither have to be masked nor converted.
#pragma once

#include <array>
#include <optional>

#include "tenon/ir/expr.h"
#include "tenon/support/target.h"

namespace tenon::tir {

struct LaneLookup {
  Expr index;                     // integers of 32 bits, or a vector of them
  std::array<double, 16> floats;  // by the lowest four bits
};

/// `float32(index & mask)`, or that less a number, with a mask of 15 or less.
std::optional<LaneLookup> lane_lookup(const Expr& expr);

/// Whether an instruction of the target looks up vectors of 16.
bool has_lane_lookup(const Target& target);

}  // namespace tenon::tir
