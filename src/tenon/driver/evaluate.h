// SPDX-License-Identifier: Apache-2.0
// Computes constants at compile time: by direct references where these exist, else by the
// interpreter.
#pragma once

#include "tenon/graph/transforms.h"

namespace tenon {

/// Gives the value of a pure call on constants; nothing where it cannot be computed now, or where
/// the work that is left for the module does not reach. For graph::fold_constants.
graph::ConstantEvaluator constant_evaluator();

}  // namespace tenon
