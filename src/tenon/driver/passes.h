// SPDX-License-Identifier: Apache-2.0
// Every pass by name: the one table from which the command line, the pipelines and the generated
// documentation are made.
#pragma once

#include <span>
#include <string_view>

#include "tenon/ir/pass.h"

namespace tenon {

/// All passes, in the order in which the standard pipelines use them.
std::span<const Pass> all_passes();

/// Null where there is none of this name.
const Pass* find_pass(std::string_view name);

/// The least lowered of the module's functions decides; an empty module is lowered.
Form form_of(const IRModule& module);

/// "graph", "legalised", "TensorIR with blocks", "lowered", "any".
std::string_view name_of(Form form);
/// "exact", "re-associating".
std::string_view name_of(Precision precision);

}  // namespace tenon
