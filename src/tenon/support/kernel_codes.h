// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of kernels of one's own; part of the one table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

// -- kernels of one's own (TN09xx) ---------------------------------------------------------------
inline constexpr Code kBadKernel{"TN0901", "bad-kernel",
                                 "a kernel's annotations or parameters do not fit its operator"};
inline constexpr Code kNoKernel{"TN0902", "no-kernel",
                                "no kernel takes the call of an operator that has no body"};
inline constexpr Code kWrongResult{"TN0903", "wrong-result",
                                   "a kernel gives other values than its operator"};
inline constexpr Code kRace{"TN0904", "race",
                            "iterations that may run at once touch one element, and one writes it"};
inline constexpr Code kNeverMatches{
    "TN0905", "never-matches", "a kernel took none of the calls of its operator that were tried"};
inline constexpr Code kNotWritten{"TN0906", "not-written",
                                  "a kernel leaves elements of its output unwritten"};

}  // namespace tenon
