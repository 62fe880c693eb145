// SPDX-License-Identifier: Apache-2.0
// Collects the C that plugins emit: one source for each back end and module, in `external_mods`.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::plugin {

struct CFunction {
  std::string backend;
  std::string symbol;
  std::vector<std::string> preludes;  // stand in front of all functions, each once
  std::string source;
  std::vector<std::string> link;
};

/// Adds a function to the source of its back end. \throws CompileError (kBadExternalModule).
void add_c_function(IRModule& module, const CFunction& function);

/// The line that ends the preludes in such a source.
extern const char* const kEndOfPreludes;

}  // namespace tenon::plugin
