// SPDX-License-Identifier: Apache-2.0
// Maps the inputs of a program before a pass to those after it, where the pass changes them:
// parameters that became constants, sizes, or results of a function of their own.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tenon/ir/constant.h"
#include "tenon/ir/pass.h"

namespace tenon {

/// Tensors for the inputs of `main`, in order: on these both programs compute the same.
struct InputPair {
  std::vector<Ref<TensorData>> before, after;
  bool has_room = false;  // outputs after have the rows of those before, and others behind them
};

/// Whether `main` takes inputs of the same names and types, in the same order.
bool same_inputs(const IRModule& before, const IRModule& after);

using RunMain = std::function<std::vector<Ref<TensorData>>(
    const IRModule& module, const std::vector<Ref<TensorData>>& inputs)>;

/// Of modules with other inputs: after LiftTransformParams the weights are what `transform_params`
/// makes of those before, which `run` computes; after BindParams those that are gone have the
/// values that they were given; after ShareBuffers what grows has room behind its rows; the others
/// are found again by their names, with sizes that fit both. \throws CompileError (kBadInput) where inputs of after are found in no such way.
InputPair renamed_inputs(const Pass& pass, const IRModule& before, const IRModule& after,
                         uint64_t seed, const RunMain& run);

/// The values of `tensor` at their places in a tensor like `into`, whose shape differs from its
/// along one axis at most: what does not fit is left out, what `into` has beyond stays.
Ref<TensorData> copied_into(const TensorData& tensor, const TensorData& into);

/// The module with function `name` as its `main`, the tensors of its tuples as parameters each.
IRModule with_flat_main(IRModule module, const std::string& name);

}  // namespace tenon
