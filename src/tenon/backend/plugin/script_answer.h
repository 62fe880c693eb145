// SPDX-License-Identifier: Apache-2.0
// Takes TensorIR that a plugin answers as text into the module.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend/plugin/descriptor.h"
#include "tenon/graph/type.h"
#include "tenon/ir/module.h"

namespace tenon::plugin {

struct ScriptAnswer {
  const Descriptor& d;
  const std::string& text;
  const IRModule* given;     // instead of a text; may be null
  const std::string& entry;  // the PrimFunc that is called
  Origin origin;             // of the match
  std::string what;          // for messages: the callback
};

/// Parses and verifies it, and adds its functions to `module` under names that are free.
/// \param wanted  types of the entry's parameters: inputs, outputs, scratch.
/// \returns the entry's name in the module.
/// \throws CompileError (kBadBackend), with what is wrong in the text as further errors.
std::string add_script_functions(IRModule& module, const ScriptAnswer& answer,
                                 const std::vector<graph::Type>& wanted);

}  // namespace tenon::plugin
