// SPDX-License-Identifier: Apache-2.0
// Large programs go through LLVM in parts, on several threads at once (ProgramFacts::divide).
#pragma once

#include <string>
#include <vector>

namespace tenon::llvm_backend {

/// The only object of `objects`, or an archive of them.
std::string joined_objects(std::vector<std::string> objects);

/// What joined_objects was given. \throws CompileError (kLinkFailed) where it is damaged.
std::vector<std::string> objects_of(const std::string& joined);

}  // namespace tenon::llvm_backend
