// SPDX-License-Identifier: Apache-2.0
// Values that a caller gives for inputs of a network: its weights, where a framework holds them.
#pragma once

#include <map>
#include <string>

#include "tenon/import/onnx/model.h"

namespace tenon::onnx {

/// The model with an initialiser in place of each input that `params` names. The sizes of their
/// named dimensions are added to `dims`, for the other inputs that have them.
/// \throws CompileError (kBadOption) where no such input is, or it is no tensor; kDTypeMismatch and
///     kShapeMismatch where the value does not fit what the model declares.
Model with_params(Model model, const std::map<std::string, Ref<TensorData>>& params,
                  std::map<std::string, int64_t>& dims);

}  // namespace tenon::onnx
