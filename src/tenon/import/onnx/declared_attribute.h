// SPDX-License-Identifier: Apache-2.0
// Attributes of operators that the user declares.
#pragma once

#include "tenon/import/onnx/context.h"

namespace tenon::onnx {

/// The value of parameter `param` of the declaration `function`, which is no tensor: the attribute
/// of the node, else the default in the declaration's `op_attrs`. `number`: of the node among those
/// of declared operators. \throws CompileError (kBadAttribute) where there is neither.
Value declared_attribute(Context& context, const graph::Function& function, const graph::Var& param,
                         int64_t number);

}  // namespace tenon::onnx
