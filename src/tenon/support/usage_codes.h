// SPDX-License-Identifier: Apache-2.0
// Diagnostic codes of the command line; part of the one table of codes.h.
#pragma once

#include "tenon/support/codes.h"

namespace tenon {

inline constexpr Code kOptionWithoutEffect{
    "TN0010", "option-without-effect",
    "an option changes nothing in the form of a command (docs/options.md)"};
inline constexpr Code kOptionRefused{
    "TN0011", "option-refused",
    "an option asks for what the form of a command does not do (docs/options.md)"};
inline constexpr Code kMatchesNothing{
    "TN0012", "matches-nothing",
    "a pattern, rewriter or plan of the user's own matches nothing in the model"};
inline constexpr Code kNotUsed{
    "TN0013", "not-used", "a kernel, library, signature or input is given, and nothing uses it"};
inline constexpr Code kBadPlan{
    "TN0014", "bad-plan",
    "a plan of --plan is malformed, or does not fit the block that it is for"};
inline constexpr Code kBadDatabase{"TN0015", "bad-database",
                                   "a database of the tuner is damaged, of another program or "
                                   "version, or lacks what is asked of it"};
inline constexpr Code kBadJob{"TN0016", "bad-job",
                              "a job of `tenon measure`, or its result, is malformed"};

}  // namespace tenon
