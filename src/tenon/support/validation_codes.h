// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of --validate; part of the one table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

inline constexpr Code kNotCompared{
    "TN0510", "not-compared",
    "--validate cannot tell whether a pass keeps what the program computes"};
inline constexpr Code kFunctionNotCompared{
    "TN0511", "function-not-compared",
    "--validate cannot run one function of a module on drawn inputs; the others are compared"};

}  // namespace tenon
