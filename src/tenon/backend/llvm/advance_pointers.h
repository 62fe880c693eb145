// SPDX-License-Identifier: Apache-2.0
// Pointers that advance from iteration to iteration. Private to backend/llvm.
#pragma once

#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace tenon::llvm_backend {

/// In an innermost loop, pointers that advance by a constant number of bytes become one sum each
/// iteration: those that differ by constants have one in common, and the constants are part of the
/// accesses. It stands for LLVM's loop strength reduction, which weighs many forms of each address
/// and takes a third of the time of generating a scheduled kernel's code.
struct AdvancePointers : llvm::PassInfoMixin<AdvancePointers> {
  static llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                     llvm::LoopStandardAnalysisResults& standard,
                                     llvm::LPMUpdater& updater);
};

}  // namespace tenon::llvm_backend
