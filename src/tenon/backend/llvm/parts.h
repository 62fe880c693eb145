// SPDX-License-Identifier: Apache-2.0
// Large modules go through LLVM in parts, on several threads at once.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::llvm_backend {

/// The object that `emit` makes of `module`, or, where the module is large, an archive of those that
/// it makes of parts. The parts are other modules, in contexts of their own, which between them
/// define each function once; how functions are dealt out depends on the module alone, so that the
/// bytes are the same whatever the number of threads. `emit` is called on several threads, and
/// `module` is changed.
std::string emit_in_parts(llvm::Module& module,
                          const std::function<std::string(llvm::Module&)>& emit);

/// The objects in what emit_in_parts gives. \throws CompileError (kLinkFailed) where it is damaged.
std::vector<std::string> objects_of(const std::string& emitted);

}  // namespace tenon::llvm_backend
