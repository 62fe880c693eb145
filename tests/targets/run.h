// SPDX-License-Identifier: Apache-2.0
// Runs a module for one of the targets, whatever this host is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "targets.h"
#include "tenon/backend/libraries.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"
#include "tenon/ir/pass.h"
#include "tenon/support/target.h"

namespace tenon::testing_targets {

enum class Way {
  kHere,         // compiled code on this processor
  kEmulated,     // compiled code under an emulator
  kInterpreted,  // what was lowered for the target, in the interpreter
};
Way way_of(const Target& target);

using Tensors = std::vector<Ref<TensorData>>;

/// The outputs of `main`, lowered for `target` by the standard pipeline and run as way_of() says.
/// \param libraries  that the module calls; null for none. They are built for this host: nothing is
///                   emulated with them.
/// \param pipeline  instead of the standard one
Tensors run_for(const IRModule& module, const Target& target, const Tensors& inputs,
                int threads = 2, const std::shared_ptr<const backend::Libraries>& libraries = {},
                const std::optional<Pipeline>& pipeline = {});

/// Elements drawn from `seed`, the same on every host: floats in [-1, 1), integers in [0, below).
Ref<TensorData> random_elements(DType dtype, std::vector<int64_t> shape, unsigned seed,
                                int64_t below = 2);

}  // namespace tenon::testing_targets
