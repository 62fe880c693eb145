// SPDX-License-Identifier: Apache-2.0
// Maps of ai.onnx.ml are pairs of tensors: their keys and their values.
#pragma once

#include "tenon/import/onnx/model.h"

namespace tenon::onnx {

/// The model with two values, `NAME.keys` and `NAME.values`, for each one that is a map or a sequence
/// of maps (an output of ZipMap, an input of the graph).
/// \throws CompileError (kUnsupportedOperator) at a node that takes one and does nothing but move it
Model with_maps_in_pairs(Model model);

}  // namespace tenon::onnx
