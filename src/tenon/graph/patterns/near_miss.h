// SPDX-License-Identifier: Apache-2.0
// Finds where a pattern that matches nothing came nearest, for messages.
#pragma once

#include <optional>
#include <string>

#include "tenon/graph/patterns/matcher.h"

namespace tenon::graph {

/// The place where most of a pattern matched, and what differed there.
struct NearMiss {
  std::string function;  // of the module; empty where it has no operator of the pattern
  Ref<Binding> at;       // the operator that the pattern was held against; null likewise
  size_t matched = 0;    // operators of the pattern that matched there
  size_t calls = 0;      // operators of the pattern
  std::string why;       // "argument 0 of `nn.relu` (`/r`) is `add` (`/a`), not `nn.conv2d`"
  Origin origin;         // of the value that differs

  /// "`nn.relu` (`/r`), where 1 of 2 operators match: argument 0 of ...".
  std::string text() const;
};

/// The nearest miss of `pattern` among the graph functions of the module (other than patterns and
/// the functions of back ends): convolutions and matrix products count most. Nothing where the
/// pattern matches with all it asks for. Time is that of a few attempts to match at each operator
/// of the pattern's.
std::optional<NearMiss> nearest_miss(const IRModule& module, const DFPattern& pattern);
/// The same in one function.
std::optional<NearMiss> nearest_miss(const IRModule& module, const Function& function,
                                     const DFPattern& pattern);

}  // namespace tenon::graph
