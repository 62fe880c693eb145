// SPDX-License-Identifier: Apache-2.0
// Describes the machine that Tenon runs on as a Target. "native" is resolved here and nowhere else.
#pragma once

#include <string_view>

#include "tenon/support/target.h"

namespace tenon::llvm_backend {

/// This host: LLVM's name of its processor, the features that it has beyond that name's, its vector
/// registers, and the caches that one core may count on. The environment variable TENON_HOST, a
/// description such as `llvm -mcpu=haswell`, takes its place: a host is then a lesser one, so that
/// what happens there is seen here.
/// \throws CompileError (kBadOption) where TENON_HOST is no description of a known processor.
Target host_target();
/// Whether TENON_HOST says what this host is.
bool host_is_assumed();

/// What `target` needs and this host has not, "avx512f, avx512vl"; empty where its code runs here.
std::string missing_here(const Target& target);
/// \throws CompileError (kOtherMachine) where something is.
void check_runs_here(const Target& target);

/// "native", "c -mcpu=native", or "native" followed by options of parse_target that override what
/// was found; anything else is read by parse_target. For `llvm` targets the vector width and
/// registers that the cpu and features imply are filled in where parse_target's table does not know
/// the cpu.
/// \throws CompileError (kBadOption) at a target, cpu or option that is not known.
Target resolve_target(std::string_view text);

}  // namespace tenon::llvm_backend
