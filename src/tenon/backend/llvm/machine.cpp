// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/machine.h"

#include <llvm/Support/TargetSelect.h>

#include <mutex>

#include "tenon/support/check.h"

namespace tenon::llvm_backend {

std::string triple_of(const Target& target) {
  return target.is_x86() ? std::string(kX86Triple) : target.triple;
}

const llvm::Target& llvm_target(const Target& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple_of(target), error);
  check(found != nullptr, "LLVM has no back end for " + triple_of(target));
  return *found;
}

}  // namespace tenon::llvm_backend
