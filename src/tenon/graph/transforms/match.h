// SPDX-License-Identifier: Apache-2.0
// Lets graph passes match patterns against the bindings that they have rebuilt so far.
#pragma once

#include "tenon/graph/patterns/matcher.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

/// The one number that a constant holds (a scalar, or every element of a splat), or nothing.
std::optional<double> constant_number(const Value& value);

/// True where `value` is a constant tensor.
inline bool is_constant_tensor(const Value& value) { return value.as<Constant>() != nullptr; }

/// An emit after which patterns see what the variable is bound to.
Value emit_noted(BlockBuilder& builder, Matcher& matcher, const Value& value,
                 const std::string& name);

}  // namespace tenon::graph
