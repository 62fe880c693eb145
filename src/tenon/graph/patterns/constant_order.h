// SPDX-License-Identifier: Apache-2.0
// Which of a composite's constants is which in its pattern.
#pragma once

namespace tenon::graph {

/// Attribute of a composite in whose body constants stand in another order than in its pattern: for
/// each constant in the order of the pattern its number in the order of the body.
inline constexpr const char* kConstantOrder = "constant_order";

}  // namespace tenon::graph
