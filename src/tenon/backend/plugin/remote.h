// SPDX-License-Identifier: Apache-2.0
// Runs a back end in a process of its own, so that a crash, hang or exit there does not end Tenon.
#pragma once

#include <string>

#include "tenon/backend/plugin/descriptor.h"

namespace tenon::plugin {

/// Starts `tenon-plugin-host`, which loads the library at `path` and answers for it. It is started
/// again where it ended, and it ends with this process.
/// \param file     as the user named it, for messages
/// \param seconds  that a callback may take; 0: as long as it takes
/// \throws CompileError (kBadPlugin, kPluginCrash, kPluginExit, kPluginHang).
Descriptor load_apart(const std::string& file, const std::string& path, double seconds);

}  // namespace tenon::plugin
