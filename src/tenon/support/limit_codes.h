// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of limits on work and memory, of trust and of files that change; part of the one
// table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

inline constexpr Code kTooMuchWork{
    "TN0020", "too-much-work",
    "a short input stands for more work or memory than Tenon takes on without being told"};

inline constexpr Code kUntrustedCode{
    "TN0021", "untrusted-code",
    "a model brings or calls code that the user did not name; --allow-code permits it"};
inline constexpr Code kFileChanged{"TN0022", "file-changed",
                                   "a file was cut off while it was in use"};

inline constexpr Code kSlowStep{"TN0023", "slow-step",
                                "a step of the compilation takes very long (a warning)"};
inline constexpr Code kTooMuchMemory{
    "TN0024", "too-much-memory",
    "a step of the compilation takes more memory than the model's size accounts for"};

}  // namespace tenon
