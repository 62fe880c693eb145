// SPDX-License-Identifier: Apache-2.0
// Resolves library names that linkers understand and loaders do not (linker scripts).
#pragma once

#include <string>
#include <vector>

namespace tenon::backend {

/// The shared libraries that linker script `file` stands for: `libm.so`, where a development
/// package has put a text of GROUP or INPUT there. Paths, or names for the loader; static parts are
/// left out. Empty where the file is a library, cannot be read, or names none.
std::vector<std::string> libraries_of_script(const std::string& file);

/// What `name` ("libm.so", as -lm means) stands for where the loader does not know it: by a script
/// in one of the loader's folders, or as a part of the C library, which may be there without one.
std::vector<std::string> libraries_behind(const std::string& name);

}  // namespace tenon::backend
