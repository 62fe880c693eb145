// SPDX-License-Identifier: Apache-2.0
// The library that decodes pictures (image/), which is opened when a program calls it.
#pragma once

#include <string>

#include "tenon/runtime/abi.h"

namespace tenon::runtime {

/// The library's function of this name ("tenon.image.decode"); null where there is none, or no
/// library.
TenonPackedFunction find_image_function(const std::string& name);

}  // namespace tenon::runtime
