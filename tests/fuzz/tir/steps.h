// SPDX-License-Identifier: Apache-2.0
// Random applications of schedule primitives.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "random.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::fuzz {

/// A primitive with a seed of its own from which its arguments are drawn, from what the function
/// has when its turn comes.
struct Step {
  std::string primitive;
  uint64_t seed = 0;
};

/// What a step needs beyond the function.
struct StepContext {
  std::vector<tir::TensorIntrin> intrins;
};

/// Applies a primitive with random arguments; false where there is nothing to apply it to (no loop,
/// no reduction, ...). Throws what the primitive throws.
using StepGenerator = std::function<bool(tir::Schedule&, Random&, const StepContext&)>;

/// By name of the primitive: one for each of tir::primitive_names().
const std::map<std::string, StepGenerator>& step_generators();

/// A primitive at random: those that change loops come up more often.
Step random_step(Random& random);

bool apply(tir::Schedule& schedule, const Step& step, const StepContext& context);

/// Kernels that blocks of any kernel may happen to be: copies, sums, products, fills.
const StepContext& standard_context();

}  // namespace tenon::fuzz
