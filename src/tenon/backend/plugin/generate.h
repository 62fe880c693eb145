// SPDX-License-Identifier: Apache-2.0
// Replaces one unit of a plugin (a match or a region) by a call of what the plugin generated.
#pragma once

#include "tenon/backend/plugin/descriptor.h"
#include "tenon/backend/plugin/match.h"
#include "tenon/ir/module.h"

namespace tenon::plugin {

/// Asks `pack`, `scratch` and `generate` about graph function `function` and replaces it by a
/// PrimFunc (attr `tenon.inline`) that calls what was answered; adds extern functions, PrimFuncs
/// and artefacts.
/// \throws CompileError (kBadBackend) at an answer that is not as it must be, (kBackendRefused),
/// (kPluginCrash).
IRModule generate_unit(const Descriptor& d, IRModule module, const std::string& function,
                       const MatchContext& context);

}  // namespace tenon::plugin
