// Reads lists of passes as a user writes them: `FuseOps, PlanMemory(pool="sram", limit=3)`.
#pragma once

#include <string_view>

#include "tenon/ir/pass.h"

namespace tenon {

/// Options are Python literals: None, True, numbers, strings, lists, tuples, dictionaries with
/// string keys. An empty list is an empty pipeline.
/// \throws UsageError at an unknown pass (with the nearest name) or a text that does not follow the
/// grammar, with the column.
Pipeline parse_pass_list(std::string_view text);

}  // namespace tenon
