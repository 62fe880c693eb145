// Diagnostic codes of back ends and libraries; part of the one table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

// -- back ends and libraries (TN08xx) ------------------------------------------------------------
inline constexpr Code kBadBackend{"TN0801", "bad-backend",
                                  "a back end's hook gave something else than it must"};
inline constexpr Code kSignatureMismatch{
    "TN0802", "signature-mismatch",
    "a library function's signature does not fit the composite that is to call it"};
inline constexpr Code kBadPattern{"TN0803", "bad-pattern", "a pattern of operators is malformed"};

}  // namespace tenon
