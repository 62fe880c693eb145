// SPDX-License-Identifier: Apache-2.0
// Loads shared libraries.
#pragma once

#include <string>

namespace tenon::runtime {

/// A handle, for dlclose; null where the library cannot be loaded, and dlerror says why. What it
/// depends on stays loaded to the end of the process: such a library may have threads that outlive
/// its calls (those of OpenMP sleep between parallel regions), and their code must not go away
/// under them.
void* open_shared_object(const std::string& path);

}  // namespace tenon::runtime
