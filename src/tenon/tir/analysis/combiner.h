// SPDX-License-Identifier: Apache-2.0
// How a store of a reduction joins a value to what it stands on: its operation and its neutral value.
#pragma once

#include <optional>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// How a store joins a value to what it stands on: by +, *, min or max.
struct Combiner {
  BinaryOp op;
  Expr value;    // what is joined to the accumulator
  bool on_left;  // the accumulator is the left operand
};
/// Nothing where the store does not, or uses what it stands on elsewhere too.
std::optional<Combiner> combiner_of(const BufferStore& store);
/// The accumulator joined to `value`, on the side where it stands.
Expr joined(const Combiner& combiner, const Expr& accumulator, const Expr& value);
/// What joins to any value without effect.
Expr neutral_value(BinaryOp op, DType dtype);

}  // namespace tenon::tir
