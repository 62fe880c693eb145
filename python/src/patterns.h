// SPDX-License-Identifier: Apache-2.0
// Patterns with names, as back ends take them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "script_values.h"
#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/tir/stmt.h"

namespace tenon::python {

/// What Python sees of a match, in a check.
struct PatternMatch {
  Value matched;
  std::map<std::string, Value> annotated;
  std::vector<std::pair<Value, Value>> bindings;
  std::vector<std::pair<std::string, Value>> inputs;
  Ref<graph::Function> composite;
};

/// \param pattern       a DFPattern, a graph function, or a PrimFunc.
/// \param annotations   a dict of patterns by name, or None.
/// \param check         called with a PatternMatch: True, False, or the reason against it; or None.
/// \param attrs_getter  called with a PatternMatch: a dict of attributes; or None.
graph::FusionPattern make_fusion_pattern(std::string name, const nb::object& pattern,
                                         const nb::object& annotations, const nb::object& check,
                                         const nb::object& attrs_getter, int priority,
                                         std::optional<bool> bind_constants);
/// A FusionPattern, or a tuple of its parts in this order.
graph::FusionPattern fusion_pattern_of(nb::handle value);
std::vector<graph::FusionPattern> fusion_patterns_of(nb::handle list);

}  // namespace tenon::python
