// SPDX-License-Identifier: Apache-2.0
// Runs a small graph function on elements that are known during import: by its operators' own
// definitions, also where elements are expressions of symbolic dimensions.
#pragma once

#include <optional>
#include <vector>

#include "tenon/import/elements.h"

namespace tenon::importers {

/// The elements of each result of `function`, on `args` for its parameters, all of known shape.
/// Nothing where a result has more than kMostElements or a type that Elements does not hold, where
/// a number would depend on a symbolic dimension by more than integer arithmetic (an index, a
/// branch, a float), and where running it is an error that the program tells when it is compiled or
/// run. \throws CompileError (kOutOfBounds) where a constant index is outside its axis.
std::optional<std::vector<Elements>> evaluate(const Ref<graph::Function>& function,
                                              std::vector<const Elements*> args);

}  // namespace tenon::importers
