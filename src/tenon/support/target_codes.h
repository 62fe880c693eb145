// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of machines that code is made for; part of the one table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

inline constexpr Code kOtherMachine{"TN0310", "other-machine",
                                    "code for another processor is asked to run on this one"};

}  // namespace tenon
