// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of accesses and of integer arithmetic that may fail; part of the one table of
// codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

inline constexpr Code kDivisionByZero{"TN0340", "division-by-zero",
                                      "an integer is divided by zero"};
inline constexpr Code kShiftOutOfRange{
    "TN0341", "shift-out-of-range",
    "an integer is shifted by a negative amount, or by as many bits as it has or more"};

}  // namespace tenon
