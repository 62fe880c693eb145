// SPDX-License-Identifier: Apache-2.0
// The machines of the list whose code this host executes.
#pragma once

#include <string>
#include <vector>

#include "targets.h"
#include "tenon/backend/llvm/host.h"

namespace tenon::testing_targets {

/// Targets of LLVM that run here, `native` first.
inline std::vector<Target> machines_here() {
  std::vector<Target> out;
  for (const TestTarget& one : kTargets) {
    const Target target = llvm_backend::resolve_target(one.description);
    if (target.kind == "llvm" && llvm_backend::missing_here(target).empty()) out.push_back(target);
  }
  return out;
}

}  // namespace tenon::testing_targets
