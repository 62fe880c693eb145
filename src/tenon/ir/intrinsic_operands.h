// SPDX-License-Identifier: Apache-2.0
// The dtypes that intrinsics take. They stand beside the intrinsics in the table of intrinsic.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "tenon/ir/expr.h"

namespace tenon {

enum class OperandKind : uint8_t {
  kAny,
  kFloat,
  kInteger,
  kNumber,     // a float or an integer
  kWord,       // an integer of 32 bits
  kBits,       // an integer or bool
  kScalar,     // a number or bool
  kCondition,  // bool
  kPointer,
  kSame,  // of the dtype of the operand before
};

/// Throws where an argument has a dtype that `op` does not take.
void check_operands(const Intrinsic& op, std::span<const NodePtr> args, const Origin& origin);

}  // namespace tenon
