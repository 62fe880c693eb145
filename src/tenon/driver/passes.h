// SPDX-License-Identifier: Apache-2.0
// Every pass by name: the one table from which the command line, the pipelines and the generated
// documentation are made.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/ir/pass.h"

namespace tenon {

/// All passes, in the order in which the standard pipelines use them.
std::span<const Pass> all_passes();

/// In the table, of a back end, or registered; nothing where there is none of this name.
std::optional<Pass> find_pass(std::string_view name);

/// An option of a pass.
struct PassOption {
  std::string_view name;
  std::string_view type;     // as Python writes it: "str", "bool", "int", "list[str]", "dict"
  std::string_view value;    // the default, a literal; empty: the option must be given
  std::string_view summary;  // one line
};
/// Of a pass of the table; none of others.
std::span<const PassOption> options_of(std::string_view pass);

/// Lets pipelines name a pass that is not in the table. One of the same name that was registered
/// before is replaced; what pipelines have taken stays as it was.
/// \throws CompileError (kBadOption) where the table or a back end has the name
void register_pass(const Pass& pass);
/// Those that are registered, by their names.
std::vector<std::string> registered_passes();

/// The least lowered of the module's functions decides; an empty module is lowered.
Form form_of(const IRModule& module);

/// "graph", "legalised", "TensorIR with blocks", "lowered", "any".
std::string_view name_of(Form form);
/// "exact", "re-associating".
std::string_view name_of(Precision precision);

}  // namespace tenon
