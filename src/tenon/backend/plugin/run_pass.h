// SPDX-License-Identifier: Apache-2.0
// Runs a pass of a plugin: it takes a module as text and gives one back.
#pragma once

#include "tenon/backend/plugin/descriptor.h"
#include "tenon/ir/module.h"

namespace tenon::plugin {

/// \param pass  among those of `d`.
/// \throws CompileError (kBadBackend) where what comes back is no well-formed module;
/// (kBackendRefused) where the pass refused; (kPluginCrash).
IRModule run_pass(const Descriptor& d, size_t pass, IRModule module, const Attrs& options);

}  // namespace tenon::plugin
