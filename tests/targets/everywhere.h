// SPDX-License-Identifier: Apache-2.0
// Runs a module on every machine of the list.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "run.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"

namespace tenon::testing_targets {

/// What `main` gives on this host. Every other machine of the list must give the same, sums in
/// another order apart, in the way that it runs here; with libraries, every one that runs here.
inline Tensors run_everywhere(const IRModule& module, const Tensors& inputs,
                              const std::shared_ptr<const backend::Libraries>& libraries = {}) {
  Tensors native;
  for (const TestTarget& one : kTargets) {
    const Target target = resolve(std::string(one.description));
    if (libraries && way_of(target) != Way::kHere) continue;
    Tensors outputs = run_for(module, target, inputs, 2, libraries);
    if (native.empty()) {
      native = std::move(outputs);
      continue;
    }
    for (size_t i = 0; i < native.size(); ++i) {
      const double bound = native[i]->dtype == kFloat16 ? 4e-3 : 1e-5;
      const auto wrong = native[i]->dtype.is_float()
                             ? difference(*outputs.at(i), *native[i], Tolerance{0, 0, bound})
                             : exact_difference(*outputs.at(i), *native[i]);
      EXPECT_FALSE(wrong) << one.description << ", output " << i << ": " << *wrong;
    }
  }
  return native;
}

}  // namespace tenon::testing_targets
