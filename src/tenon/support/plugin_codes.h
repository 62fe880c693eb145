// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of plugins; part of the one table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

inline constexpr Code kBadPlugin{"TN0811", "bad-plugin",
                                 "a shared library is no back end that this Tenon can load"};
inline constexpr Code kPluginCrash{"TN0812", "plugin-crash",
                                   "a back end's code crashed while Tenon asked it"};
inline constexpr Code kBackendRefused{
    "TN0813", "backend-refused",
    "a back end, or a pass of it, says no where only an error can follow"};

inline constexpr Code kPluginHang{"TN0814", "plugin-hang",
                                  "a back end's code does not come to an end"};
inline constexpr Code kPluginExit{"TN0815", "plugin-exit",
                                  "a back end's code ended the process that it ran in"};

}  // namespace tenon
