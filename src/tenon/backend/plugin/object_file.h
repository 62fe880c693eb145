// SPDX-License-Identifier: Apache-2.0
// Inspects a relocatable object without linking it.
#pragma once

#include <string>
#include <string_view>

namespace tenon::plugin {

/// Why `bytes` are no object of this host's machine that defines function `symbol`; empty where
/// they are. Bounds are checked: the bytes may be anything.
std::string object_fault(std::string_view bytes, const std::string& symbol);

}  // namespace tenon::plugin
