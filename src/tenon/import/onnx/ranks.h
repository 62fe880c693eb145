// SPDX-License-Identifier: Apache-2.0
// Ranks of graph inputs of which the file declares no shape.
#pragma once

#include <optional>
#include <string>

#include "tenon/import/onnx/model.h"

namespace tenon::onnx {

/// The rank that input `name` of the graph must have, from what its nodes do with it: a convolution
/// with weights of known rank, a permutation, an operator that keeps ranks and whose result the file
/// declares. Nothing where none of them says it.
std::optional<size_t> rank_by_use(const Graph& graph, const std::string& name);

}  // namespace tenon::onnx
