// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

/// The elements of the results of `context`'s node, where those of its `inputs` are known: of Shape
/// and Size the dimensions, of every other operator what it computes. Nothing where they are not
/// known; what is wrong with the node then is told where it is converted.
/// \throws CompileError what converting the node throws.
std::optional<std::vector<Elements>> propagate(Context& context, const OperatorRow& row,
                                               const std::vector<ItemRef>& inputs,
                                               const AttributeValues* enclosing);

}  // namespace tenon::onnx
