// SPDX-License-Identifier: Apache-2.0
// Tensors whose rank the run decides: results of `If` whose branches have several. They stand with
// the greatest rank, behind leading dimensions of 1, where every use broadcasts them.
#pragma once

#include "tenon/import/onnx/context.h"

namespace tenon::onnx {

/// Says of the item, which has leading dimensions of 1, that it may have fewer: at least `least`.
void open_rank(Item& item, int64_t least);
/// The least rank that the item may have.
int64_t least_rank(const Item& item);
/// Whether operand `i` of a node may have another rank than it has here: the node computes the same.
bool takes_open_rank(const Node& node, size_t i, const std::vector<ItemRef>& inputs);
/// A result of such a node: its rank is open where those of the operands leave it so.
void pass_open_rank(const Node& node, const std::vector<ItemRef>& inputs, Item& result);

}  // namespace tenon::onnx
