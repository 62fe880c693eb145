// The machine that Tenon runs on, as a Target: "native" is resolved here and nowhere else.
#pragma once

#include <string_view>

#include "tenon/support/target.h"

namespace tenon::llvm_backend {

/// This host: LLVM's name of its processor, the features that it has beyond that name's, its vector
/// registers, and the caches that one core may count on.
Target host_target();

/// "native", "c -mcpu=native", or "native" followed by options of parse_target that override what
/// was found; anything else is read by parse_target. For `llvm` targets the vector width and
/// registers that the cpu and features imply are filled in where parse_target's table does not know
/// the cpu.
/// \throws CompileError (kBadOption) at a target, cpu or option that is not known.
Target resolve_target(std::string_view text);

}  // namespace tenon::llvm_backend
